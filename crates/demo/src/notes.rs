//! `notes`: a notebook kept in memory, with a resource for each note. Nothing is written to disk; what is noted ends with the
//! process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_server::{
    About, Arguments, Change, Connection, Era, Question, Refusal, Request, Server, arguments, failed, number_of, structured, text, text_of,
};
use serde_json::{Map, Value, json};

mod definitions;

/// Most notes kept.
const MOST: usize = 1000;
/// Bytes of the longest note.
const LONGEST: usize = 64 << 10;

pub(super) struct Notes {
    book: Mutex<Book>,
    connection: OnceLock<Connection>,
}

/// All notes by number, and the number of their changes.
struct Book {
    notes: BTreeMap<u64, Note>,
    next: u64,
    revision: u64,
}

#[derive(Clone)]
struct Note {
    title: String,
    text: String,
    tags: Vec<String>,
}

impl Notes {
    /// Makes a notebook with two notes, so that there is something to read and to find.
    pub(super) fn new() -> Self {
        let note = |title: &str, text: &str, tags: &[&str]| Note {
            title: title.into(),
            text: text.into(),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
        };
        let notes = BTreeMap::from([
            (1, note("Welcome", "This notebook lives in memory. Add notes, search them, read them as resources.", &["demo"])),
            (2, note("Shopping", "Figs, bread, coffee, a new watering can for the banyan tree.", &["home", "demo"])),
        ]);
        Self { book: Mutex::new(Book { notes, next: 3, revision: 1 }), connection: OnceLock::new() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell(&self, change: Change<'_>) {
        if let Some(connection) = self.connection.get() {
            connection.changed(change).await;
        }
    }

    async fn add(&self, arguments: &Arguments) -> Value {
        let (Some(title), Some(body)) = (text_of(arguments, "title"), text_of(arguments, "text")) else {
            return failed("a note needs a `title` and a `text`");
        };
        let note = Note { title: title.into(), text: body.into(), tags: tags(arguments) };
        if note.title.len() + note.text.len() > LONGEST {
            return failed(format!("a note may have {LONGEST} bytes: make two of it"));
        }
        let (id, first) = {
            let mut book = self.book();
            if book.notes.len() >= MOST {
                return failed(format!("{MOST} notes are kept at most: delete some with `delete`"));
            }
            let (id, first) = (book.next, book.notes.is_empty());
            book.next += 1;
            book.revision += 1;
            book.notes.insert(id, note.clone());
            (id, first)
        };
        self.tell(Change::Resources).await;
        if first {
            self.tell(Change::Prompts).await;
        }
        structured(format!("Noted as number {id}."), shown(id, &note))
    }

    async fn update(&self, arguments: &Arguments) -> Value {
        let id = number_of(arguments, "id").unwrap_or_default();
        let changed = {
            let mut book = self.book();
            let Some(note) = book.notes.get_mut(&id) else { return missing(id) };
            let body = text_of(arguments, "text").unwrap_or(&note.text).to_owned();
            let title = text_of(arguments, "title").unwrap_or(&note.title).to_owned();
            if title.len() + body.len() > LONGEST {
                return failed(format!("a note may have {LONGEST} bytes: make two of it"));
            }
            (note.title, note.text) = (title, body);
            if arguments.contains_key("tags") {
                note.tags = tags(arguments);
            }
            let note = note.clone();
            book.revision += 1;
            note
        };
        self.tell(Change::Resource(&uri(id))).await;
        structured(format!("Changed note {id}."), shown(id, &changed))
    }

    async fn delete(&self, arguments: &Arguments) -> Value {
        let id = number_of(arguments, "id").unwrap_or_default();
        let (gone, last) = {
            let mut book = self.book();
            let gone = book.notes.remove(&id);
            book.revision += u64::from(gone.is_some());
            (gone, book.notes.is_empty())
        };
        if gone.is_none() {
            return missing(id);
        }
        self.tell(Change::Resources).await;
        if last {
            self.tell(Change::Prompts).await;
        }
        text(format!("Deleted note {id}."))
    }

    /// Deletes the notes seen by the person, and nothing else: `state` is the revision of the question.
    async fn delete_all(&self, request: &Request) -> Result<Value, Refusal> {
        let (count, revision) = {
            let book = self.book();
            (book.notes.len(), book.revision)
        };
        if count == 0 {
            return Ok(text("There are no notes."));
        }
        if !request.can_ask() {
            return match request.era {
                Era::Stateless => Err(request.cannot_ask()),
                Era::Initialize => Ok(failed(
                    "Deleting all notes needs a person's confirmation, and this client can't ask for it. Delete them one by one with `delete`.",
                )),
            };
        }
        let question = |count: usize, revision: u64| Question {
            key: "confirm",
            message: format!("Delete all {count} notes? This can't be undone."),
            schema: json!({
                "type": "object",
                "properties": { "confirm": { "type": "boolean", "title": "Delete them all", "default": false } },
                "required": ["confirm"],
            }),
            state: revision.to_string(),
        };
        let reply = request.ask(question(count, revision)).await?;
        if reply.action != "accept" || reply.content.get("confirm") != Some(&Value::Bool(true)) {
            return Ok(text("Nothing was deleted."));
        }
        let confirmed = request.state.as_ref().map_or(revision, |state| state.parse().unwrap_or_default());
        let unchanged = {
            let mut book = self.book();
            let unchanged = book.revision == confirmed;
            if unchanged {
                book.notes.clear();
                book.revision += 1;
            }
            unchanged
        };
        if !unchanged {
            return Ok(failed("The notes have changed since the question was asked; nothing was deleted. Call the tool again."));
        }
        self.tell(Change::Resources).await;
        self.tell(Change::Prompts).await;
        Ok(text(format!("Deleted {count} notes.")))
    }

    fn find(&self, keep: impl Fn(&Note) -> bool, limit: usize) -> Value {
        let book = self.book();
        let found: Vec<_> = book.notes.iter().filter(|(_, note)| keep(note)).collect();
        let all = found.len();
        let listed: Vec<Value> = found.into_iter().take(limit).map(|(id, note)| shown(*id, note)).collect();
        let lines: Vec<String> =
            listed.iter().map(|note| format!("{}: {}", note["id"], note["title"].as_str().unwrap_or_default())).collect();
        let text = if lines.is_empty() { "No note matches.".into() } else { lines.join("\n") };
        structured(text, json!({ "notes": listed, "matching": all }))
    }
}

impl Server for Notes {
    fn about(&self) -> About {
        let instructions = "A notebook in memory. Each note is also a resource, note://NUMBER, that can be watched.";
        About::fixed("notes", "Notes", env!("CARGO_PKG_VERSION"), instructions)
    }

    fn capabilities(&self, _era: Era) -> Value {
        json!({ "resources": { "subscribe": true, "listChanged": true }, "prompts": { "listChanged": true }, "completions": {} })
    }

    fn tools(&self) -> Vec<Value> {
        definitions::tools()
    }

    async fn call(&self, request: &Request, tool: &str, arguments: &Arguments) -> Result<Value, Refusal> {
        let limit = number_of(arguments, "limit").unwrap_or(20).clamp(1, 100) as usize;
        Ok(match tool {
            "add" => self.add(arguments).await,
            "delete" => self.delete(arguments).await,
            "delete_all" => return self.delete_all(request).await,
            "list" => {
                let tag = text_of(arguments, "tag");
                self.find(|note| tag.is_none_or(|tag| note.tags.iter().any(|of| of == tag)), limit)
            }
            "search" => {
                let query = text_of(arguments, "query").unwrap_or_default().to_lowercase();
                let holds = |note: &Note| {
                    let all = format!("{}\n{}\n{}", note.title, note.text, note.tags.join(" ")).to_lowercase();
                    query.split_whitespace().all(|word| all.contains(word))
                };
                self.find(holds, limit)
            }
            _ => self.update(arguments).await,
        })
    }

    fn resources(&self) -> Vec<Value> {
        let book = self.book();
        let entry = |(id, note): (&u64, &Note)| json!({ "uri": uri(*id), "name": note.title, "mimeType": "text/markdown", "size": note.text.len() });
        book.notes.iter().map(entry).collect()
    }

    fn templates(&self) -> Vec<Value> {
        definitions::templates()
    }

    async fn read(&self, _request: &Request, uri: &str, _params: &Map<String, Value>) -> Result<Option<Value>, Refusal> {
        let id = uri.strip_prefix("note://").and_then(|id| id.parse::<u64>().ok());
        let Some(note) = id.and_then(|id| self.book().notes.get(&id).cloned()) else { return Ok(None) };
        let text = format!("# {}\n\n{}\n", note.title, note.text);
        Ok(Some(json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": text }] })))
    }

    fn prompts(&self) -> Vec<Value> {
        definitions::prompts(!self.book().notes.is_empty())
    }

    async fn prompt(&self, _request: &Request, name: &str, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let arguments = arguments(params);
        let tag = text_of(&arguments, "tag");
        let wanted = |note: &Note| name != "summarize" || tag.is_none_or(|tag| note.tags.iter().any(|of| of == tag));
        let texts: Vec<String> = {
            let book = self.book();
            let chosen = book.notes.values().filter(|note| wanted(note));
            chosen.map(|note| format!("## {}\n\n{}", note.title, note.text)).collect()
        };
        if name == "summarize" && tag.is_none() {
            return Err(Refusal::invalid("`tag` is missing"));
        }
        let task = match name {
            "summarize" => "Summarize these notes in three sentences:",
            _ => "Read these notes and say which are out of date, which belong together, and what is missing:",
        };
        let text = format!("{task}\n\n{}", texts.join("\n\n"));
        Ok(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }))
    }

    async fn completions(&self, reference: &str, argument: &str, _typed: &str) -> Vec<String> {
        let book = self.book();
        match (reference, argument) {
            ("summarize", "tag") => {
                let mut tags: Vec<String> = book.notes.values().flat_map(|note| note.tags.clone()).collect();
                tags.sort();
                tags.dedup();
                tags
            }
            (definitions::TEMPLATE, "id") => book.notes.keys().map(u64::to_string).collect(),
            _ => Vec::new(),
        }
    }

    fn connected(&self, connection: &Connection) {
        // One process serves one client, so there is only ever one to tell.
        let _first = self.connection.set(connection.clone());
    }
}

fn uri(id: u64) -> String {
    format!("note://{id}")
}

fn shown(id: u64, note: &Note) -> Value {
    json!({ "id": id, "uri": uri(id), "title": note.title, "text": note.text, "tags": note.tags })
}

fn missing(id: u64) -> Value {
    failed(format!("there is no note {id}: `list` shows the numbers"))
}

fn tags(arguments: &Arguments) -> Vec<String> {
    let list = arguments.get("tags").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).take(20).collect()
}
