//! Skills as tools: their definitions, and the arguments of a call as a message. Sends nothing.

use std::collections::BTreeMap;

use agent_proto::card::{AgentCard, Skill};
use agent_proto::operation::OutgoingMessage;
use agent_proto::part::{Content, MessagePart};
use bridge::EXTENSION_KEY;
use config::suggest;
use json::{Duplicates, Members, quote};

/// Member of a message's metadata that names the skill: A2A itself has no place for it.
pub const SKILL_KEY: &str = "io.banyan/skill";
/// Arguments of a tool made from a skill.
const ARGUMENTS: [&str; 5] = ["message", "data", "files", "context_id", "task_id"];
/// Most files of a call.
const MOST_FILES: usize = 100;

/// The tools of an agent, by name.
#[derive(Debug, Default)]
pub struct SkillTools(BTreeMap<String, Skill>);

impl SkillTools {
    /// Names the skills of a card: their ids as far as a name may be like that.
    pub fn new(card: AgentCard) -> Self {
        let (mut tools, mut counts) = (BTreeMap::new(), BTreeMap::new());
        for skill in card.skills {
            let name = suggest::segment(&skill.id).to_string();
            let count = counts.entry(name.clone()).or_insert(1_usize);
            let mut free = name.clone();
            while tools.contains_key(&free) {
                *count += 1;
                free = format!("{}-{count}", &name[..name.len().min(58)]);
            }
            tools.insert(free, skill);
        }
        Self(tools)
    }

    /// Finds the skill behind a tool.
    pub fn find(&self, tool: &str) -> Option<&Skill> {
        self.0.get(tool)
    }

    /// Writes the result of `tools/list`.
    pub fn list(&self) -> String {
        let tools: Vec<String> = self.0.iter().map(|(name, skill)| definition(name, skill)).collect();
        format!("{{\"tools\":[{}]}}", tools.join(","))
    }
}

fn definition(name: &str, skill: &Skill) -> String {
    let mut description = skill.description.clone();
    if !skill.tags.is_empty() {
        description.push_str(&format!("\nTags: {}.", skill.tags.join(", ")));
    }
    for example in &skill.examples {
        description.push_str(&format!("\nExample: {example}"));
    }
    let required = if skill.takes_text { "message" } else { "data" };
    format!(
        r#"{{"name":{},"title":{},"description":{},"inputSchema":{{"type":"object","additionalProperties":false,"properties":{{"message":{{"type":"string","description":"Message to the agent, as to a person."}},"data":{{"description":"JSON for the agent, beside the message or instead of it."}},"files":{{"type":"array","maxItems":{MOST_FILES},"items":{{"type":"object","additionalProperties":false,"properties":{{"url":{{"type":"string","description":"Address of the file."}},"base64":{{"type":"string","description":"Content of the file, where it has no address."}},"name":{{"type":"string"}},"media_type":{{"type":"string"}}}}}}}},"context_id":{{"type":"string","description":"Continues a conversation: the context_id of an earlier answer."}},"task_id":{{"type":"string","description":"Answers a task that waits for input: the task_id of an earlier answer."}}}},"required":["{required}"]}},"_meta":{{"{SKILL_KEY}":{}}}}}"#,
        quote(name),
        quote(if skill.name.is_empty() { &skill.id } else { &skill.name }),
        quote(description.trim()),
        quote(&skill.id),
    )
}

/// Reads the arguments of a call as a message to `skill`. The error says what is wrong with the arguments.
/// `extension` is a raw object that came along from another protocol.
pub fn message(skill: &Skill, arguments: &[u8], extension: Option<&[u8]>, id: String) -> Result<OutgoingMessage, String> {
    let arguments =
        Members::parse(arguments, Duplicates::RefuseDeep).map_err(|error| format!("the arguments are no JSON object: {error}"))?;
    if let Some((unknown, _)) = arguments.iter().find(|(key, _)| !ARGUMENTS.contains(&key.as_ref())) {
        let near = suggest::nearest(&unknown, ARGUMENTS).map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
        return Err(format!("there is no argument `{unknown}`{near}"));
    }
    let text = |key: &str| match arguments.get(key) {
        None | Some(b"null") => Ok(None),
        Some(raw) => json::as_str(raw).map(|text| Some(text.into_owned())).ok_or_else(|| format!("`{key}` is a string")),
    };
    let mut parts: Vec<MessagePart> = text("message")?.into_iter().map(|text| MessagePart::new(Content::Text(text))).collect();
    if let Some(raw) = arguments.get("data") {
        let media_type = Some("application/json".to_owned());
        parts.push(MessagePart { media_type, ..MessagePart::new(Content::Data(String::from_utf8_lossy(raw).into_owned())) });
    }
    parts.extend(arguments.get("files").map(files).transpose()?.unwrap_or_default());
    if parts.is_empty() {
        return Err("the agent gets nothing: give `message`, `data` or `files`".into());
    }
    let mut metadata = vec![(SKILL_KEY.to_owned(), quote(&skill.id))];
    metadata.extend(extension.map(|raw| (EXTENSION_KEY.to_owned(), String::from_utf8_lossy(raw).into_owned())));
    Ok(OutgoingMessage { id, context: text("context_id")?, task: text("task_id")?, parts, metadata })
}

fn files(raw: &[u8]) -> Result<Vec<MessagePart>, String> {
    let files = json::elements(raw).ok_or("`files` is a list")?;
    if files.len() > MOST_FILES {
        return Err(format!("`files` has more than {MOST_FILES} entries"));
    }
    files
        .into_iter()
        .enumerate()
        .map(|(at, file)| file_part(file).ok_or_else(|| format!("`files[{at}]` needs either `url` or `base64`, as strings")))
        .collect()
}

fn file_part(raw: &[u8]) -> Option<MessagePart> {
    let file = Members::parse(raw, Duplicates::RefuseTop).ok()?;
    let text = |key: &str| file.str(key).map(std::borrow::Cow::into_owned);
    let content = match (text("url"), text("base64")) {
        (Some(url), None) => Content::Url(url),
        (None, Some(base64)) => Content::Raw(base64),
        (None, None) | (Some(_), Some(_)) => return None,
    };
    Some(MessagePart { content, filename: text("name"), media_type: text("media_type") })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn skill(id: &str, takes_text: bool) -> Skill {
        let (tags, examples) = (vec!["a".into()], vec!["do".into()]);
        Skill { id: id.into(), name: String::new(), description: "Does.".into(), tags, examples, takes_text }
    }

    fn sent(arguments: &Value) -> Result<OutgoingMessage, String> {
        message(&skill("s", true), arguments.to_string().as_bytes(), None, "m".into())
    }

    #[test]
    fn every_skill_has_a_tool_of_its_own_name() {
        let card = AgentCard {
            name: "a".into(),
            description: String::new(),
            version: String::new(),
            interfaces: Vec::new(),
            streams: false,
            skills: vec![skill("Geo/Route", true), skill("geo-route", false), skill("\u{202e}", true)],
            required: None,
        };
        let tools = SkillTools::new(card);
        let list: Value = serde_json::from_str(&tools.list()).unwrap();
        let names: Vec<&str> = list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["geo-route", "geo-route-2", "server"]);
        assert_eq!(list["tools"][0]["inputSchema"]["required"], json!(["message"]));
        assert_eq!(list["tools"][1]["inputSchema"]["required"], json!(["data"]));
        assert_eq!(list["tools"][0]["description"], "Does.\nTags: a.\nExample: do");
        assert_eq!(list["tools"][0]["_meta"]["io.banyan/skill"], "Geo/Route", "the id is part of what pins hold");
        assert_eq!(tools.find("geo-route").unwrap().id, "Geo/Route");
    }

    #[test]
    fn arguments_become_parts_of_a_message() {
        let files = json!([{"url": "https://a/b", "name": "b"}, {"base64": "AA==", "media_type": "image/png"}]);
        let arguments = json!({"message": "hi", "data": {"n": 1}, "files": files, "context_id": "c", "task_id": null});
        let message = sent(&arguments).unwrap();
        assert_eq!((message.context.as_deref(), message.task), (Some("c"), None));
        let kinds: Vec<&Content> = message.parts.iter().map(|part| &part.content).collect();
        let data = Content::Data("{\"n\":1}".into());
        assert_eq!(kinds, [&Content::Text("hi".into()), &data, &Content::Url("https://a/b".into()), &Content::Raw("AA==".into())]);
        assert_eq!(message.metadata, [("io.banyan/skill".to_owned(), "\"s\"".to_owned())]);
    }

    #[test]
    fn wrong_arguments_are_refused_with_what_is_wrong() {
        let refused = |arguments: Value| sent(&arguments).unwrap_err();
        assert_eq!(refused(json!({"messages": "hi"})), "there is no argument `messages`: did you mean `message`?");
        assert_eq!(refused(json!({})), "the agent gets nothing: give `message`, `data` or `files`");
        assert_eq!(refused(json!({"message": 1})), "`message` is a string");
        assert_eq!(refused(json!({"files": [{"url": "a", "base64": "b"}]})), "`files[0]` needs either `url` or `base64`, as strings");
    }
}
