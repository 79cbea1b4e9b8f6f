//! Messages of A2A clients: the skill and its arguments, read from raw JSON. Chooses no skill where none is named.

use json::{Duplicates, Members};

use crate::part::{Content, MessagePart};
use crate::served::input::{GivenInput, INPUT};
use crate::served::push::PushWish;
use crate::served::rejection::{ClientRefusal, RefusalReason};

/// Member of a message's `metadata` that names the skill.
pub const SKILL: &str = "io.banyan/skill";
/// Bytes of the longest id of a client's making that is kept.
const LONGEST_ID: usize = 256;

/// Params of `SendMessage`, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// `messageId`, the same when the message is sent again.
    pub id: String,
    pub purpose: SentPurpose,
    pub context: Option<String>,
    pub push: Option<PushWish>,
    /// The client does not wait for the end.
    pub returns_at_once: bool,
}

/// Purpose of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentPurpose {
    Begins(SkillCall),
    GoesOn(OnwardMessage),
}

/// A message that goes on with a task. Only the task knows how the message is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnwardMessage {
    /// `messageId`.
    pub id: String,
    pub task: String,
    /// The message as a call, for a task at rest; `None` where no skill is named.
    pub call: Result<Option<SkillCall>, ClientRefusal>,
    /// The message as an answer, for a task that has asked.
    pub input: GivenInput,
}

/// A call of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCall {
    pub skill: String,
    /// A raw object.
    pub arguments: String,
    /// A raw object for the server of the skill, with what came along in another protocol.
    pub extension: Option<String>,
}

impl SkillCall {
    /// Counts the bytes that the call holds.
    pub fn size(&self) -> usize {
        self.skill.len() + self.arguments.len() + self.extension.as_ref().map_or(0, String::len)
    }
}

impl SentMessage {
    /// Reads the params of `SendMessage`.
    pub fn read(params: &[u8]) -> Result<Self, ClientRefusal> {
        let params = Members::parse(params, Duplicates::RefuseDeep).map_err(|error| wrong(format!("The params are wrong: {error}.")))?;
        let message = params.object("message").ok_or_else(|| wrong("The params have no `message` object."))?;
        if message.str("role").as_deref() != Some("ROLE_USER") {
            return Err(wrong("The `role` of the message is not ROLE_USER."));
        }
        let own = id(&message, "messageId")?.ok_or_else(|| wrong("The message has no `messageId`."))?;
        let configuration = params.object("configuration");
        let push = configuration.as_ref().and_then(|asked| asked.get("taskPushNotificationConfig")).filter(|raw| *raw != b"null");
        let push = push.map(PushWish::read).transpose()?;
        let returns_at_once = configuration.is_some_and(|asked| asked.get("returnImmediately") == Some(b"true"));
        let context = id(&message, "contextId")?;
        let said = SaidParts::read(&message)?;
        let purpose = match id(&message, "taskId")? {
            Some(task) => {
                let input = GivenInput::of_parts(&said.parts, said.input.as_deref());
                SentPurpose::GoesOn(OnwardMessage { id: own.clone(), task, call: said.call(true), input })
            }
            None => SentPurpose::Begins(said.call(false)?.ok_or_else(|| wrong(UNNAMED))?),
        };
        Ok(Self { id: own, purpose, context, push, returns_at_once })
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

/// Parts of a message, with the names in its metadata.
struct SaidParts {
    parts: Vec<MessagePart>,
    skill: Option<String>,
    input: Option<String>,
}

impl SaidParts {
    fn read(message: &Members<'_>) -> Result<Self, ClientRefusal> {
        let (parts, unknown) = MessagePart::read_all(message.get("parts"));
        if parts.is_empty() || unknown > 0 {
            return Err(wrong("The `parts` of the message are missing, or one has no known content."));
        }
        let metadata = message.object("metadata");
        if metadata.is_none() && message.get("metadata").is_some_and(|raw| raw != b"null") {
            return Err(wrong("The `metadata` of the message is no object."));
        }
        let word = |key| metadata.as_ref().and_then(|metadata| metadata.str(key).map(std::borrow::Cow::into_owned));
        // A word of another kind than text counts as an unknown word, and not as none.
        let input = metadata.as_ref().and_then(|metadata| metadata.get(INPUT)).map(|raw| word(INPUT).unwrap_or_else(|| lossy(raw)));
        Ok(Self { parts, skill: word(SKILL), input })
    }

    /// Finds the skill and the arguments. Two data parts, or two names, are refused rather than chosen from.
    fn call(&self, goes_on: bool) -> Result<Option<SkillCall>, ClientRefusal> {
        let mut data = self.parts.iter().filter_map(|part| match &part.content {
            Content::Data(raw) => Some(raw.as_str()),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        });
        let (data, is_second) = (data.next(), data.next().is_some());
        if goes_on && self.skill.is_none() && data.is_none() {
            return Ok(None);
        }
        if is_second || (self.skill.is_some() && data.is_none()) {
            let text = "A call takes its arguments from one data part with an object. Text, files and further data parts are not read.";
            return Err(ClientRefusal::new(RefusalReason::ContentTypeNotSupported, text));
        }
        match (&self.skill, data) {
            (Some(skill), Some(data)) => Ok(Some(SkillCall { skill: skill.clone(), arguments: object(data.to_owned())?, extension: None })),
            (_, data) => data.and_then(in_data).map(Some).ok_or_else(|| wrong(UNNAMED)),
        }
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
    let arguments = object(lossy(arguments)).ok()?;
    Some(SkillCall { skill: skill.or(tool)?.into_owned(), arguments, extension: None })
}

fn lossy(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
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
        let call = |skill: &str, arguments: &str| {
            SentPurpose::Begins(SkillCall { skill: skill.into(), arguments: arguments.into(), extension: None })
        };
        let by_metadata = read(r#""metadata":{"io.banyan/skill":"a__b"},"parts":[{"data":{"n": 1.50}}]"#).unwrap();
        assert_eq!(by_metadata.purpose, call("a__b", r#"{"n": 1.50}"#));
        for key in ["skill", "tool"] {
            let by_data = read(&format!(r#""parts":[{{"text":"please"}},{{"data":{{"{key}":"a","arguments":{{"x":[]}}}}}}]"#)).unwrap();
            assert_eq!(by_data.purpose, call("a", r#"{"x":[]}"#));
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
        let onward = OnwardMessage { id: "m".into(), task: "t".into(), call: Ok(None), input: GivenInput::Text("go on".into()) };
        assert_eq!(sent.purpose, SentPurpose::GoesOn(onward));
    }

    #[test]
    fn an_answer_may_be_no_call() {
        let sent = read(r#""taskId":"t","parts":[{"data":{"colour":"green"}}]"#).unwrap();
        let SentPurpose::GoesOn(onward) = sent.purpose else { panic!("{sent:?}") };
        assert_eq!((onward.call.is_err(), onward.input), (true, GivenInput::Data(r#"{"colour":"green"}"#.into())));
        let sent = read(r#""taskId":"t","metadata":{"io.banyan/input":"decline"},"parts":[{"text":"no"}]"#).unwrap();
        let SentPurpose::GoesOn(onward) = sent.purpose else { panic!("{sent:?}") };
        assert_eq!(onward.input, GivenInput::Declined);
    }

    #[test]
    fn an_unknown_word_is_no_answer() {
        for word in [r#""Decline""#, r#""""#, "false", "null", "{}"] {
            let sent = read(&format!(r#""taskId":"t","metadata":{{"io.banyan/input":{word}}},"parts":[{{"text":"no"}}]"#)).unwrap();
            let SentPurpose::GoesOn(onward) = sent.purpose else { panic!("{sent:?}") };
            assert_eq!(onward.input, GivenInput::Unclear, "{word}");
        }
        assert!(read(r#""taskId":"t","metadata":"decline","parts":[{"text":"no"}]"#).is_err());
    }
}
