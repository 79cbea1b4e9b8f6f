//! Shape of arguments, held against the schema that a tool declares: rules of a gate judge by that schema, so what goes beyond it is refused.
//! Knows the words of these schemas alone, and no tool.

use mcp_server::Arguments;
use net_proto::fault::{Code, Fault};
use serde_json::Value;

/// Characters of a name from a caller that a fault repeats.
const SHOWN: usize = 64;

/// Holds arguments against a schema of an object. The fault names the argument that is wrong, what was given and what `subject` takes.
pub(crate) fn check(subject: &str, schema: &Value, arguments: &Arguments) -> Result<(), Fault> {
    members(schema, arguments, "", subject)
}

fn members(schema: &Value, given: &Arguments, prefix: &str, subject: &str) -> Result<(), Fault> {
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    if let Some(other) = given.keys().find(|name| !properties.contains_key(*name)) {
        let names: Vec<String> = properties.keys().map(|name| format!("`{name}`")).collect();
        let (names, other) = (if names.is_empty() { "none".to_owned() } else { names.join(", ") }, cut(other));
        return Err(wrong(&format!("{prefix}{other}"), &format!("is no argument of {subject}, which takes {names}")));
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !given.contains_key(*name)) {
        return Err(wrong(&format!("{prefix}{missing}"), &format!("is missing: {}", taken(&properties[missing]))));
    }
    given.iter().try_for_each(|(name, value)| fits(&properties[name], value, &format!("{prefix}{name}")))
}

fn fits(schema: &Value, value: &Value, name: &str) -> Result<(), Fault> {
    let unfit = || Err(wrong(name, &format!("is {}, and was given {}", taken(schema), given(value))));
    if let Some(allowed) = schema["enum"].as_array() {
        return if allowed.contains(value) { Ok(()) } else { unfit() };
    }
    match (schema["type"].as_str(), value) {
        (None, _) | (Some("string"), Value::String(_)) | (Some("boolean"), Value::Bool(_)) => Ok(()),
        (Some("integer"), Value::Number(number)) if number.is_u64() || number.is_i64() => {
            let is_less = |least: i64| number.as_i64().is_some_and(|number| number < least);
            if schema["minimum"].as_i64().is_some_and(is_less) { unfit() } else { Ok(()) }
        }
        (Some("array"), Value::Array(items)) => {
            let bound = |word: &str| schema[word].as_u64().and_then(|bound| usize::try_from(bound).ok());
            if items.len() < bound("minItems").unwrap_or(0) || items.len() > bound("maxItems").unwrap_or(usize::MAX) {
                return unfit();
            }
            items.iter().enumerate().try_for_each(|(at, item)| fits(&schema["items"], item, &format!("{name}[{at}]")))
        }
        (Some("object"), Value::Object(inner)) => members(schema, inner, &format!("{name}."), &format!("`{name}`")),
        (Some(_), _) => unfit(),
    }
}

/// Names what a schema takes.
fn taken(schema: &Value) -> String {
    if let Some(allowed) = schema["enum"].as_array() {
        return allowed.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ");
    }
    let number = |word: &str| schema[word].as_u64();
    match schema["type"].as_str() {
        Some("string") => "a text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => format!("a whole number{}", number("minimum").map(|least| format!(" from {least} on")).unwrap_or_default()),
        Some("array") => {
            let count = match (number("minItems"), number("maxItems")) {
                (Some(1), Some(1)) => " with one item",
                (Some(1), _) => " with at least one item",
                _ => "",
            };
            format!("a list{count}{}", if schema["items"]["type"] == "string" { ", each a text" } else { "" })
        }
        Some("object") => "an object".to_owned(),
        _ => "a value".to_owned(),
    }
}

/// Names what was given. A text is shown by its length alone, for it may be a secret in the wrong place.
fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is_it) => is_it.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("a text of {} bytes", text.len()),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
    }
}

fn wrong(name: &str, why: &str) -> Fault {
    Fault::new(Code::InvalidParams, format!("`{name}` {why}")).at(name)
}

fn cut(name: &str) -> String {
    let begin: String = name.chars().take(SHOWN).collect();
    if begin.len() < name.len() { format!("{begin}…") } else { begin }
}

#[cfg(test)]
mod tests;
