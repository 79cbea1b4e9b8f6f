//! Agent cards (A2A 1.0, section 8): the description that an agent publishes at [`WELL_KNOWN`]. Fetches none.

use std::borrow::Cow;

use json::{Duplicates, Members};

/// Path of a card, below the origin of its agent.
pub const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// Version of the protocol spoken here, as `A2A-Version` has it.
pub const VERSION: &str = "1.0";
/// Longest card, in bytes.
pub const MOST_CARD: usize = 1 << 20;
/// Most skills of a card.
const MOST_SKILLS: usize = 1_000;
/// Most interfaces of a card, and extensions that it may demand.
const MOST_INTERFACES: usize = 100;
/// Most tags, and most examples, of a skill. Further ones are left out.
const MOST_EXAMPLES: usize = 20;
/// Longest text of an agent within an error, in characters.
const LONGEST_WORD: usize = 80;

/// An agent, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    /// Version of the agent, not of the protocol.
    pub version: String,
    pub interfaces: Vec<Interface>,
    /// Answers can come as a stream of events.
    pub streams: bool,
    pub skills: Vec<Skill>,
    /// URI of the first extension that a client must know, if any.
    pub required: Option<String>,
}

/// A place where an agent takes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of another binding.
    pub binding: String,
    pub version: String,
    /// First segment of every path, or member of every request.
    pub tenant: Option<String>,
}

/// An ability of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    /// The skill reads text, or does not say what it reads.
    pub takes_text: bool,
}

/// The bindings spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    Rest,
}

/// Reasons to refuse a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    #[error("its agent card is not a JSON object: {0}")]
    Malformed(String),
    #[error("its agent card has no `{0}`")]
    Missing(&'static str),
    #[error("its agent card has more than {MOST_SKILLS} skills")]
    TooManySkills,
    #[error("its agent card has more than {MOST_INTERFACES} interfaces")]
    TooManyInterfaces,
    #[error("its agent card has a tenant that is no segment of a path")]
    Tenant,
    #[error(
        "it speaks A2A {0}, and this gate speaks A2A {VERSION}: bring the agent to a release that serves `\"protocolVersion\": \"{VERSION}\"`"
    )]
    OtherVersion(String),
    #[error("it can only be reached by {0}, and this gate speaks JSONRPC and HTTP+JSON: have the agent serve one of the two")]
    OtherBinding(String),
    #[error("it demands the extension {0}, which this gate does not know")]
    ExtensionDemanded(String),
}

impl AgentCard {
    /// Reads a card. Members that are unknown here are passed over.
    pub fn read(text: &[u8]) -> Result<Self, CardError> {
        let card = Members::parse(text, Duplicates::RefuseTop).map_err(|error| CardError::Malformed(error.to_string()))?;
        let interfaces = interfaces(&card)?;
        let name = card.str("name").filter(|name| !name.is_empty()).ok_or(CardError::Missing("name"))?;
        let capabilities = card.object("capabilities").unwrap_or_default();
        let takes_text = reads_text(card.get("defaultInputModes")).unwrap_or(true);
        let skills = json::elements(card.get("skills").ok_or(CardError::Missing("skills"))?).ok_or(CardError::Missing("skills"))?;
        if skills.len() > MOST_SKILLS {
            return Err(CardError::TooManySkills);
        }
        Ok(Self {
            name: name.into_owned(),
            description: text_at(&card, "description"),
            version: text_at(&card, "version"),
            interfaces,
            streams: capabilities.get("streaming") == Some(b"true"),
            skills: skills.into_iter().map(|skill| Skill::read(skill, takes_text)).collect::<Result<_, _>>()?,
            required: demanded(&capabilities),
        })
    }

    /// Chooses the interface to use: the first one of a binding and a version that are spoken here, for the order is the agent's preference.
    pub fn choose(&self) -> Result<(&Interface, Binding), CardError> {
        if let Some(extension) = &self.required {
            return Err(CardError::ExtensionDemanded(few(&[extension])));
        }
        let fitting = self.interfaces.iter().filter(|interface| interface.is_spoken());
        let mut usable = fitting.clone().filter_map(|interface| Some((interface, Binding::parse(&interface.binding)?)));
        usable.next().ok_or_else(|| {
            let bindings: Vec<&str> = fitting.map(|interface| interface.binding.as_str()).collect();
            if bindings.is_empty() {
                let versions: Vec<&str> = self.interfaces.iter().map(|interface| interface.version.as_str()).collect();
                return CardError::OtherVersion(few(&versions));
            }
            CardError::OtherBinding(few(&bindings))
        })
    }
}

impl Interface {
    /// Checks the major version alone: minor versions of A2A add and never take away.
    fn is_spoken(&self) -> bool {
        self.version.split('.').next() == VERSION.split('.').next()
    }
}

impl Binding {
    fn parse(text: &str) -> Option<Self> {
        [Self::JsonRpc, Self::Rest].into_iter().find(|binding| binding.name() == text)
    }

    /// Name in cards.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
        }
    }
}

impl Skill {
    fn read(text: &[u8], takes_text: bool) -> Result<Self, CardError> {
        let skill = Members::parse(text, Duplicates::RefuseTop).map_err(|error| CardError::Malformed(error.to_string()))?;
        let id = skill.str("id").filter(|id| !id.is_empty()).ok_or(CardError::Missing("skills[].id"))?;
        Ok(Self {
            id: id.into_owned(),
            name: text_at(&skill, "name"),
            description: text_at(&skill, "description"),
            tags: strings(skill.get("tags")),
            examples: strings(skill.get("examples")),
            takes_text: reads_text(skill.get("inputModes")).unwrap_or(takes_text),
        })
    }
}

/// Reads the interfaces. A card of A2A 0.3 has one by itself, and its version stands beside.
fn interfaces(card: &Members<'_>) -> Result<Vec<Interface>, CardError> {
    let Some(listed) = card.get("supportedInterfaces").and_then(json::elements) else {
        let old = card.str("url").ok_or(CardError::Missing("supportedInterfaces"))?;
        let binding = card.str("preferredTransport").unwrap_or(Cow::Borrowed("JSONRPC"));
        let version = card.str("protocolVersion").unwrap_or(Cow::Borrowed("0.3"));
        return Ok(vec![Interface { url: old.into(), binding: binding.into(), version: version.into(), tenant: None }]);
    };
    if listed.len() > MOST_INTERFACES {
        return Err(CardError::TooManyInterfaces);
    }
    let read = |text: &[u8]| {
        let interface = Members::parse(text, Duplicates::RefuseTop).map_err(|error| CardError::Malformed(error.to_string()))?;
        let tenant = interface.str("tenant").filter(|tenant| !tenant.is_empty()).map(Cow::into_owned);
        if tenant.as_deref().is_some_and(|tenant| matches!(tenant, "." | "..")) {
            return Err(CardError::Tenant);
        }
        Ok(Interface {
            url: interface.str("url").ok_or(CardError::Missing("supportedInterfaces[].url"))?.into_owned(),
            binding: interface.str("protocolBinding").ok_or(CardError::Missing("supportedInterfaces[].protocolBinding"))?.into_owned(),
            version: text_at(&interface, "protocolVersion"),
            tenant,
        })
    };
    let interfaces = listed.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if interfaces.is_empty() { Err(CardError::Missing("supportedInterfaces")) } else { Ok(interfaces) }
}

fn demanded(capabilities: &Members<'_>) -> Option<String> {
    let extensions = capabilities.get("extensions").and_then(json::elements).unwrap_or_default();
    let members = extensions.into_iter().filter_map(|extension| Members::parse(extension, Duplicates::RefuseTop).ok());
    let mut demanded = members.filter(|extension| extension.get("required") == Some(b"true"));
    demanded.next().map(|extension| text_at(&extension, "uri"))
}

fn text_at(members: &Members<'_>, key: &str) -> String {
    members.str(key).unwrap_or_default().into_owned()
}

/// Reads an array of strings; what is no string is passed over, and so is what stands behind the bound.
fn strings(raw: Option<&[u8]>) -> Vec<String> {
    let elements = raw.and_then(json::elements).unwrap_or_default();
    elements.into_iter().filter_map(json::as_str).take(MOST_EXAMPLES).map(Cow::into_owned).collect()
}

/// Looks for a media type of text; `None`: no media type is named.
fn reads_text(raw: Option<&[u8]>) -> Option<bool> {
    let modes = raw.and_then(json::elements).filter(|modes| !modes.is_empty())?;
    Some(modes.into_iter().filter_map(json::as_str).any(|mode| mode.starts_with("text/") || mode == "*/*"))
}

/// Names the first few of an agent's words, for an error.
fn few(words: &[impl AsRef<str>]) -> String {
    let short = words.iter().take(3).map(|word| word.as_ref().chars().take(LONGEST_WORD).collect::<String>());
    short.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = r#"{"name":"Writer","description":"Writes.","version":"2.1.0","new":{"in":1.5},
        "supportedInterfaces":[{"url":"grpc://a","protocolBinding":"GRPC","protocolVersion":"1.0"},
            {"url":"https://a/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"},
            {"url":"https://a/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.1","tenant":"t1"}],
        "capabilities":{"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"draft","name":"Draft","description":"Drafts a text.","tags":["text"],"examples":["a poem"]},
            {"id":"fix","name":"Fix","description":"","tags":[],"inputModes":["application/json"]}]}"#;

    #[test]
    fn the_first_interface_that_is_spoken_is_chosen() {
        let card = AgentCard::read(CARD.as_bytes()).unwrap();
        let (interface, binding) = card.choose().unwrap();
        assert_eq!((interface.url.as_str(), binding, interface.tenant.as_deref()), ("https://a/rest", Binding::Rest, Some("t1")));
        assert_eq!(card.skills.iter().map(|skill| skill.takes_text).collect::<Vec<_>>(), [true, false]);
        assert!(card.streams);
    }

    #[test]
    fn a_card_holds_no_more_than_its_text() {
        let modes = vec![r#""application/json""#; 10_000].join(",");
        let skills: Vec<String> = (0..MOST_SKILLS).map(|number| format!(r#"{{"id":"s{number}","tags":[{modes}]}}"#)).take(5).collect();
        let text = CARD.replace(r#""defaultInputModes":["text/plain"]"#, &format!(r#""defaultInputModes":[{modes}]"#));
        let text = text.replace(r#""skills":["#, &format!(r#""skills":[{},"#, skills.join(",")));
        let card = AgentCard::read(text.as_bytes()).unwrap();
        assert_eq!(card.skills[0].tags.len(), MOST_EXAMPLES);
        assert!(!card.skills[0].takes_text);
    }

    #[test]
    fn words_of_an_agent_in_an_error_are_few() {
        let long = CARD.replace("HTTP+JSON", &"x".repeat(100_000));
        let error = AgentCard::read(long.as_bytes()).unwrap().choose().unwrap_err();
        assert!(error.to_string().len() < 500, "{}", error.to_string().len());
    }

    #[test]
    fn a_useless_card_is_refused_with_its_fault() {
        let refused = |text: &str| AgentCard::read(text.as_bytes()).and_then(|card| card.choose().map(drop)).unwrap_err();
        let old = r#"{"name":"a","url":"https://a","protocolVersion":"0.3.0","skills":[]}"#;
        assert_eq!(refused(old), CardError::OtherVersion("0.3.0".into()));
        let grpc = CARD.replace("HTTP+JSON", "GRPC");
        assert_eq!(refused(&grpc), CardError::OtherBinding("GRPC and GRPC".into()));
        let demanding = CARD.replace(r#""streaming":true"#, r#""extensions":[{"uri":"urn:x","required":true}]"#);
        assert_eq!(refused(&demanding), CardError::ExtensionDemanded("urn:x".into()));
        assert_eq!(refused("{}"), CardError::Missing("supportedInterfaces"));
        assert!(matches!(refused("[1"), CardError::Malformed(_)));
        let many = format!(
            r#"{{"name":"a","supportedInterfaces":[{{"url":"u","protocolBinding":"JSONRPC"}}],"skills":[{}]}}"#,
            vec![r#"{"id":"a"}"#; MOST_SKILLS + 1].join(",")
        );
        assert_eq!(refused(&many), CardError::TooManySkills);
    }
}
