//! A turn of an agent as the result of a tool: artifacts and words as content, the task in `_meta`. Waits for nothing.

use agent_proto::part::{Content, MessagePart};
use agent_proto::task::TaskState;
use agent_proto::turn::{AgentTurn, first_text};
use json::{Duplicates, quote};

/// Member of `_meta` with the ids that continue a conversation.
const META_KEY: &str = "io.banyan/a2a";

/// Writes the result of a call.
pub fn result(turn: &AgentTurn, agent: &str) -> String {
    let mut content: Vec<String> = Vec::new();
    for artifact in turn.artifacts() {
        content.extend(artifact.parts.iter().enumerate().map(|(at, part)| item(part, &artifact.id, at)));
    }
    content.extend(turn.words().iter().enumerate().map(|(at, part)| item(part, "message", at)));
    content.extend(notes(turn, agent, content.is_empty()).iter().map(|note| text(note)));
    let structured = structured(turn).map(|data| format!(",\"structuredContent\":{data}")).unwrap_or_default();
    let is_error = if is_failed(turn) { ",\"isError\":true" } else { "" };
    format!("{{\"content\":[{}]{structured}{is_error},\"_meta\":{{\"{META_KEY}\":{}}}}}", content.join(","), about(turn))
}

/// Writes the result of a call whose caller did not answer the agent.
pub fn declined(turn: &AgentTurn, agent: &str) -> String {
    let asked = first_text(turn.words()).unwrap_or_default();
    let words =
        format!("The person who was asked did not answer the agent {agent}, which has been told to stop. The question was: {asked}");
    format!("{{\"content\":[{}],\"isError\":true,\"_meta\":{{\"{META_KEY}\":{}}}}}", text(&words), about(turn))
}

fn is_failed(turn: &AgentTurn) -> bool {
    turn.state()
        .is_some_and(|state| matches!(state, TaskState::Failed | TaskState::Rejected | TaskState::Canceled | TaskState::AuthRequired))
}

/// Sentences of ours about what the agent left unsaid, and about the next step.
fn notes(turn: &AgentTurn, agent: &str, is_silent: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match turn.state() {
        Some(TaskState::InputRequired) => {
            let task = turn.task.as_deref().unwrap_or_default();
            notes.push(format!(
                "The agent {agent} waits for an answer. Call this tool again with the answer in `message` and with `task_id` {}.",
                quote(task)
            ));
        }
        Some(TaskState::AuthRequired) => {
            notes.push(format!("The agent {agent} wants a sign-in before it goes on. It goes on by itself once a person has done so."));
        }
        Some(state) if is_silent => notes.push(format!("The agent {agent} ended the task as {} and said nothing.", state.word())),
        None if is_silent => notes.push(format!("The agent {agent} answered with an empty message.")),
        Some(_) | None => {}
    }
    if turn.unknown() > 0 {
        notes.push(format!("{} parts of the answer are of a kind that A2A 1.0 does not have. They are left out.", turn.unknown()));
    }
    notes
}

/// The data of an answer, where it is a single object.
fn structured(turn: &AgentTurn) -> Option<&str> {
    let all = turn.artifacts().iter().flat_map(|artifact| &artifact.parts).chain(turn.words());
    let mut data = all.filter_map(|part| match &part.content {
        Content::Data(raw) => Some(raw.as_str()),
        Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
    });
    match (data.next(), data.next()) {
        (Some(raw), None) if raw.starts_with('{') && json::check(raw.as_bytes(), Duplicates::RefuseDeep).is_ok() => Some(raw),
        (_, _) => None,
    }
}

fn about(turn: &AgentTurn) -> String {
    let ids = [("task_id", turn.task.as_deref()), ("context_id", turn.context.as_deref()), ("state", turn.state().map(TaskState::name))];
    let mut members: Vec<String> = ids.into_iter().filter_map(|(key, id)| Some(format!("\"{key}\":{}", quote(id?)))).collect();
    if !turn.artifacts().is_empty() {
        let artifacts = turn.artifacts().iter().map(|artifact| {
            let described = [("name", &artifact.name), ("description", &artifact.description)];
            let described = described.into_iter().filter_map(|(key, text)| Some(format!(",\"{key}\":{}", quote(text.as_deref()?))));
            format!("{{\"id\":{}{},\"parts\":{}}}", quote(&artifact.id), described.collect::<String>(), artifact.parts.len())
        });
        members.push(format!("\"artifacts\":[{}]", artifacts.collect::<Vec<_>>().join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// A part as content of MCP.
fn item(part: &MessagePart, artifact: &str, at: usize) -> String {
    let media_type = part.media_type.as_deref();
    let mime = media_type.map(|mime| format!(",\"mimeType\":{}", quote(mime))).unwrap_or_default();
    let name = part.filename.clone().unwrap_or_else(|| format!("part-{at}"));
    match &part.content {
        Content::Text(words) => text(words),
        Content::Data(raw) => text(raw),
        Content::Url(url) => format!("{{\"type\":\"resource_link\",\"uri\":{},\"name\":{}{mime}}}", quote(url), quote(&name)),
        Content::Raw(base64) => match media_type.and_then(|mime| mime.split_once('/')) {
            Some((kind @ ("image" | "audio"), _)) => format!("{{\"type\":\"{kind}\",\"data\":{}{mime}}}", quote(base64)),
            _ => {
                let uri = format!("a2a:{}/{}", escape(artifact), escape(&name));
                format!("{{\"type\":\"resource\",\"resource\":{{\"uri\":{},\"blob\":{}{mime}}}}}", quote(&uri), quote(base64))
            }
        },
    }
}

fn text(words: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(words))
}

/// Escapes a segment of a URI.
fn escape(segment: &str) -> String {
    url::form_urlencoded::byte_serialize(segment.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn result_of(reply: &Value) -> Value {
        let mut turn = AgentTurn::new(100_000, None, None);
        turn.handle_reply(reply.to_string().as_bytes()).unwrap();
        serde_json::from_str(&result(&turn, "writer")).unwrap()
    }

    #[test]
    fn artifacts_and_words_become_content() {
        let parts = json!([{"text": "one"}, {"data": {"n": 1}}, {"raw": "AA==", "mediaType": "image/png"}, {"url": "https://a/b", "filename": "b"},
            {"raw": "AA==", "mediaType": "application/zip", "filename": "x.zip"}]);
        let status = json!({"state": "TASK_STATE_COMPLETED", "message": {"parts": [{"text": "done"}]}});
        let artifact = json!({"artifactId": "a/1", "name": "N", "parts": parts});
        let result = result_of(&json!({"task": {"id": "t", "contextId": "c", "status": status, "artifacts": [artifact]}}));
        let content = result["content"].as_array().unwrap();
        let kinds: Vec<&str> = content.iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "text", "image", "resource_link", "resource", "text"]);
        assert_eq!(content[4]["resource"]["uri"], "a2a:a%2F1/x.zip");
        assert_eq!(result["structuredContent"], json!({"n": 1}));
        let meta = json!({"task_id": "t", "context_id": "c", "state": "TASK_STATE_COMPLETED",
            "artifacts": [{"id": "a/1", "name": "N", "parts": 5}]});
        assert_eq!(result["_meta"]["io.banyan/a2a"], meta);
        assert!(result.get("isError").is_none());
    }

    #[test]
    fn a_failed_task_is_an_error_of_the_tool() {
        let task = |state: &str| result_of(&json!({"task": {"id": "t", "status": {"state": state}}}));
        for state in ["TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED", "TASK_STATE_AUTH_REQUIRED"] {
            assert_eq!(task(state)["isError"], true, "{state}");
        }
        let waits = task("TASK_STATE_INPUT_REQUIRED");
        let words = "The agent writer waits for an answer. Call this tool again with the answer in `message` and with `task_id` \"t\".";
        assert_eq!((&waits["content"][0]["text"], waits.get("isError")), (&json!(words), None));
    }

    #[test]
    fn parts_of_unknown_kinds_are_never_left_out_silently() {
        let result = result_of(&json!({"message": {"parts": [{"text": "a"}, {"hologram": 1}]}}));
        let words = "1 parts of the answer are of a kind that A2A 1.0 does not have. They are left out.";
        assert_eq!(result["content"][1]["text"], words);
    }
}
