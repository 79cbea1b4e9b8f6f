//! JSON-RPC 2.0 messages as raw pieces: kind, id, method, and the bytes of the rest.
//!
//! Does not look into `params`, `result` or `error`, and copies none of them.

mod glance;
mod poured;

use std::borrow::Cow;

use bytes::Bytes;

pub use glance::{Glance, glance};
pub use poured::Poured;

use crate::json::{self, Before, Duplicates, JsonError, Object, Parts};

/// Bytes of the longest id of a message, as written. The id is kept while the request is under way, and recorded.
pub const LONGEST_ID: usize = 256;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Notification(Notification),
    Request(Request),
    Response(Response),
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The raw id: a string or a number, as spelled by the sender.
    pub id: Bytes,
    pub method: Cow<'static, str>,
    /// The `params` object; `{}` by default.
    pub params: Object,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub method: String,
    /// The `params` object; `{}` by default.
    pub params: Object,
    /// The whole message as received, without surrounding space.
    pub whole: Bytes,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The raw id; `null` where the peer could not tell.
    pub id: Bytes,
    pub answer: Answer,
}

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The raw `error` object.
    Error(Bytes),
    /// The `result`, an object as a rule.
    Result(Object),
}

/// Reasons for a text to be no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// An array: JSON-RPC batches left MCP with revision 2025-06-18.
    #[error("JSON-RPC batches are not supported: send one message at a time")]
    Batch,
    /// Sound JSON, but no JSON-RPC message. The id, if any, is for the answer.
    #[error("not a JSON-RPC 2.0 message: {why}")]
    Invalid {
        /// The raw id, if usable.
        id: Option<Bytes>,
        why: &'static str,
    },
    #[error(transparent)]
    Json(#[from] JsonError),
}

impl Message {
    /// Reads a message. `duplicates` sets the depth of the search for duplicate keys.
    pub fn parse(text: &Bytes, duplicates: Duplicates) -> Result<Self, EnvelopeError> {
        refuse_batch(text, duplicates)?;
        Self::from_parts(text, json::message(text, duplicates)?)
    }

    /// Reads a later message of a connection. Duplicate keys are refused at every depth.
    pub fn parse_after(text: &Bytes, before: &mut Before) -> Result<Self, EnvelopeError> {
        refuse_batch(text, Duplicates::RefuseDeep)?;
        Self::from_parts(text, json::message_after(text, before)?)
    }

    fn from_parts(text: &Bytes, parts: Parts<'_>) -> Result<Self, EnvelopeError> {
        let piece = |raw: &[u8]| text.slice_ref(raw);
        let id = parts.id.filter(|raw| usable_id(raw)).map(piece);
        let invalid = |why| EnvelopeError::Invalid { id: id.clone(), why };
        if parts.jsonrpc != Some(b"\"2.0\"") {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        let Some(method) = parts.method else {
            let answer = match (parts.result, parts.error) {
                (Some((raw, result)), None) => Answer::Result(result.unwrap_or_else(|| piece(raw).into())),
                (None, Some(error)) if error.starts_with(b"{") => Answer::Error(piece(error)),
                (None, None) => return Err(invalid("there is no `method`, `result` or `error`")),
                _ => return Err(invalid("a response has either `result` or an `error` object")),
            };
            return Ok(Self::Response(Response { id: id.unwrap_or(Bytes::from_static(b"null")), answer }));
        };
        let method = method_of(method).ok_or_else(|| invalid("`method` must be a string"))?;
        let params = match parts.params {
            Some((_, Some(object))) => object,
            None | Some((b"null", None)) => Object::empty(),
            Some((_, None)) => return Err(invalid("`params` must be an object")),
        };
        match (parts.id, id) {
            (None, _) => Ok(Self::Notification(Notification { method: method.into_owned(), params, whole: piece(text.trim_ascii()) })),
            (Some(_), Some(id)) => Ok(Self::Request(Request { id, method, params })),
            (Some(_), None) => Err(EnvelopeError::Invalid { id: None, why: "`id` must be a string or a number of at most 256 bytes" }),
        }
    }
}

fn refuse_batch(text: &[u8], duplicates: Duplicates) -> Result<(), EnvelopeError> {
    if text.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'[') {
        return Ok(());
    }
    json::check(text, duplicates)?;
    Err(EnvelopeError::Batch)
}

/// Reads a raw method, without a copy for the usual methods; `None` for anything but a string.
fn method_of(raw: &[u8]) -> Option<Cow<'static, str>> {
    const USUAL: [&str; 8] =
        ["tools/call", "tools/list", "server/discover", "initialize", "ping", "prompts/get", "resources/read", "resources/list"];
    let inner = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let usual = inner.and_then(|inner| USUAL.into_iter().find(|usual| usual.as_bytes() == inner));
    usual.map(Cow::Borrowed).or_else(|| Some(json::as_str(raw)?.into_owned().into()))
}

/// Writes a request.
pub fn request(id: &[u8], method: &str, params: &[u8]) -> Bytes {
    joined(&[&request_head(id, method), params, b"}"])
}

/// Writes a request up to its params; `}` follows them.
pub fn request_head(id: &[u8], method: &str) -> Vec<u8> {
    let mut head = Vec::with_capacity(64 + id.len() + method.len());
    for part in [RESPONSE_HEAD, id, b",\"method\":"] {
        head.extend_from_slice(part);
    }
    json::push_quoted(&mut head, method);
    head.extend_from_slice(b",\"params\":");
    head
}

/// Writes a notification.
pub fn notification(method: &str, params: &[u8]) -> Bytes {
    joined(&[b"{\"jsonrpc\":\"2.0\",\"method\":", json::quote(method).as_bytes(), b",\"params\":", params, b"}"])
}

/// Writes a response from its raw parts.
pub fn response(id: &[u8], answer: &Answer) -> Bytes {
    let (key, body) = response_parts(answer.clone());
    joined(&[RESPONSE_HEAD, id, key, &body, b"}"])
}

/// The beginning of every written message with an id, up to the id.
pub const RESPONSE_HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";

/// Gives name and raw value of the member between a response's id and its closing brace.
pub fn response_parts(answer: Answer) -> (&'static [u8], Bytes) {
    match answer {
        Answer::Error(raw) => (b",\"error\":", raw),
        Answer::Result(object) => (b",\"result\":", object.into_text()),
    }
}

/// Writes an `error` object. `data` is raw JSON.
pub fn error_object(code: i64, message: &str, data: Option<&[u8]>) -> Bytes {
    let head = format!("{{\"code\":{code},\"message\":{}", json::quote(message));
    match data {
        Some(data) => joined(&[head.as_bytes(), b",\"data\":", data, b"}"]),
        None => joined(&[head.as_bytes(), b"}"]),
    }
}

fn joined(pieces: &[&[u8]]) -> Bytes {
    Bytes::from(pieces.concat())
}

fn usable_id(raw: &[u8]) -> bool {
    raw.len() <= LONGEST_ID && matches!(raw.first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, EnvelopeError> {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()), Duplicates::RefuseDeep)
    }

    #[test]
    fn the_three_kinds_are_told_apart() {
        let Ok(Message::Request(r)) = parse(r#"{"jsonrpc":"2.0","id":1e0,"method":"tools/call","params":{ "a":1 }}"#) else { panic!() };
        assert_eq!((&r.id[..], &*r.method, &r.params[..]), (&b"1e0"[..], "tools/call", &b"{ \"a\":1 }"[..]));
        let Ok(Message::Notification(n)) = parse(r#" {"jsonrpc":"2.0","method":"n"} "#) else { panic!() };
        assert_eq!((&n.params[..], &n.whole[..]), (&b"{}"[..], &br#"{"jsonrpc":"2.0","method":"n"}"#[..]));
        let Ok(Message::Response(r)) = parse(r#"{"jsonrpc":"2.0","id":"x","result":[1]}"#) else { panic!() };
        assert_eq!(r.answer, Answer::Result(Bytes::from_static(b"[1]").into()));
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        assert_eq!(parse(r#"[{"jsonrpc":"2.0"}]"#), Err(EnvelopeError::Batch));
        let Err(EnvelopeError::Invalid { id, .. }) = parse(r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#) else { panic!() };
        assert_eq!(id.as_deref(), Some(&b"7"[..]));
        for bad in [
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
            "{}",
            "1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn h1_an_id_is_as_long_as_allowed_and_no_longer() {
        let asked = |id: &str| parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
        for (longest, longer) in [("\"", "\""), ("", "")].map(|(a, b)| {
            let of = |bytes: usize| format!("{a}{}{b}", "7".repeat(bytes - a.len() - b.len()));
            (of(LONGEST_ID), of(LONGEST_ID + 1))
        }) {
            assert!(matches!(asked(&longest), Ok(Message::Request(request)) if request.id == longest.as_bytes()));
            assert!(matches!(asked(&longer), Err(EnvelopeError::Invalid { id: None, .. })));
            assert_eq!(glance(format!(r#"{{"jsonrpc":"2.0","id":{longer},"method":"m"}}"#).as_bytes()), None);
        }
    }

    #[test]
    fn duplicate_keys_are_refused_at_every_depth_of_a_request() {
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#), Err(EnvelopeError::Json(JsonError::DuplicateKey(_)))));
        assert!(parse(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"x":1,"x":2}}}"#).is_err());
    }

    #[test]
    fn a_written_response_keeps_the_result_byte_for_byte() {
        let raw = Bytes::from_static(b"{ \"z\":1.0, \"a\":12345678901234567890123 }");
        let whole = response(b"\"q\"", &Answer::Result(raw.clone().into()));
        let Ok(Message::Response(back)) = Message::parse(&whole, Duplicates::RefuseTop) else { panic!() };
        assert_eq!(back.answer, Answer::Result(raw.into()));
    }
}
