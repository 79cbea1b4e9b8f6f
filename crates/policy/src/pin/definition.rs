//! The part of a definition that a model acts on, as one text, and the differences between two. Nothing is judged here.

use json::canonical::{Numbers, members};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Kind;

/// Longest name of a member in a path, in bytes.
const LONGEST_NAME: usize = 100;
/// Bytes of a path that goes no deeper.
const LONGEST_PATH: usize = 400;

/// The part of a definition that a model acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    text: String,
    hash: [u8; 32],
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// The members on the way, with dots.
    pub path: String,
    /// Kind of the difference: `name`, `parameter`, `result`, `risk`, `schema` or `text`.
    pub what: String,
    /// The earlier value: text as it is, all else as JSON.
    pub before: Option<String>,
    /// The present value.
    pub after: Option<String>,
}

impl Definition {
    /// Reads a raw definition; `risks` are the members of a tool's `_meta` about the risk of a call.
    pub fn of(kind: Kind, raw: &[u8], risks: &[&str]) -> Self {
        Self::of_text(picked(kind, raw, risks).unwrap_or_else(|| String::from_utf8_lossy(raw).into_owned()))
    }

    /// Makes a definition of a server's instructions for use.
    pub fn of_instructions(said: &str) -> Self {
        let whole = Value::Object(Map::from_iter([("instructions".to_owned(), Value::String(said.to_owned()))]));
        Self::of(Kind::Instructions, whole.to_string().as_bytes(), &[])
    }

    /// Gives the instructions, for a definition of instructions.
    pub fn instructions(&self) -> Option<String> {
        let whole: Value = serde_json::from_str(&self.text).ok()?;
        whole.get("instructions")?.as_str().map(str::to_owned)
    }

    /// Tells if the definition holds nothing but its name.
    pub fn is_bare(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.text).is_ok_and(|all| all.len() == 1)
    }

    /// Makes a definition of its text.
    pub fn of_text(text: String) -> Self {
        Self { hash: Sha256::digest(&text).into(), text }
    }

    /// Gives canonical JSON, or the raw bytes where no canonical form exists.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }
}

fn picked(kind: Kind, raw: &[u8], risks: &[&str]) -> Option<String> {
    // A member that stands twice would be two definitions.
    let kept = members(raw, Numbers::Exact).ok()??.into_iter().filter_map(|(name, value)| match &*name {
        "_meta" if kind == Kind::Tool => {
            let risks = members(value.as_bytes(), Numbers::Exact).ok()??.into_iter().filter(|(name, _)| risks.contains(&name.as_str()));
            let risks = object(risks);
            (risks != "{}").then_some((name, risks))
        }
        _ => kind.members().contains(&&*name).then_some((name, value)),
    });
    Some(object(kept))
}

/// Of members in the canonical order.
fn object(members: impl Iterator<Item = (String, String)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", json::quote(&name))).collect();
    format!("{{{}}}", members.join(","))
}

/// Lists the differences, in the order of the members.
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
    if let ("arguments", Some(Value::Array(old)), Some(Value::Array(new))) = (path, before, after)
        && let (Some(old), Some(new)) = (by_name(old), by_name(new))
        && old != new
    {
        return compare(path, Some(&old), Some(&new), found);
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let added = new.keys().filter(|key| !old.contains_key(*key));
        for key in old.keys().chain(added) {
            compare(&below(path, key), old.get(key), new.get(key), found);
        }
        return;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    found.push(Difference { path: path.to_owned(), what: what(path).to_owned(), before: before.map(text), after: after.map(text) });
}

/// Makes the path of a member. Every difference holds a path, so long names above many members are cut.
fn below(path: &str, key: &str) -> String {
    let key = &key[..key.floor_char_boundary(LONGEST_NAME)];
    match path.len() {
        0 => key.to_owned(),
        1..LONGEST_PATH => format!("{path}.{key}"),
        _ => path.to_owned(),
    }
}

/// Maps the arguments of a prompt by name, if every argument has its own name.
fn by_name(all: &[Value]) -> Option<Value> {
    let named: Option<Map<String, Value>> = all.iter().map(|one| Some((one.get("name")?.as_str()?.to_owned(), one.clone()))).collect();
    named.filter(|named| named.len() == all.len()).map(Value::Object)
}

fn what(path: &str) -> &'static str {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        ["name"] => "name",
        ["annotations", "title"] => "text",
        ["annotations" | "_meta", ..] => "risk",
        [.., "description" | "title"] => "text",
        ["instructions"] => "text",
        ["arguments", ..] | ["inputSchema", "properties" | "required", ..] => "parameter",
        ["outputSchema", ..] => "result",
        _ => "schema",
    }
}
