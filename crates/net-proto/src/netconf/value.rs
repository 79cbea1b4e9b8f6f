//! JSON values of callers (RFC 7951) as content of XML elements. Knows no types: texts go out as they came in.

use quick_xml::escape::escape;
use serde_json::Value;

use super::NetconfCapabilities;
use crate::fault::{Code, Fault};

/// Values within each other that are taken.
const DEEPEST: usize = 64;

/// Surroundings of a value: the device, and the namespace of the element above.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValuePlace<'a> {
    pub(super) device: &'a NetconfCapabilities,
    pub(super) namespace: &'a str,
}

/// Content of the element with this value. Members that repeat one of `keys` are left out: the path has written them.
pub(super) fn content(value: &Value, keys: &[(String, String)], place: ValuePlace<'_>) -> Result<String, Fault> {
    let mut out = String::new();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match keys.iter().find(|(key, _)| key == name) {
                    Some((_, text)) if scalar(member).as_deref() == Some(text) => {}
                    Some(_) => return Err(invalid(format!("`{name}` is another in the path than in the value"))),
                    None => write(&mut out, name, member, place, 0)?,
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => out.push_str(&text(value)?),
    }
    Ok(out)
}

fn write(out: &mut String, name: &str, value: &Value, place: ValuePlace<'_>, depth: usize) -> Result<(), Fault> {
    if depth >= DEEPEST {
        return Err(invalid(format!("the value is deeper than {DEEPEST} nodes")));
    }
    // `[null]` is the value of an empty leaf.
    if let Value::Array(entries) = value
        && *entries != [Value::Null]
    {
        return entries.iter().try_for_each(|entry| write(out, name, entry, place, depth + 1));
    }
    let (module, local) = name.split_once(':').map_or((None, name), |(module, local)| (Some(module), local));
    if !is_name(local) {
        return Err(invalid(format!("`{name}` is no name of a node")));
    }
    let namespace = module.map_or_else(|| Ok(place.namespace.to_owned()), |module| namespace(module, place.device))?;
    out.push_str(&format!("<{local}"));
    if namespace != place.namespace {
        out.push_str(&format!(" xmlns=\"{}\"", escape(namespace.as_str())));
    }
    if let Some((prefix, uri)) = identity(value, place.device) {
        out.push_str(&format!(" xmlns:{prefix}=\"{}\"", escape(uri.as_str())));
    }
    out.push('>');
    match value {
        Value::Object(members) => {
            let below = ValuePlace { namespace: &namespace, ..place };
            members.iter().try_for_each(|(name, member)| write(out, name, member, below, depth + 1))?;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => out.push_str(&text(value)?),
    }
    out.push_str(&format!("</{local}>"));
    Ok(())
}

/// Module and namespace of a value that may be an identity, such as `iana-if-type:softwareLoopback`.
fn identity<'v>(value: &'v Value, device: &NetconfCapabilities) -> Option<(&'v str, String)> {
    let (module, name) = value.as_str()?.split_once(':')?;
    (is_name(module) && is_name(name)).then_some(())?;
    Some((module, device.namespace(module)?.to_owned()))
}

fn text(value: &Value) -> Result<String, Fault> {
    let text = scalar(value).ok_or_else(|| invalid("a list stands where a single value belongs".to_owned()))?;
    if !is_text(&text) {
        return Err(invalid("the value holds a control character, which XML can't hold".to_owned()));
    }
    Ok(escape(text.as_str()).into_owned())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Array(entries) if *entries == [Value::Null] => Some(String::new()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Namespace of a module.
pub(super) fn namespace(module: &str, device: &NetconfCapabilities) -> Result<String, Fault> {
    let absent = || Fault::new(Code::ConfigIncompatible, format!("the device names no module `{module}` in its hello"));
    device.namespace(module).map(str::to_owned).ok_or_else(absent)
}

/// Checks a name of a node, as YANG has them.
pub(super) fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Checks that XML can hold a text.
pub(super) fn is_text(text: &str) -> bool {
    text.chars().all(|c| (!c.is_control() || matches!(c, '\t' | '\n' | '\r')) && !matches!(c, '\u{fffe}' | '\u{ffff}'))
}

fn invalid(why: String) -> Fault {
    Fault::new(Code::InvalidParams, why)
}
