//! The lists of the notebook. Does nothing.

use serde_json::{Value, json};

/// The template of the notes' URIs.
pub(super) const TEMPLATE: &str = "note://{id}";

pub(super) fn tools() -> Vec<Value> {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let tags = json!({ "type": "array", "items": { "type": "string" }, "description": "Words to sort notes by" });
    let id = json!({ "type": "integer", "minimum": 1, "description": "The note's number" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "How many at most" });
    let note = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer" }, "uri": { "type": "string" }, "title": { "type": "string" }, "text": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["id", "uri", "title", "text", "tags"],
    });
    let found = json!({
        "type": "object",
        "properties": { "notes": { "type": "array", "items": note }, "matching": { "type": "integer" } },
        "required": ["notes", "matching"],
    });
    let read_only = json!({ "readOnlyHint": true, "openWorldHint": false });
    let changing = |destructive: bool| json!({ "readOnlyHint": false, "destructiveHint": destructive, "openWorldHint": false });
    vec![
        json!({
            "name": "add", "title": "Add a note", "description": "Writes a new note",
            "inputSchema": {
                "type": "object",
                "properties": { "title": text("A short title"), "text": text("What to note, in Markdown"), "tags": tags },
                "required": ["title", "text"],
            },
            "outputSchema": note, "annotations": changing(false),
        }),
        json!({
            "name": "list", "title": "List notes", "description": "Lists notes, all or those with a tag",
            "inputSchema": { "type": "object", "properties": { "tag": text("Only notes with this tag"), "limit": limit } },
            "outputSchema": found, "annotations": read_only,
        }),
        json!({
            "name": "search", "title": "Search notes", "description": "Finds notes whose title, text or tags hold all words",
            "inputSchema": {
                "type": "object",
                "properties": { "query": text("Words to look for"), "limit": limit },
                "required": ["query"],
            },
            "outputSchema": found, "annotations": read_only,
        }),
        json!({
            "name": "update", "title": "Change a note", "description": "Changes the title, text or tags of a note",
            "inputSchema": {
                "type": "object",
                "properties": { "id": id, "title": text("The new title"), "text": text("The new text"), "tags": tags },
                "required": ["id"],
            },
            "outputSchema": note, "annotations": changing(true),
        }),
        json!({
            "name": "delete", "title": "Delete a note", "description": "Deletes one note",
            "inputSchema": { "type": "object", "properties": { "id": id }, "required": ["id"] },
            "annotations": changing(true),
        }),
        json!({
            "name": "delete_all", "title": "Delete all notes",
            "description": "Deletes every note, after a person has confirmed it in a form",
            "inputSchema": { "type": "object", "properties": {} },
            "annotations": changing(true),
        }),
    ]
}

pub(super) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": TEMPLATE, "name": "note", "title": "A note", "description": "One note by its number", "mimeType": "text/markdown",
    })]
}

/// `review` makes sense only where there is something to review, so the list changes with the first note and the last.
pub(super) fn prompts(any_notes: bool) -> Vec<Value> {
    let mut prompts = vec![json!({
        "name": "summarize", "title": "Summarize notes", "description": "Asks for a summary of the notes with a tag",
        "arguments": [{ "name": "tag", "description": "The tag", "required": true }],
    })];
    if any_notes {
        prompts.push(json!({ "name": "review", "title": "Review all notes", "description": "Asks for a critical look at all notes" }));
    }
    prompts
}
