//! Strings of JSON: read, written and compared. Whether the text is sound is not asked here.

use std::borrow::Cow;

use super::plain::is_plain;

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

/// The same at the end of `out`, as RFC 8785, section 3.2.2.2 writes strings.
pub fn push_quoted(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain_from..at]);
        plain_from = at + 1;
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(format!("{byte:04x}").as_bytes());
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain_from..]);
    out.push(b'"');
}

/// Unescapes the inside of a JSON string; `None`: an escape is none, or half of a surrogate pair stands alone.
pub(super) fn unescape_whole(inner: &str) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let meant = match escape.as_bytes().first()? {
            byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = unit(&escape[1..])?;
                let second = escape.get(5..).and_then(|behind| behind.strip_prefix("\\u")).and_then(unit);
                let units = [first, second.unwrap_or_default()];
                let is_pair = (0xD800..0xDC00).contains(&first);
                let units = if is_pair { &units[..] } else { &units[..1] };
                out.push(char::decode_utf16(units.iter().copied()).next()?.ok()?);
                rest = &escape[if is_pair { 11 } else { 5 }..];
                continue;
            }
            _ => return None,
        };
        out.push(meant);
        rest = &escape[1..];
    }
    out.push_str(rest);
    Some(out)
}

/// Reads four hexadecimal digits at the beginning of `text` as a code unit.
fn unit(text: &str) -> Option<u16> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
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

/// Appends the character whose four hex digits begin at `i`; returns the number of bytes read.
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
