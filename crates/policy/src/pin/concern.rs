//! Concerns about a definition, for a person deciding on it: a few marks of definitions made to mislead a model. They are
//! hints, and their absence proves nothing: nothing is decided by them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Definition;
use super::others::{Other, Others, skeleton};
use super::phrase::{Mark, marks};

/// A concern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// Contains invisible characters.
    Hidden,
    /// Speaks to the model: the words.
    Instructs(String),
    /// Named like this tool of another server, or similarly.
    LooksLike(String),
    /// Mentions this tool of another server.
    Names(String),
    /// Contains code or a command: the words.
    Runs(String),
    /// Reaches for secrets, or sends something elsewhere: the words.
    Takes(String),
}

/// Lists the concerns about a definition of a server of `mount`. `tool`: the name, for a tool's definition. `is_hidden`: recognises
/// invisible characters.
pub fn concerns(
    mount: &str,
    tool: Option<&str>,
    definition: &Definition,
    others: &Others<'_>,
    is_hidden: impl Fn(char) -> bool,
) -> Vec<Concern> {
    let mut texts = Vec::new();
    match serde_json::from_str(definition.text()) {
        Ok(value) => gather(&value, false, &mut texts),
        Err(_) => texts.push(definition.text().to_owned()),
    }
    let mut found = Vec::new();
    if texts.iter().any(|text| text.chars().any(&is_hidden)) {
        found.push(Concern::Hidden);
    }
    let plain: Vec<String> = texts.iter().map(|text| text.chars().filter(|c| !is_hidden(*c)).collect::<String>().to_lowercase()).collect();
    found.extend(plain.iter().flat_map(|text| marks(text)).map(|(mark, words)| match mark {
        Mark::Instructs => Concern::Instructs(words),
        Mark::Runs => Concern::Runs(words),
        Mark::Takes => Concern::Takes(words),
    }));
    let dotted = |other: Other<'_>| format!("{}.{}", other.mount, other.tool);
    let own = tool.map(skeleton);
    found.extend(tool.iter().flat_map(|tool| others.alike(tool, mount)).map(|other| Concern::LooksLike(dotted(other))));
    let named = others.named(&plain, mount).filter(|other| own.as_ref().is_none_or(|own| *own != skeleton(other.tool)));
    found.extend(named.map(|other| Concern::Names(dotted(other))));
    found.sort();
    found.dedup();
    found
}

/// Gathers all texts read by a model; names of parameters are texts too.
fn gather(value: &Value, is_text: bool, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if is_text => texts.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| gather(one, is_text, texts)),
        Value::Object(all) => {
            for (key, value) in all {
                texts.push(key.clone());
                // The tool's own name is no text about anything.
                gather(value, is_text || key != "name", texts);
            }
        }
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
    }
}
