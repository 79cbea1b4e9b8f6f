//! What arguments look like without what they say: types, lengths and keys, never a value. Does not decide whether that is recorded.

use crate::AuditError;
use crate::canonical;
use crate::json::{self, Json};

/// No shape is longer than this, in bytes.
pub const MAX_SHAPE: usize = 2048;
/// A key longer than this is more likely a value.
const MAX_KEY: usize = 64;
/// Members of one object, and items of one array, that are described.
const MAX_MEMBERS: usize = 32;
const MAX_DEPTH: usize = 6;

/// The shape of the JSON value `text`, as canonical JSON: an object is one of its keys and the shapes behind them, an array
/// `["array:LENGTH", SHAPE, ...]` with each shape of its first items once, and everything else a string: `string:CHARACTERS`, `number`,
/// `boolean`, `null`. What is left out for its length leaves a member `…` with the count of what is missing; a shape that would be
/// longer than [`MAX_SHAPE`] is only its type and length.
///
/// # Errors
/// When `text` is not one JSON value.
pub fn shape(text: &[u8]) -> Result<String, AuditError> {
    Ok(of_json(&json::read(text)?))
}

pub(crate) fn of_json(value: &Json<'_>) -> String {
    let mut out = Vec::new();
    canonical::write(&of(value, 0), &mut out);
    if out.len() > MAX_SHAPE {
        out.clear();
        canonical::quote(&name(value), &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn of<'a>(value: &'a Json<'_>, depth: usize) -> Json<'a> {
    match value {
        Json::Object(members) if depth < MAX_DEPTH => {
            let mut shown: Vec<_> = members.iter().filter(|(key, _)| key.chars().count() <= MAX_KEY).collect();
            shown.truncate(MAX_MEMBERS);
            let missing = members.len() - shown.len();
            let mut shapes: Vec<_> = shown.into_iter().map(|(key, value)| (key.as_ref().into(), of(value, depth + 1))).collect();
            if missing > 0 {
                shapes.retain(|(key, _): &(std::borrow::Cow<'_, str>, _)| key != "…");
                shapes.push(("…".into(), Json::String(missing.to_string().into())));
                shapes.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            }
            Json::Object(shapes)
        }
        Json::Array(items) if depth < MAX_DEPTH => {
            let mut shapes = vec![Json::String(name(value).into())];
            for item in items.iter().take(MAX_MEMBERS) {
                let shape = of(item, depth + 1);
                if !shapes[1..].contains(&shape) {
                    shapes.push(shape);
                }
            }
            Json::Array(shapes)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            Json::String(name(value).into())
        }
    }
}

fn name(value: &Json<'_>) -> String {
    match value {
        Json::Null => "null".into(),
        Json::Bool(_) => "boolean".into(),
        Json::Number(_) => "number".into(),
        Json::String(text) => format!("string:{}", text.chars().count()),
        Json::Array(items) => format!("array:{}", items.len()),
        Json::Object(members) => format!("object:{}", members.len()),
    }
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
            prop_assert_eq!(canonical::canonical(shape.as_bytes()).unwrap(), shape.into_bytes());
        }
    }
}
