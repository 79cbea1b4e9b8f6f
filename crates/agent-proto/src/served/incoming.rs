//! Messages of A2A clients: the skill and its arguments, read from raw JSON. Chooses no skill where none is named.

use json::{Duplicates, Members};

use crate::part::{Content, MessagePart};
use crate::served::rejection::{ClientRefusal, RefusalReason};

/// Member of a message's `metadata` that names the skill.
pub const SKILL: &str = "io.banyan/skill";
/// Bytes of the longest id of a client's making that is kept.
const LONGEST_ID: usize = 256;

/// Params of `SendMessage`, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// Task that the message goes on with.
    pub task: Option<String>,
    pub context: Option<String>,
    /// The skill and its raw arguments; `None` where a task goes on and nothing else is said.
    pub call: Option<SkillCall>,
    /// The client does not wait for the end.
    pub returns_at_once: bool,
}

/// A call of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCall {
    pub skill: String,
    /// A raw object.
    pub arguments: String,
}

impl SentMessage {
    /// Reads the params of `SendMessage`.
    pub fn read(params: &[u8]) -> Result<Self, ClientRefusal> {
        let params = Members::parse(params, Duplicates::RefuseDeep).map_err(|error| wrong(format!("The params are wrong: {error}.")))?;
        let message = params.object("message").ok_or_else(|| wrong("The params have no `message` object."))?;
        if message.str("role").as_deref() != Some("ROLE_USER") {
            return Err(wrong("The `role` of the message is not ROLE_USER."));
        }
        if message.str("messageId").is_none_or(|id| id.is_empty()) {
            return Err(wrong("The message has no `messageId`."));
        }
        let configuration = params.object("configuration");
        if configuration.as_ref().is_some_and(|asked| asked.get("taskPushNotificationConfig").is_some_and(|raw| raw != b"null")) {
            let text = "This gate sends no push notifications: ask for the task instead.";
            return Err(ClientRefusal::new(RefusalReason::PushNotificationNotSupported, text));
        }
        let returns_at_once = configuration.is_some_and(|asked| asked.get("returnImmediately") == Some(b"true"));
        let (task, context) = (id(&message, "taskId")?, id(&message, "contextId")?);
        let call = call(&message, task.is_some())?;
        Ok(Self { task, context, call, returns_at_once })
    }
}

fn wrong(text: impl Into<String>) -> ClientRefusal {
    ClientRefusal::new(RefusalReason::InvalidParams, text)
}

/// Reads an id; an empty one is none, as in ProtoJSON.
fn id(message: &Members<'_>, key: &str) -> Result<Option<String>, ClientRefusal> {
    let id = message.str(key).filter(|id| !id.is_empty());
    if id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
        return Err(wrong(format!("The `{key}` is longer than {LONGEST_ID} bytes.")));
    }
    Ok(id.map(std::borrow::Cow::into_owned))
}

/// Finds the skill and the arguments. Two data parts, or two names, are refused rather than chosen from.
fn call(message: &Members<'_>, goes_on: bool) -> Result<Option<SkillCall>, ClientRefusal> {
    let (parts, unknown) = MessagePart::read_all(message.get("parts"));
    if parts.is_empty() || unknown > 0 {
        return Err(wrong("The `parts` of the message are missing, or one has no known content."));
    }
    let (mut data, mut others) = (Vec::new(), 0);
    for part in parts {
        match part.content {
            Content::Data(raw) => data.push(raw),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => others += 1,
        }
    }
    let named = message.object("metadata").and_then(|metadata| metadata.str(SKILL).map(std::borrow::Cow::into_owned));
    if goes_on && named.is_none() && data.is_empty() {
        return Ok(None);
    }
    if data.len() > 1 || (named.is_some() && data.is_empty() && others > 0) {
        let text = "A call takes its arguments from one data part with an object. Text, files and further data parts are not read.";
        return Err(ClientRefusal::new(RefusalReason::ContentTypeNotSupported, text));
    }
    let data = data.pop();
    match named {
        Some(skill) => Ok(Some(SkillCall { skill, arguments: object(data.unwrap_or_else(|| "{}".into()))? })),
        None => data.and_then(|raw| in_data(&raw)).map(Some).ok_or_else(|| wrong(UNNAMED)),
    }
}

const UNNAMED: &str = "The message names no skill. Name one of the agent card in the message's metadata, \
     {\"io.banyan/skill\": \"ID\"}, with the arguments as one data part; or send one data part {\"skill\": \"ID\", \"arguments\": {…}}.";

/// Reads a data part that names the skill itself.
fn in_data(raw: &str) -> Option<SkillCall> {
    let data = Members::parse(raw.as_bytes(), Duplicates::RefuseDeep).ok()?;
    let (skill, tool) = (data.str("skill"), data.str("tool"));
    if skill.is_some() && tool.is_some() {
        return None;
    }
    let arguments = data.get("arguments").unwrap_or(b"{}");
    let arguments = object(String::from_utf8_lossy(arguments).into_owned()).ok()?;
    Some(SkillCall { skill: skill.or(tool)?.into_owned(), arguments })
}

fn object(raw: String) -> Result<String, ClientRefusal> {
    if raw.starts_with('{') { Ok(raw) } else { Err(wrong("The arguments are no object.")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Result<SentMessage, ClientRefusal> {
        SentMessage::read(format!("{{\"message\":{{\"messageId\":\"m\",\"role\":\"ROLE_USER\",{message}}}}}").as_bytes())
    }

    #[test]
    fn metadata_or_a_data_part_names_the_skill() {
        let call = |skill: &str, arguments: &str| Some(SkillCall { skill: skill.into(), arguments: arguments.into() });
        let by_metadata = read(r#""metadata":{"io.banyan/skill":"a__b"},"parts":[{"data":{"n": 1.50}}]"#).unwrap();
        assert_eq!(by_metadata.call, call("a__b", r#"{"n": 1.50}"#));
        for key in ["skill", "tool"] {
            let by_data = read(&format!(r#""parts":[{{"text":"please"}},{{"data":{{"{key}":"a","arguments":{{"x":[]}}}}}}]"#)).unwrap();
            assert_eq!(by_data.call, call("a", r#"{"x":[]}"#));
        }
    }

    #[test]
    fn a_message_without_a_skill_is_never_guessed() {
        for parts in [r#"[{"text":"add 1 and 2"}]"#, r#"[{"data":{"x":1}}]"#, r#"[{"data":{"skill":"a","tool":"b"}}]"#, r#"[{"data":3}]"#] {
            let refused = read(&format!(r#""parts":{parts}"#)).unwrap_err();
            assert_eq!((refused.kind, refused.message.as_str()), (RefusalReason::InvalidParams, UNNAMED), "{parts}");
        }
    }

    #[test]
    fn arguments_come_from_one_data_part_alone() {
        let named = |parts: &str| read(&format!(r#""metadata":{{"io.banyan/skill":"a"}},"parts":{parts}"#)).unwrap_err().kind;
        assert_eq!(named(r#"[{"data":{}},{"data":{}}]"#), RefusalReason::ContentTypeNotSupported);
        assert_eq!(named(r#"[{"text":"x"}]"#), RefusalReason::ContentTypeNotSupported);
        assert_eq!(named(r#"[{"data":[1]}]"#), RefusalReason::InvalidParams);
        assert_eq!(named(r#"[{"data":{"a":1,"a":2}}]"#), RefusalReason::InvalidParams);
    }

    #[test]
    fn a_task_goes_on_without_naming_a_skill_again() {
        let sent = read(r#""taskId":"t","parts":[{"text":"go on"}]"#).unwrap();
        assert_eq!((sent.task.as_deref(), sent.call), (Some("t"), None));
    }
}
