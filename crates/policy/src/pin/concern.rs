//! What a person should know about a definition before taking it: a few marks of definitions that were made to mislead a model. They are
//! hints, and their absence proves nothing: nothing is decided by them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Definition;
use super::others::{Other, Others, skeleton};
use super::phrase::{Mark, marks};

/// One thing to know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// There are characters in it that nobody sees.
    Hidden,
    /// It speaks to the model: the words.
    Instructs(String),
    /// Its name is, or looks like, that of this tool of another server.
    LooksLike(String),
    /// It speaks of this tool of another server.
    Names(String),
    /// Code or a command stands in it: the words.
    Runs(String),
    /// It reaches for secrets, or sends something elsewhere: the words.
    Takes(String),
}

/// What there is to know about a definition of a server of `mount`. `tool`: its name, where it is that of a tool. `is_hidden`: whether a
/// character is one that nobody sees.
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

/// All texts that a model reads; names of parameters are texts too.
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
