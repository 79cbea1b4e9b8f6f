//! Answers to the calls of a step, as clients hand them back: the text itself, a whole tool result, a JSON-RPC error, or a list of them, each
//! as JSON or as text of JSON. Cut off beyond a length. Does not know the step that asked.

use serde_json::Value;

/// Bytes of an answer that are looked at.
const LONGEST: usize = 256 << 10;
/// Answers of a list that are looked at.
const MOST: usize = 16;

/// Answer to the calls of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallAnswer {
    pub text: String,
    /// A call failed, so that no step can go on from here.
    pub is_failed: bool,
}

impl CallAnswer {
    /// Text that a call gave.
    pub fn from_text(text: &str) -> Self {
        Self { text: cut(text).to_owned(), is_failed: false }
    }

    /// Reads what a client sends. MCP has texts alone among the arguments of a prompt, so a text may be JSON.
    pub fn read(value: &Value) -> Self {
        let Some(text) = value.as_str() else {
            return Self::structured(value).unwrap_or_else(|| Self::from_text(&value.to_string()));
        };
        let inner: Option<Value> = serde_json::from_str(cut(text)).ok();
        inner.as_ref().and_then(Self::structured).unwrap_or_else(|| Self::from_text(text))
    }

    /// Reads a tool result, an error or a list of these; `None` for another shape, which is what a device itself said.
    fn structured(value: &Value) -> Option<Self> {
        if let Value::Array(all) = value {
            let parts = all.iter().take(MOST).map(Self::structured).collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())?;
            let text: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
            return Some(Self { text: cut(&text.join("\n")).to_owned(), is_failed: parts.iter().any(|part| part.is_failed) });
        }
        let error = value.get("error").unwrap_or(value);
        if let (Some(message), true) = (error.get("message").and_then(Value::as_str), error.get("code").is_some_and(Value::is_i64)) {
            let detail = error.get("data").and_then(|data| data.get("detail")).and_then(Value::as_str).unwrap_or_default();
            return Some(Self { text: cut(format!("{message} {detail}").trim()).to_owned(), is_failed: true });
        }
        let result = value.get("result").unwrap_or(value);
        let stdout = result.get("stdout").and_then(Value::as_str);
        let blocks = result.get("content").and_then(Value::as_array);
        let text = match (stdout, blocks) {
            (Some(stdout), _) => stdout.to_owned(),
            (None, Some(blocks)) => blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n"),
            (None, None) => return None,
        };
        Some(Self { text: cut(&text).to_owned(), is_failed: result.get("isError").and_then(Value::as_bool) == Some(true) })
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_read_in_every_known_shape() {
        let result = json!({ "content": [{ "type": "text", "text": "eth0 is up" }] });
        for given in [json!("eth0 is up"), result.clone(), json!(result.to_string()), json!([result]), json!({ "stdout": "eth0 is up" })] {
            assert_eq!(CallAnswer::read(&given), CallAnswer::from_text("eth0 is up"), "{given}");
        }
        let route = r#"{"10.0.0.0/24":[{"protocol":"ospf"}]}"#;
        assert_eq!(CallAnswer::read(&json!(route)), CallAnswer::from_text(route));
    }

    #[test]
    fn a_failure_is_known_as_one() {
        let error = json!({ "code": -32083, "message": "Network.AccessDenied", "data": { "detail": "read only" } });
        for given in [error.clone(), json!({ "error": error }), json!(error.to_string())] {
            let answer = CallAnswer::read(&given);
            assert!(answer.is_failed && answer.text.contains("read only"), "{given}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_bounded(text in ".{0,300}", times in 1_usize..3000) {
            let answer = CallAnswer::read(&Value::String(text.repeat(times)));
            prop_assert!(answer.text.len() <= LONGEST);
        }
    }
}
