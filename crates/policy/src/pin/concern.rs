//! What a person should know about a definition before taking it: a few marks of definitions that were made to mislead a model. They are
//! hints, and their absence proves nothing: nothing is decided by them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Definition;
use super::phrase::{Mark, marks};

/// Shorter names are words of every language.
const SHORTEST: usize = 5;

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

/// A tool of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other<'a> {
    /// The mount.
    pub mount: &'a str,
    /// The tool, as its server names it.
    pub tool: &'a str,
}

/// What there is to know about a definition. `tool`: its name, where it is that of a tool. `is_hidden`: whether a character is one that
/// nobody sees.
pub fn concerns(tool: Option<&str>, definition: &Definition, others: &[Other<'_>], is_hidden: impl Fn(char) -> bool) -> Vec<Concern> {
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
    for Other { mount, tool: other } in others {
        let dotted = format!("{mount}.{other}");
        if tool.is_some_and(|tool| skeleton(tool) == skeleton(other)) {
            found.push(Concern::LooksLike(dotted));
        } else if other.len() >= SHORTEST && plain.iter().any(|text| has_word(text, &other.to_lowercase())) {
            found.push(Concern::Names(dotted));
        }
    }
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

/// A name without what makes two that look alike different.
fn skeleton(name: &str) -> String {
    let alike = |c: char| match c {
        '0' | 'о' | 'ο' => 'o',
        '1' | 'і' | 'ı' | '|' => 'l',
        'i' => 'l',
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'у' => 'y',
        'х' => 'x',
        other => other,
    };
    name.chars().filter(|c| c.is_alphanumeric() || *c == '|').flat_map(char::to_lowercase).map(alike).collect()
}

/// Whether a word stands in a text by itself.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
