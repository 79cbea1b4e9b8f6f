//! The look of arguments without their content: types, lengths and keys, never a value. Does not decide when a shape is recorded.

use std::borrow::Cow;
use std::ops::Range;

use json::canonical::requote;
use json::push_quoted;
use json::tree::{self, Json, by_utf16};

use crate::AuditError;

/// Bytes of the longest shape.
pub const MAX_SHAPE: usize = 2048;
/// Longest key described: longer ones are more likely values.
const MAX_KEY: usize = 64;
/// Members described of one object, and items of one array.
const MAX_MEMBERS: usize = 32;
const MAX_DEPTH: usize = 6;
/// The member that counts omissions.
pub const LEFT_OUT: &str = "…";

/// Writes the shape of the JSON value `text` as canonical JSON. An object becomes an object of its keys and their shapes, an array
/// `["array:LENGTH", SHAPE, ...]` with each shape of its first items once, and any other value a string: `string:CHARACTERS`, `number`,
/// `boolean`, `null`. A member `…` counts omissions; a shape longer than [`MAX_SHAPE`] is reduced to type and length.
///
/// # Errors
/// When `text` is not one JSON value.
pub fn shape(text: &[u8]) -> Result<String, AuditError> {
    Ok(of_json(&tree::read(text)?.value))
}

pub(crate) fn of_json(value: &Json<'_>) -> String {
    let mut out = Vec::with_capacity(256);
    write(value, 0, &mut out);
    if out.len() > MAX_SHAPE {
        out.clear();
        name(value, &mut out);
    }
    String::from_utf8(out).unwrap_or_default()
}

fn write(value: &Json<'_>, depth: usize, out: &mut Vec<u8>) {
    match value {
        Json::Object(members) if depth < MAX_DEPTH => object(members, depth, out),
        Json::Array(items) if depth < MAX_DEPTH => array(value, items, depth, out),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => name(value, out),
    }
}

fn object(members: &[(Cow<'_, str>, Json<'_>)], depth: usize, out: &mut Vec<u8>) {
    let is_shown = |key: &str| key.len() <= MAX_KEY || key.chars().count() <= MAX_KEY;
    let is_missed = members.len() > MAX_MEMBERS || !members.iter().all(|(key, _)| is_shown(key));
    let shown = members.iter().filter(|(key, _)| is_shown(key)).take(MAX_MEMBERS);
    let mut before = b'{';
    let mut member = |key: &Cow<'_, str>, value: &mut dyn FnMut(&mut Vec<u8>)| {
        out.push(std::mem::replace(&mut before, b','));
        requote(key, out);
        out.push(b':');
        value(out);
    };
    if is_missed {
        let missing = (members.len() - shown.clone().count()).to_string();
        // It stands where a key of its name would, and in place of one.
        let (smaller, larger): (Vec<_>, Vec<_>) =
            shown.filter(|(key, _)| key != LEFT_OUT).partition(|(key, _)| by_utf16(key, LEFT_OUT).is_lt());
        smaller.into_iter().for_each(|(key, value)| member(key, &mut |out| write(value, depth + 1, out)));
        member(&Cow::Borrowed(LEFT_OUT), &mut |out| push_quoted(out, &missing));
        larger.into_iter().for_each(|(key, value)| member(key, &mut |out| write(value, depth + 1, out)));
    } else {
        shown.for_each(|(key, value)| member(key, &mut |out| write(value, depth + 1, out)));
    }
    if before == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

fn array(value: &Json<'_>, items: &[Json<'_>], depth: usize, out: &mut Vec<u8>) {
    out.push(b'[');
    name(value, out);
    let mut seen = Vec::new();
    for item in items.iter().take(MAX_MEMBERS) {
        let start = out.len();
        out.push(b',');
        write(item, depth + 1, out);
        let shape = start..out.len();
        if seen.iter().any(|before: &Range<usize>| out[before.clone()] == out[shape.clone()]) {
            out.truncate(start);
        } else {
            seen.push(shape);
        }
    }
    out.push(b']');
}

/// Writes the type, and the length if any, as a string.
fn name(value: &Json<'_>, out: &mut Vec<u8>) {
    let (name, length) = match value {
        Json::Null => ("null", None),
        Json::Bool(_) => ("boolean", None),
        Json::Number(_) => ("number", None),
        Json::String(text) => ("string", Some(text.chars().count())),
        Json::Array(items) => ("array", Some(items.len())),
        Json::Object(members) => ("object", Some(members.len())),
    };
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    if let Some(length) = length {
        out.push(b':');
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shape_holds_types_lengths_and_keys() {
        let text = r#"{"to":"a@b.example","amount":12.5,"lines":[{"n":1},{"n":2},"x"],"urgent":true,"note":null}"#;
        assert_eq!(
            shape(text.as_bytes()).unwrap(),
            r#"{"amount":"number","lines":["array:3",{"n":"number"},"string:1"],"note":"null","to":"string:11","urgent":"boolean"}"#
        );
        assert_eq!(shape(b"{}").unwrap(), "{}");
    }

    #[test]
    fn what_is_too_long_is_counted() {
        let many: String = (0..40).map(|i| format!("\"k{i}\":1,")).collect();
        let text = format!("{{{many}\"{}\":1}}", "x".repeat(65));
        assert!(shape(text.as_bytes()).unwrap().ends_with(r#""…":"9"}"#));
        let wide: String = (0..30).map(|i| format!("\"{i}{}\":{{\"{}\":1}},", "y".repeat(60), "z".repeat(60))).collect();
        assert_eq!(shape(format!("{{{wide}\"a\":1}}").as_bytes()).unwrap(), "\"object:31\"");
        assert!(shape(b"[").is_err());
    }

    proptest! {
        #[test]
        fn no_value_is_in_a_shape(secret in "[a-z]{12,40}", number in 100_000_u32..) {
            let text = format!(r#"{{"a":["{secret}",{{"b":"{secret}"}}],"c":{number},"d":"{secret}"}}"#);
            let shape = shape(text.as_bytes()).unwrap();
            prop_assert!(!shape.contains(&secret) && !shape.contains(&number.to_string()), "{}", shape);
            prop_assert_eq!(crate::canonical::canonical(shape.as_bytes()).unwrap(), shape.into_bytes());
        }
    }
}
