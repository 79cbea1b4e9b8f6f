//! Tasks and agent cards as JSON for A2A clients. Texts of tools go out as they came. Holds no task.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat};
use json::{Duplicates, Members, quote};

use crate::served::input::TaskQuestion;
use crate::served::nesting::fits;
use crate::task::TaskState;

/// Member of metadata with a line of `Execution-Context`, where an event comes after the fields of HTTP.
pub const EVIDENCE: &str = "io.banyan/execution-context";

/// A task, as its client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedTask {
    pub id: String,
    pub context: String,
    pub state: TaskState,
    /// Time of the last change of the state, in milliseconds since 1970.
    pub changed: i64,
    /// Words about the state.
    pub words: Option<String>,
    /// Question for which the task waits.
    pub question: Option<Arc<TaskQuestion>>,
    /// Raw array of artifacts.
    pub artifacts: Option<String>,
}

impl ServedTask {
    /// Counts the bytes that the task holds.
    pub fn size(&self) -> usize {
        let (words, artifacts) = (self.words.as_ref().map_or(0, String::len), self.artifacts.as_ref().map_or(0, String::len));
        let question = self.question.as_ref().map_or(0, |question| question.size());
        self.id.len() + self.context.len() + words + question + artifacts
    }

    /// Writes the task.
    pub fn write(&self) -> String {
        let artifacts = self.artifacts.as_ref().map(|artifacts| format!(",\"artifacts\":{artifacts}"));
        self.with(&artifacts.unwrap_or_default())
    }

    /// Writes the task without its artifacts.
    pub fn write_brief(&self) -> String {
        self.with("")
    }

    /// Writes the events of a change: the artifacts, if any, and the state behind them, with the tokens of an ended task.
    pub fn updates(&self, evidence: Option<&str>) -> Vec<String> {
        let head = format!("\"taskId\":{},\"contextId\":{}", quote(&self.id), quote(&self.context));
        let artifacts = self.artifacts.as_ref().and_then(|raw| json::elements(raw.as_bytes())).unwrap_or_default();
        let artifacts = artifacts.into_iter().map(String::from_utf8_lossy);
        let mut updates: Vec<String> =
            artifacts.map(|raw| format!("{{\"artifactUpdate\":{{{head},\"artifact\":{raw},\"lastChunk\":true}}}}")).collect();
        updates.push(self.status_update(evidence));
        updates
    }

    /// Writes the event of the state, with the tokens of an ended task as metadata.
    pub fn status_update(&self, evidence: Option<&str>) -> String {
        let (id, context, status) = (quote(&self.id), quote(&self.context), self.status());
        let metadata = evidence.map(|line| format!(",\"metadata\":{{\"{EVIDENCE}\":{}}}", quote(line))).unwrap_or_default();
        format!("{{\"statusUpdate\":{{\"taskId\":{id},\"contextId\":{context},\"status\":{status}{metadata}}}}}")
    }

    fn with(&self, more: &str) -> String {
        let (id, context, status) = (quote(&self.id), quote(&self.context), self.status());
        format!("{{\"id\":{id},\"contextId\":{context},\"status\":{status}{more}}}")
    }

    fn status(&self) -> String {
        let (id, context, state) = (quote(&self.id), quote(&self.context), self.state.name());
        let words = self.question.as_ref().map(|question| &question.words).or(self.words.as_ref());
        let message = words.map(|words| {
            let (message, words) = (quote(&format!("{}-{state}-{}", self.id, self.changed)), quote(words));
            let schema = self.question.as_ref().map(|question| format!(",{{\"data\":{{\"requestedSchema\":{}}}}}", question.schema));
            let schema = schema.unwrap_or_default();
            format!(
                ",\"message\":{{\"messageId\":{message},\"taskId\":{id},\"contextId\":{context},\"role\":\"ROLE_AGENT\",\
                 \"parts\":[{{\"text\":{words}}}{schema}]}}"
            )
        });
        let moment = DateTime::from_timestamp_millis(self.changed).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true);
        let message = message.unwrap_or_default();
        format!("{{\"state\":\"{state}\",\"timestamp\":\"{moment}\"{message}}}")
    }
}

/// Result of a tool, as the end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    pub state: TaskState,
    pub words: Option<String>,
    pub artifacts: Option<String>,
}

impl TaskEnd {
    /// Reads the result of `tools/call`. The text of a tool that failed is said as words about the state as well.
    pub fn of_result(result: &[u8]) -> Self {
        let members = Members::again(result);
        let content = members.get("content").and_then(json::elements).unwrap_or_default();
        let mut parts: Vec<String> = content.iter().map(|item| part(item)).collect();
        parts.extend(members.get("structuredContent").map(data));
        let metadata = members.get("_meta").map(|raw| format!(",\"metadata\":{{\"io.banyan/meta\":{}}}", value(raw)));
        let artifact = format!("[{{\"artifactId\":\"result\",\"parts\":[{}]{}}}]", parts.join(","), metadata.unwrap_or_default());
        let artifacts = (!parts.is_empty()).then_some(artifact);
        if members.get("isError") != Some(b"true") {
            return Self { state: TaskState::Completed, words: None, artifacts };
        }
        let texts =
            content.iter().filter_map(|item| Members::parse(item, Duplicates::RefuseTop).ok()?.str("text").map(|text| text.into_owned()));
        let words = texts.collect::<Vec<String>>().join("\n");
        Self { state: TaskState::Failed, words: Some(words), artifacts }
    }
}

/// Writes an item of content as a part. An item without a form in A2A goes out whole, as data.
fn part(item: &[u8]) -> String {
    let members = Members::again(item);
    let media = members.str("mimeType").map(|kind| format!(",\"mediaType\":{}", quote(&kind))).unwrap_or_default();
    let plain = !members.has("annotations") && !members.has("_meta");
    let written = match members.str("type").as_deref() {
        Some("text") if plain => members.get("text").map(|raw| ("text", raw, String::new())),
        Some("image" | "audio") if plain => members.get("data").map(|raw| ("raw", raw, media)),
        _ => None,
    };
    match written {
        Some((key, raw, more)) => format!("{{\"{key}\":{}{more}}}", String::from_utf8_lossy(raw)),
        None => data(item),
    }
}

/// Writes a value as a part. A value too deep for readers of tasks goes out as text, which loses nothing.
fn data(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    if fits(raw) { format!("{{\"data\":{text}}}") } else { format!("{{\"text\":{},\"mediaType\":\"application/json\"}}", quote(&text)) }
}

/// Writes a value, or its text where the value is too deep.
fn value(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    if fits(raw) { text.into_owned() } else { quote(&text) }
}

/// A card to be written.
#[derive(Clone, Debug)]
pub struct ServedCard<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub version: &'a str,
    /// Address of both bindings, without a slash at the end.
    pub url: &'a str,
    pub wants_credential: bool,
    /// Some addresses may be told of tasks.
    pub has_push: bool,
    pub skills: Vec<String>,
}

impl ServedCard<'_> {
    /// Writes the card.
    pub fn write(&self) -> String {
        let interface = |binding: &str, path: &str| {
            let url = quote(&format!("{}{path}", self.url));
            format!("{{\"url\":{url},\"protocolBinding\":\"{binding}\",\"protocolVersion\":\"1.0\"}}")
        };
        let security = if self.wants_credential {
            ",\"securitySchemes\":{\"bearer\":{\"httpAuthSecurityScheme\":{\"scheme\":\"Bearer\"}}},\
             \"securityRequirements\":[{\"schemes\":{\"bearer\":{}}}]"
        } else {
            ""
        };
        format!(
            "{{\"name\":{},\"description\":{},\"version\":{},\"supportedInterfaces\":[{},{}],\
             \"capabilities\":{{\"streaming\":true,\"pushNotifications\":{}}}{security},\
             \"defaultInputModes\":[\"application/json\"],\"defaultOutputModes\":[\"text/plain\",\"application/json\"],\"skills\":[{}]}}",
            quote(self.name),
            quote(self.description),
            quote(self.version),
            interface("JSONRPC", "/a2a"),
            interface("HTTP+JSON", "/a2a"),
            self.has_push,
            self.skills.join(",")
        )
    }
}

/// Writes a skill from the raw definition of a tool; `None`: without a name.
pub fn skill(tool: &[u8]) -> Option<String> {
    let tool = Members::parse(tool, Duplicates::RefuseTop).ok()?;
    let id = tool.str("name")?;
    let name = tool.str("title").filter(|title| !title.is_empty()).unwrap_or_else(|| id.clone());
    let description = tool.str("description").filter(|text| !text.is_empty()).unwrap_or_else(|| id.clone());
    Some(format!("{{\"id\":{},\"name\":{},\"description\":{},\"tags\":[\"tool\"]}}", quote(&id), quote(&name), quote(&description)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_of_content_becomes_a_part() {
        let end = TaskEnd::of_result(
            br#"{"content":[{"type":"text","text":"a\u00e9"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"new","x":1.0}],"structuredContent":{"n":1.50},"_meta":{"k":2}}"#,
        );
        assert_eq!((end.state, end.words), (TaskState::Completed, None));
        let wanted = r#"[{"artifactId":"result","parts":[{"text":"a\u00e9"},{"raw":"AA==","mediaType":"image/png"},{"data":{"type":"new","x":1.0}},{"data":{"n":1.50}}],"metadata":{"io.banyan/meta":{"k":2}}}]"#;
        assert_eq!(end.artifacts.as_deref(), Some(wanted));
    }

    #[test]
    fn a_deep_value_goes_out_as_text() {
        let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
        let end = TaskEnd::of_result(format!(r#"{{"content":[],"structuredContent":{{"a":{deep}}}}}"#).as_bytes());
        let artifacts: serde_json::Value = serde_json::from_str(&end.artifacts.unwrap()).unwrap();
        assert_eq!(artifacts[0]["parts"][0]["text"], format!(r#"{{"a":{deep}}}"#));
    }

    #[test]
    fn a_tool_that_failed_ends_its_task_as_failed() {
        let end = TaskEnd::of_result(br#"{"content":[{"type":"text","text":"no ink"}],"isError":true}"#);
        assert_eq!((end.state, end.words.as_deref()), (TaskState::Failed, Some("no ink")));
    }

    #[test]
    fn a_written_task_is_sound_json() {
        let task = ServedTask {
            id: "t\"".into(),
            context: "c".into(),
            state: TaskState::AuthRequired,
            changed: 1_500,
            words: Some("open \\ this".into()),
            question: None,
            artifacts: None,
        };
        let read: serde_json::Value = serde_json::from_str(&task.write()).unwrap();
        assert_eq!((&read["id"], &read["status"]["state"]), (&"t\"".into(), &"TASK_STATE_AUTH_REQUIRED".into()));
        assert_eq!(read["status"]["message"]["parts"][0]["text"], "open \\ this");
        assert_eq!(read["status"]["timestamp"], "1970-01-01T00:00:01.500Z");
    }

    #[test]
    fn a_question_goes_out_with_its_schema() {
        let params = br#"{"message":"which?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;
        let question = TaskQuestion::read("elicitation/create", params).unwrap();
        let task = ServedTask {
            id: "t".into(),
            context: "c".into(),
            state: TaskState::InputRequired,
            changed: 0,
            words: None,
            question: Some(Arc::new(question)),
            artifacts: None,
        };
        let read: serde_json::Value = serde_json::from_str(&task.write()).unwrap();
        let parts = &read["status"]["message"]["parts"];
        assert_eq!(
            (&parts[0]["text"], &parts[1]["data"]["requestedSchema"]["properties"]["n"]["type"]),
            (&"which?".into(), &"integer".into())
        );
    }

    #[test]
    fn an_artifact_goes_out_before_the_end() {
        let task = ServedTask {
            id: "t".into(),
            context: "c".into(),
            state: TaskState::Completed,
            changed: 0,
            words: None,
            question: None,
            artifacts: Some(r#"[{"artifactId":"result","parts":[{"text":"a"}]}]"#.into()),
        };
        let [artifact, status] = &task.updates(None)[..] else { panic!("{:?}", task.updates(None)) };
        let wanted = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"result","parts":[{"text":"a"}]},"lastChunk":true}}"#;
        assert_eq!(artifact, wanted);
        let status: serde_json::Value = serde_json::from_str(status).unwrap();
        assert_eq!(status["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    }

    #[test]
    fn a_tool_without_words_has_its_name_as_description() {
        let made: serde_json::Value = serde_json::from_str(&skill(br#"{"name":"a__b"}"#).unwrap()).unwrap();
        assert_eq!((&made["id"], &made["description"]), (&"a__b".into(), &"a__b".into()));
        assert!(skill(b"{}").is_none());
    }
}
