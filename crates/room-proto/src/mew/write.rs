//! An envelope written anew, member by member: members that differ between the languages are replaced, all others stay as received, in
//! order. Does not choose the replacements.

use std::borrow::Cow;

use bytes::Bytes;
use json::{Members, push_quoted};

/// Replacements of members by name; `None`: left out.
pub(super) type Instead<'a> = [(&'a str, Option<Cow<'a, [u8]>>)];

/// Writes an envelope. Replacements of absent members are added at the end.
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
