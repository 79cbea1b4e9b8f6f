//! The id of a message without a legible envelope: too large, broken off, or ambiguous JSON. Reads nothing else.

use super::{MAX_ID, text};

/// Finds the id before the fault; `None`: no id, or several.
pub(crate) fn id(message: &[u8]) -> Option<String> {
    let (mut at, mut depth, mut found) = (0, 0_usize, None);
    while let Some(byte) = message.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => break,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let Some(end) = end_of_text(message, at) else { break };
                let value = if depth == 1 { behind_colon(message, end) } else { None };
                if let Some(value) = value
                    && is_id(message.get(at..end).unwrap_or_default())
                {
                    let Some(value_end) = message.get(value).filter(|byte| **byte == b'"').and(end_of_text(message, value)) else { break };
                    if found.replace(value..value_end).is_some() {
                        return None;
                    }
                    at = value_end;
                    continue;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    text(message.get(found?)?, "id", MAX_ID).ok().map(std::borrow::Cow::into_owned)
}

/// Recognises the key in any spelling.
fn is_id(key: &[u8]) -> bool {
    json::as_str(key).is_some_and(|key| key == "id")
}

/// Finds the place behind the text at `begin`; `None`: the text breaks off.
fn end_of_text(message: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        match message.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Finds the value behind a key with this end; `None`: no key ends at `end`.
fn behind_colon(message: &[u8], end: usize) -> Option<usize> {
    let next = |from: usize| {
        let blank = message.get(from..)?.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        Some(from + blank)
    };
    let colon = next(end)?;
    if *message.get(colon)? == b':' { next(colon + 1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mx_12_the_id_of_an_unread_message_is_found() {
        for (message, wanted) in [
            (r#"{"protocol":"mcpx/v0.1","id":"m-1","from":"a","from":"b"}"#, Some("m-1")),
            (r#"{"payload":{"id":"inner","more":[{"id":"deep"}]},"id" : "m-2","to":["#, Some("m-2")),
            (r#"{"text":"\"id\":\"quoted\"","\u0069d":"m-3","x":"#, Some("m-3")),
            (r#"{"id":"m-4"} trailing "id":"m-5""#, Some("m-4")),
            (r#"{"id":"m-6","id":"m-7"}"#, None),
            (r#"{"id":7,"x":1,"x":2}"#, None),
            (r#"{"id":"breaks o"#, None),
            (r#"{"id":"","x":1,"x":2}"#, None),
            (r#"["id","m-8"]"#, None),
            (r#"{"value":"id","to":"x""#, None),
            ("null", None),
            ("", None),
        ] {
            assert_eq!(id(message.as_bytes()).as_deref(), wanted, "{message}");
        }
    }
}
