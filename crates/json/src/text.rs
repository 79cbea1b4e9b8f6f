//! Strings of JSON: read, written and compared. Whether the text is sound is not asked here.

use std::borrow::Cow;

use super::run::plain_run;

/// The text of a raw JSON string, unescaped; `None` when it is no string.
pub fn as_str(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(unescape(inner))
}

/// Writes `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// The same at the end of `out`.
pub fn push_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if plain_run(text.as_bytes(), 0) == text.len() {
        out.extend_from_slice(text.as_bytes());
    } else {
        text.bytes().for_each(|b| push_escaped(out, b));
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, b: u8) {
    match b {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..0x20 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
        _ => out.push(b),
    }
}

/// Unescapes the inside of a sound JSON string. A lone surrogate becomes U+FFFD.
pub(super) fn unescape(inner: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inner).is_none() {
        // Sound text is UTF-8; looking for what is not takes ten times as long.
        return std::str::from_utf8(inner).map_or_else(|_| String::from_utf8_lossy(inner), Cow::Borrowed);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut i = 0;
    while let Some(&b) = inner.get(i) {
        if b != b'\\' {
            out.push(b);
            i += 1;
            continue;
        }
        let code = inner.get(i + 1).copied().unwrap_or(b'\\');
        i += 2;
        match code {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => i += push_unicode(inner, i, &mut out),
            other => out.push(other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Appends the character whose four hex digits stand at `i`; returns how many bytes it took.
fn push_unicode(inner: &[u8], i: usize, out: &mut Vec<u8>) -> usize {
    let hex = |at: usize| {
        let digits = std::str::from_utf8(inner.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = hex(i) else { return 0 };
    let mut taken = 4;
    let mut code = first;
    if (0xD800..0xDC00).contains(&first)
        && inner.get(i + 4..i + 6) == Some(b"\\u")
        && let Some(second) = hex(i + 6).filter(|s| (0xDC00..0xE000).contains(s))
    {
        code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        taken = 10;
    }
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    taken
}
