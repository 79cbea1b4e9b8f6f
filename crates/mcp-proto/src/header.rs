//! The request headers of MCP 2026-07-28 that mirror parts of the body: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*`.
//!
//! Values are written, read and compared here ("Value Encoding" and "Server Validation" of the Streamable HTTP page).
//! It does not know HTTP: the caller looks headers up and answers a [`Mismatch`] with -32020 and status 400.

mod param;

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

pub use param::{InvalidAnnotation, ParamHeader, check_params, expected_params, param_headers, tool_headers};

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Disagreement between a request's headers and its body.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// Header and body say different things.
    #[error("header {header} says {sent:?} but the request body says {body:?}: send the value of the body")]
    Differs {
        /// The header's name.
        header: String,
        /// The decoded header.
        sent: String,
        /// The value in the body.
        body: String,
    },
    /// The header can't be read.
    #[error("header {header} can't be read: send printable ASCII, or `=?base64?` + standard base64 with padding of the UTF-8 text + `?=`")]
    Malformed {
        /// The header's name.
        header: String,
    },
    /// The body has a value without a header.
    #[error("header {header} is missing: send it with the value that the request body has, {body:?}")]
    Missing {
        /// The header's name.
        header: String,
        /// The value in the body.
        body: String,
    },
    /// The header has no value in the body.
    #[error("header {header} says {sent:?} but the request body has no such value: leave the header out")]
    Unexpected {
        /// The header's name.
        header: String,
        /// The decoded header.
        sent: String,
    },
}

/// A header value that is neither plain nor sound base64 of UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a readable header value")]
pub struct Unreadable;

/// Writes `value` for a header: unchanged if printable ASCII without space at the ends and
/// unlike an encoded value, otherwise as `=?base64?…?=`.
pub fn encode(value: &str) -> Cow<'_, str> {
    let printable = value.bytes().all(|b| (b' '..=b'~').contains(&b));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    let encoded = value.starts_with(PREFIX) && value.ends_with(SUFFIX);
    if printable && !padded && !encoded {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{PREFIX}{}{SUFFIX}", BASE64_STANDARD.encode(value)))
}

/// Reads a header value: space and tabs around it do not count, `=?base64?…?=` is decoded.
pub fn decode(raw: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
    let raw = trim(raw);
    if !is_readable(raw) {
        return Err(Unreadable);
    }
    let text = std::str::from_utf8(raw).map_err(|_| Unreadable)?;
    let Some(inner) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = BASE64_STANDARD.decode(inner).map_err(|_| Unreadable)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Unreadable)
}

/// Compares `Mcp-Method` with the body's `method`. The value is never base64, and case counts.
pub fn check_method(raw: Option<&[u8]>, method: &str) -> Result<(), Mismatch> {
    let header = || "Mcp-Method".to_owned();
    let raw = raw.ok_or_else(|| Mismatch::Missing { header: header(), body: excerpt(method) })?;
    let raw = trim(raw);
    if raw == method.as_bytes() {
        return Ok(());
    }
    Err(Mismatch::Differs { header: header(), sent: excerpt(&String::from_utf8_lossy(raw)), body: excerpt(method) })
}

/// Compares `Mcp-Name` with the name in the body: `params.name` or `params.uri`.
pub fn check_name(raw: Option<&[u8]>, name: &str) -> Result<(), Mismatch> {
    let header = || "Mcp-Name".to_owned();
    let raw = raw.ok_or_else(|| Mismatch::Missing { header: header(), body: excerpt(name) })?;
    // As nearly every name is sent: what is no base64 and can be read is what it says.
    let same = trim(raw) == name.as_bytes() && !name.starts_with(PREFIX) && is_readable(name.as_bytes());
    if same {
        return Ok(());
    }
    let sent = decode(raw).map_err(|_| Mismatch::Malformed { header: header() })?;
    if sent == name {
        return Ok(());
    }
    Err(Mismatch::Differs { header: header(), sent: excerpt(&sent), body: excerpt(name) })
}

/// Tells if a header may carry the text unencoded.
fn is_readable(raw: &[u8]) -> bool {
    raw.iter().all(|b| *b == b'\t' || (b' '..=b'~').contains(b))
}

/// Strips surrounding space and tabs (RFC 9110, section 5.5).
fn trim(raw: &[u8]) -> &[u8] {
    let padding = |b: &u8| matches!(b, b' ' | b'\t');
    let start = raw.iter().position(|b| !padding(b)).unwrap_or(raw.len());
    let end = raw.iter().rposition(|b| !padding(b)).map_or(start, |last| last + 1);
    raw.get(start..end).unwrap_or_default()
}

/// As much of a peer's text as an error may carry.
fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification's "Value Encoding" and of the conformance suite.
    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        let cases = [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (value, header) in cases {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header.as_bytes()).as_deref(), Ok(value));
        }
    }

    #[test]
    fn what_only_resembles_an_encoded_value_is_literal() {
        for literal in ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "=?base64?="] {
            assert_eq!(decode(literal.as_bytes()).as_deref(), Ok(literal));
        }
    }

    #[test]
    fn unsound_values_are_refused() {
        for raw in [&b"=?base64?SGVsbG8?="[..], b"=?base64?SGVs!!!bG8=?=", b"=?base64?/w==?=", b"caf\xc3\xa9", b"a\x00b", b"a\r\n"] {
            assert_eq!(decode(raw), Err(Unreadable), "{}", String::from_utf8_lossy(raw));
        }
    }

    #[test]
    fn names_and_methods_are_compared_trimmed_and_with_their_case() {
        assert_eq!(check_name(Some(b"  get_user  "), "get_user"), Ok(()));
        assert_eq!(check_name(Some(b"=?base64?IHgg?="), " x "), Ok(()));
        assert!(matches!(check_name(Some(b"Get_User"), "get_user"), Err(Mismatch::Differs { .. })));
        assert!(matches!(check_name(None, "get_user"), Err(Mismatch::Missing { .. })));
        assert!(matches!(check_name(Some(b"=?base64?x?="), "get_user"), Err(Mismatch::Malformed { .. })));
        assert_eq!(check_method(Some(b" tools/list"), "tools/list"), Ok(()));
        assert!(matches!(check_method(Some(b"TOOLS/LIST"), "tools/list"), Err(Mismatch::Differs { .. })));
        assert!(matches!(check_method(None, "tools/list"), Err(Mismatch::Missing { .. })));
    }

    #[test]
    fn the_text_of_a_mismatch_is_bounded() {
        let long = "x".repeat(10_000);
        let text = check_name(Some(b"y"), &long).map_err(|error| error.to_string());
        assert!(text.is_err_and(|text| text.len() < 300 && text.starts_with("header Mcp-Name says \"y\"")));
    }
}
