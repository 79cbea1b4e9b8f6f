//! Finds members in raw JSON and says where their bytes are, so that the rest can be sent on untouched.
//!
//! One strict pass over RFC 8259 text: grammar, UTF-8, duplicate keys and depth are checked, nothing is built.
//! It does not turn numbers or strings into values, and it keeps no tree.

use std::borrow::Cow;
use std::ops::Range;

/// Deeper nesting than this is refused, as most parsers of other peers do.
pub const MAX_DEPTH: usize = 128;

/// Where a value stands in the text it was found in, in bytes.
pub type Span = Range<usize>;

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Two members of one object have the same name.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Not JSON at this byte.
    #[error("not JSON at byte {0}")]
    Syntax(usize),
}

/// How thoroughly keys are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// At every depth: for what a decision may rest on.
    RefuseDeep,
    /// In the outermost object only: for what is passed on as it came.
    RefuseTop,
}

/// The members of one object, in order, keys still escaped.
#[derive(Debug, Clone, Default)]
pub struct Members<'a> {
    text: &'a [u8],
    list: Vec<(Span, Span)>,
}

impl<'a> Members<'a> {
    /// Reads `text` as one whole object (surrounding space allowed).
    pub fn parse(text: &'a [u8], duplicates: Duplicates) -> Result<Self, JsonError> {
        let mut scan = Scan::new(text, duplicates)?;
        scan.space();
        let mut list = Vec::with_capacity(8);
        scan.object(1, Some(&mut list))?;
        scan.end()?;
        Ok(Self { text, list })
    }

    /// Reads an object that an earlier pass over the whole text has found sound.
    pub fn again(text: &'a [u8]) -> Self {
        Self::parse(text, Duplicates::RefuseTop).unwrap_or_default()
    }

    /// The raw bytes of a member's value.
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.span(key).map(|s| &self.text[s])
    }

    /// Where a member's value stands.
    pub fn span(&self, key: &str) -> Option<Span> {
        self.list.iter().find(|(k, _)| key_is(&self.text[k.clone()], key)).map(|(_, v)| v.clone())
    }

    /// Where a whole member stands, its key's opening quote to its value's end.
    pub fn member_span(&self, key: &str) -> Option<Span> {
        self.list.iter().find(|(k, _)| key_is(&self.text[k.clone()], key)).map(|(k, v)| k.start - 1..v.end)
    }

    /// A member whose value is an object.
    pub fn object(&self, key: &str) -> Option<Members<'a>> {
        self.get(key).and_then(|v| Members::parse(v, Duplicates::RefuseTop).ok())
    }

    /// A member whose value is a string, unescaped.
    pub fn str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(as_str)
    }

    /// Whether the object has such a member.
    pub fn has(&self, key: &str) -> bool {
        self.span(key).is_some()
    }

    /// Every member: its key, unescaped, and the raw bytes of its value.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a [u8])> + '_ {
        self.list.iter().map(|(k, v)| (unescape(&self.text[k.clone()]), &self.text[v.clone()]))
    }

    /// Where every whole member and its value stand.
    pub fn spans(&self) -> Vec<(Span, Span)> {
        self.list.iter().map(|(k, v)| (k.start - 1..v.end, v.clone())).collect()
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Checks that `text` is one JSON value and says where it stands without the space around it.
pub fn check(text: &[u8], duplicates: Duplicates) -> Result<Span, JsonError> {
    let mut scan = Scan::new(text, duplicates)?;
    scan.space();
    let start = scan.at;
    scan.value(0)?;
    let end = scan.at;
    scan.end()?;
    Ok(start..end)
}

/// The elements of a raw array; `None` when `text` is not a sound array.
pub fn elements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut scan = Scan::new(text, Duplicates::RefuseTop).ok()?;
    scan.space();
    let mut spans = Vec::new();
    scan.array(1, Some(&mut spans)).ok()?;
    scan.end().ok()?;
    Some(spans.into_iter().map(|s| &text[s]).collect())
}

/// The text of a raw JSON string, unescaped; `None` when it is no string.
pub fn as_str(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(unescape(inner))
}

/// Writes `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn key_is(escaped: &[u8], key: &str) -> bool {
    if escaped == key.as_bytes() {
        return true;
    }
    memchr::memchr(b'\\', escaped).is_some() && unescape(escaped) == key
}

/// Unescapes the inside of a sound JSON string. A lone surrogate becomes U+FFFD.
fn unescape(inner: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inner).is_none() {
        return String::from_utf8_lossy(inner);
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

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    deep: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a [u8], duplicates: Duplicates) -> Result<Self, JsonError> {
        if let Err(e) = std::str::from_utf8(text) {
            return Err(JsonError::Syntax(e.valid_up_to()));
        }
        Ok(Self { text, at: 0, deep: duplicates == Duplicates::RefuseDeep })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn bad<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax(self.at))
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<(), JsonError> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { self.bad() }
    }

    fn expect(&mut self, b: u8) -> Result<(), JsonError> {
        if self.peek() != Some(b) {
            return self.bad();
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') if self.deep => {
                let mut members = Vec::new();
                self.object(depth + 1, Some(&mut members))
            }
            Some(b'{') => self.object(depth + 1, None),
            Some(b'[') => self.array(depth + 1, None),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.bad(),
        }
    }

    fn object(&mut self, depth: usize, mut list: Option<&mut Vec<(Span, Span)>>) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.at + 1;
            self.string()?;
            let key = key..self.at - 1;
            self.space();
            self.expect(b':')?;
            self.space();
            let value = self.at;
            self.value(depth)?;
            if let Some(list) = list.as_deref_mut() {
                list.push((key, value..self.at));
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.bad(),
            }
            self.space();
        }
        self.at += 1;
        list.map_or(Ok(()), |l| refuse_duplicates(self.text, l))
    }

    fn array(&mut self, depth: usize, mut spans: Option<&mut Vec<Span>>) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.expect(b'[')?;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let start = self.at;
            self.value(depth)?;
            if let Some(spans) = spans.as_deref_mut() {
                spans.push(start..self.at);
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.bad(),
            }
            self.space();
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), JsonError> {
        self.expect(b'"')?;
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = memchr::memchr2(b'"', b'\\', rest) else { return self.bad() };
            if let Some(control) = rest[..stop].iter().position(|b| *b < 0x20) {
                return Err(JsonError::Syntax(self.at + control));
            }
            self.at += stop + 1;
            if rest[stop] == b'"' {
                return Ok(());
            }
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    return self.bad();
                }
                self.at += 5;
            }
            _ => return self.bad(),
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return self.bad();
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.bad(),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.bad() } else { Ok(()) }
    }
}

/// Few keys are compared pairwise; many by a sorted copy, so that a hostile object costs n log n.
fn refuse_duplicates(text: &[u8], list: &[(Span, Span)]) -> Result<(), JsonError> {
    let duplicate = |k: &Span| Err(JsonError::DuplicateKey(unescape(&text[k.clone()]).into_owned()));
    let escaped = list.iter().any(|(k, _)| text[k.clone()].contains(&b'\\'));
    if list.len() <= 12 && !escaped {
        for (i, (a, _)) in list.iter().enumerate() {
            if list[..i].iter().any(|(b, _)| text[b.clone()] == text[a.clone()]) {
                return duplicate(a);
            }
        }
        return Ok(());
    }
    let mut keys: Vec<(Cow<'_, str>, &Span)> = list.iter().map(|(k, _)| (unescape(&text[k.clone()]), k)).collect();
    keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    keys.windows(2).find(|w| w[0].0 == w[1].0).map_or(Ok(()), |w| duplicate(w[0].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_with_their_bytes_as_they_were_spelled() {
        let m = Members::parse(br#" {"a": 1.0e5 , "n\u0061me":"x\ty", "o":{"k":[1,2]} } "#, Duplicates::RefuseDeep).unwrap();
        assert_eq!(m.get("a"), Some(&b"1.0e5"[..]));
        assert_eq!(m.str("name").as_deref(), Some("x\ty"));
        assert_eq!(m.object("o").unwrap().get("k"), Some(&b"[1,2]"[..]));
        assert_eq!(m.get("missing"), None);
    }

    #[test]
    fn a_key_spelled_with_escapes_is_still_a_duplicate() {
        let twice = br#"{"name":1,"n\u0061me":2}"#;
        assert_eq!(Members::parse(twice, Duplicates::RefuseTop).unwrap_err(), JsonError::DuplicateKey("name".into()));
        let deep = br#"{"x":{"a":1,"a":2}}"#;
        assert!(Members::parse(deep, Duplicates::RefuseTop).is_ok());
        assert_eq!(Members::parse(deep, Duplicates::RefuseDeep).unwrap_err(), JsonError::DuplicateKey("a".into()));
    }

    #[test]
    fn what_is_not_json_is_refused_with_the_place() {
        for bad in ["", "{", "{\"a\":}", "{\"a\":1,}", "[1,]", "01", "1.", "tru", "\"\u{1}\"", "{} x", "\"\\x\"", "{a:1}"] {
            assert!(check(bad.as_bytes(), Duplicates::RefuseTop).is_err(), "{bad:?}");
        }
        assert_eq!(check(b"\"\xff\"", Duplicates::RefuseTop).unwrap_err(), JsonError::Syntax(1));
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(check(deep.as_bytes(), Duplicates::RefuseTop).unwrap_err(), JsonError::TooDeep);
    }

    #[test]
    fn surrogate_pairs_are_joined_and_lone_ones_replaced() {
        assert_eq!(as_str(br#""\ud83d\ude00""#).unwrap(), "\u{1F600}");
        assert_eq!(as_str(br#""\ud83dx""#).unwrap(), "\u{FFFD}x");
    }
}
