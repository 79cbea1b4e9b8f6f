//! What of a tool's definition a model acts on, in one text, and what differs between two of them. Nothing is judged here.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::approval::canonical;

/// The members that say what a tool is and does. Whatever else a definition holds (icons, `_meta`) may change freely.
const MEMBERS: [&str; 6] = ["annotations", "description", "inputSchema", "name", "outputSchema", "title"];

/// What a definition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    text: String,
}

/// One thing that is different.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// Where: the members on the way, with dots.
    pub path: String,
    /// What kind of thing it is: `name`, `parameter`, `result`, `risk`, `schema` or `text`.
    pub what: String,
    /// What stood there: a text as it is, all else as JSON.
    pub before: Option<String>,
    /// What stands there now.
    pub after: Option<String>,
}

impl Definition {
    /// Reads a raw definition; `risks` are the members of its `_meta` that say what a call may do.
    pub fn of(raw: &[u8], risks: &[&str]) -> Self {
        Self { text: picked(raw, risks).unwrap_or_else(|| String::from_utf8_lossy(raw).into_owned()) }
    }

    /// The same from its text.
    pub fn of_text(text: String) -> Self {
        Self { text }
    }

    /// Canonical JSON; the raw bytes where they have no canonical form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }
}

fn picked(raw: &[u8], risks: &[&str]) -> Option<String> {
    // A member that stands twice would be two definitions.
    let Value::Object(all) = serde_json::from_str(&canonical(raw).ok()?).ok()? else { return None };
    let mut kept: Map<String, Value> = all.iter().filter(|(key, _)| MEMBERS.contains(&key.as_str())).map(owned).collect();
    if let Some(Value::Object(meta)) = all.get("_meta") {
        let risks: Map<String, Value> = meta.iter().filter(|(key, _)| risks.contains(&key.as_str())).map(owned).collect();
        if !risks.is_empty() {
            kept.insert("_meta".into(), Value::Object(risks));
        }
    }
    canonical(&serde_json::to_vec(&kept).ok()?).ok()
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// What differs, in the order of the members.
pub fn differences(before: &Definition, after: &Definition) -> Vec<Difference> {
    let read = |one: &Definition| serde_json::from_str(&one.text).unwrap_or_else(|_| Value::String(one.text.clone()));
    let mut found = Vec::new();
    compare("", Some(&read(before)), Some(&read(after)), &mut found);
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let added = new.keys().filter(|key| !old.contains_key(*key));
        for key in old.keys().chain(added) {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            compare(&path, old.get(key), new.get(key), found);
        }
        return;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    found.push(Difference { path: path.to_owned(), what: what(path).to_owned(), before: before.map(text), after: after.map(text) });
}

fn what(path: &str) -> &'static str {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        ["name"] => "name",
        ["annotations", "title"] => "text",
        ["annotations" | "_meta", ..] => "risk",
        [.., "description" | "title"] => "text",
        ["inputSchema", "properties" | "required", ..] => "parameter",
        ["outputSchema", ..] => "result",
        _ => "schema",
    }
}
