//! The single form of a JSON value for hashing, showing and signing: RFC 8785 (JCS). Two texts of one value have one form.
//! The uses of a form are not decided here.
//!
//! RFC 8785 knows numbers only as far as a double goes; the caller says how other numbers are treated ([`Numbers`]).

use std::borrow::Cow;

use super::text::push_quoted;
use super::tree::{self, Json, ParsedJson};

/// Whole numbers of so many characters are exact as doubles, and are written as they are.
pub(super) const EXACT: usize = 15;

/// Reasons for a text to have no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// A member stands twice.
    #[error("the member `{0}` stands there twice: send it once")]
    Doubled(String),
    /// No JSON, nested too deeply, or half of a surrogate pair.
    #[error("it is no JSON that can be shown: {0}")]
    Json(String),
    /// A number changed by reading it as a double (RFC 8785, 3.2.2.3).
    #[error("the number {0} would be rounded by whoever reads it as a double: send it as a string")]
    Number(String),
}

/// Treatment of numbers that no double holds exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Such numbers have no form: for arguments that somebody agrees to, which may not be read as another value.
    Exact,
    /// Whole numbers keep their digits where no double holds them, so that two different arguments never share a hash. Other numbers are
    /// rounded.
    /// For records, which always have a form.
    Kept,
}

/// Writes the canonical form of `text`.
///
/// # Errors
/// When `text` is not one JSON value, holds a key twice or half of a surrogate pair, or a number that may not be rounded.
pub fn canonical(text: &[u8], numbers: Numbers) -> Result<String, NotCanonical> {
    let form = form(text, &tree::read(text)?, numbers)?.into_owned();
    String::from_utf8(form).map_err(|e| NotCanonical::Json(e.to_string()))
}

/// Gives the canonical form of the value read from `text`: mostly `text` itself, since most programs write no space and keys in order.
///
/// # Errors
/// When the value holds a number that may not be rounded.
pub fn form<'a>(text: &'a [u8], written: &ParsedJson<'_>, numbers: Numbers) -> Result<Cow<'a, [u8]>, NotCanonical> {
    if written.is_canonical {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    write(&written.value, numbers, &mut out)?;
    Ok(Cow::Owned(out))
}

/// The members of a JSON object with the canonical forms of their values, in canonical order; `None`: it is another value.
///
/// # Errors
/// As [`canonical`].
pub fn members(text: &[u8], numbers: Numbers) -> Result<Option<Vec<(String, String)>>, NotCanonical> {
    let Json::Object(members) = tree::read(text)?.value else { return Ok(None) };
    let canonical = |(name, value): (Cow<'_, str>, Json<'_>)| {
        let mut out = Vec::new();
        write(&value, numbers, &mut out)?;
        let text = String::from_utf8(out).map_err(|e| NotCanonical::Json(e.to_string()))?;
        Ok((name.into_owned(), text))
    };
    members.into_iter().map(canonical).collect::<Result<_, _>>().map(Some)
}

fn write(value: &Json<'_>, numbers: Numbers, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(written) => number(written, numbers, out)?,
        Json::String(text) => requote(text, out),
        Json::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(item, numbers, out)?;
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            for (place, (key, value)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                requote(key, out);
                out.push(b':');
                write(value, numbers, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// Writes a string of a [`Json`]. A borrowed string is copied as written, without escaping again.
#[expect(clippy::ptr_arg, reason = "whether it is borrowed is what counts")]
pub fn requote(text: &Cow<'_, str>, out: &mut Vec<u8>) {
    let Cow::Borrowed(text) = text else { return push_quoted(out, text) };
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Writes a number as ECMA-262 `Number::toString` does (RFC 8785, 3.2.2.3).
fn number(written: &str, numbers: Numbers, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
    let is_whole = !written.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'));
    if is_whole && (numbers == Numbers::Kept || written.len() <= EXACT) {
        out.extend_from_slice(if written == "-0" { b"0" } else { written.as_bytes() });
        return Ok(());
    }
    let double = written.parse::<f64>().ok().filter(|value| value.is_finite());
    let mut room = ryu_js::Buffer::new();
    let text = double.map(|value| room.format_finite(value));
    match (numbers, text) {
        (Numbers::Kept, text) => out.extend_from_slice(text.unwrap_or(written).as_bytes()),
        (Numbers::Exact, Some(text)) if decimal(text) == decimal(written) => out.extend_from_slice(text.as_bytes()),
        (Numbers::Exact, _) => return Err(NotCanonical::Number(written.to_owned())),
    }
    Ok(())
}

/// Value of a number: sign, digits without zeros around them, and the exponent of the last digit.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let trimmed = digits.trim_end_matches('0');
    if trimmed.trim_start_matches('0').is_empty() {
        return Some((false, String::new(), 0));
    }
    let dropped = i64::try_from(digits.len() - trimmed.len()).ok()?;
    let exponent: i64 = exponent.parse().ok()?;
    let exponent = exponent.checked_add(dropped)?.checked_sub(i64::try_from(part.len()).ok()?)?;
    Some((negative, trimmed.trim_start_matches('0').to_owned(), exponent))
}

#[cfg(test)]
mod tests;
