//! An envelope that is written anew from another, member by member: those that differ between the languages are replaced, all others stay as
//! they came, in their order. What is replaced is not decided here.

use std::borrow::Cow;

use bytes::Bytes;
use json::{Members, push_quoted};

/// Members by their names, with what stands there instead; `None`: nothing does.
pub(super) type Instead<'a> = [(&'a str, Option<Cow<'a, [u8]>>)];

/// Writes one. What is named and does not stand there is added at the end.
pub(super) fn envelope(from: &Members<'_>, instead: &Instead<'_>) -> Bytes {
    let mut written = Vec::with_capacity(512);
    let mut put = |key: &str, value: &[u8]| {
        written.push(if written.is_empty() { b'{' } else { b',' });
        push_quoted(&mut written, key);
        written.push(b':');
        written.extend_from_slice(value);
    };
    for (key, value) in from.iter() {
        match instead.iter().find(|(name, _)| *name == key) {
            Some((_, Some(other))) => put(&key, other),
            Some((_, None)) => {}
            None => put(&key, value),
        }
    }
    for (key, value) in instead.iter().filter(|(key, _)| !from.has(key)) {
        if let Some(value) = value {
            put(key, value);
        }
    }
    written.push(b'}');
    written.into()
}

/// A string.
pub(super) fn text(text: &str) -> Option<Cow<'static, [u8]>> {
    Some(Cow::Owned(json::quote(text).into_bytes()))
}

/// A list of strings.
pub(super) fn texts(texts: &[Cow<'_, str>]) -> Option<Cow<'static, [u8]>> {
    let texts: Vec<String> = texts.iter().map(|text| json::quote(text)).collect();
    Some(Cow::Owned(format!("[{}]", texts.join(",")).into_bytes()))
}
