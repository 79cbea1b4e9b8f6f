//! JSON as a tree that keeps how numbers were written. Only for what is hashed or described: it builds nothing for anybody else.

use std::borrow::Cow;

use crate::AuditError;
use crate::canonical::plain;

/// Deeper nesting than this is refused, as everywhere else at the gate.
const MAX_DEPTH: usize = 128;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it was written.
    Number(&'a str),
    /// Borrowed where it was written without an escape.
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of RFC 8785: by the UTF-16 code units of the keys. No key stands twice.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// A value, and how it was written.
pub(crate) struct Written<'a> {
    pub(crate) value: Json<'a>,
    /// The text is the value's canonical form. `false` may be too careful.
    pub(crate) is_canonical: bool,
}

/// Reads `text` as one whole value.
pub(crate) fn read(text: &[u8]) -> Result<Written<'_>, AuditError> {
    let text = std::str::from_utf8(text).map_err(|e| wrong(e.valid_up_to(), "not UTF-8"))?;
    let mut reader = Reader { text, at: 0, is_canonical: true };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(wrong(reader.at, "something follows the value"));
    }
    Ok(Written { value, is_canonical: reader.is_canonical })
}

fn wrong(at: usize, why: &str) -> AuditError {
    AuditError::form("JSON", format!("{why} at byte {at}"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_canonical: bool,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json<'a>, AuditError> {
        if depth > MAX_DEPTH {
            return Err(wrong(self.at, "nested too deep"));
        }
        self.space();
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) | None => Err(wrong(self.at, "no value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, AuditError> {
        self.at += 1;
        let mut members = Vec::with_capacity(4);
        if !self.closes(b'}') {
            loop {
                self.space();
                let key = self.string()?;
                self.expect(b':')?;
                members.push((key, self.value(depth + 1)?));
                if self.closes(b'}') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        // Most objects have few members, or their members in order.
        if !members.is_sorted_by(|(a, _): &(Cow<'_, str>, _), (b, _)| by_utf16(a, b).is_lt()) {
            self.is_canonical = false;
            members.sort_by(|(a, _), (b, _)| by_utf16(a, b));
            if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(wrong(self.at, "a key stands twice in the object that ends"));
            }
        }
        Ok(Json::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, AuditError> {
        self.at += 1;
        let mut items = Vec::new();
        if !self.closes(b']') {
            loop {
                items.push(self.value(depth + 1)?);
                if self.closes(b']') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        Ok(Json::Array(items))
    }

    fn number(&mut self) -> Result<Json<'a>, AuditError> {
        let start = self.at;
        let digits = |this: &mut Self| {
            let from = this.at;
            while this.peek().is_some_and(|b| b.is_ascii_digit()) {
                this.at += 1;
            }
            this.at - from
        };
        self.take(b'-');
        let (first, whole) = (self.peek(), digits(self));
        let mut is_sound = whole > 0 && (whole == 1 || first != Some(b'0'));
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) || self.text[start..self.at] == *"-0" {
            self.is_canonical = false;
        }
        if self.take(b'.') {
            is_sound &= digits(self) > 0;
        }
        if self.take(b'e') || self.take(b'E') {
            _ = self.take(b'+') || self.take(b'-');
            is_sound &= digits(self) > 0;
        }
        if is_sound { Ok(Json::Number(&self.text[start..self.at])) } else { Err(wrong(start, "no number")) }
    }

    /// A string; surrogates that stand alone are refused, for no canonical text can hold them.
    fn string(&mut self) -> Result<Cow<'a, str>, AuditError> {
        let start = self.at;
        if !self.take(b'"') {
            return Err(wrong(start, "no string"));
        }
        let mut is_plain = true;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += plain(rest);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_plain = false;
                    self.at += 2;
                }
                Some(_) | None => return Err(wrong(self.at, "a string does not end")),
            }
        }
        self.at += 1;
        if is_plain {
            return Ok(Cow::Borrowed(&self.text[start + 1..self.at - 1]));
        }
        self.is_canonical = false;
        let whole = self.text.get(start..self.at).ok_or_else(|| wrong(start, "an escape is cut"))?;
        serde_json::from_str(whole).map(Cow::Owned).map_err(|_| wrong(start, "an escape is wrong in the string"))
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, AuditError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(wrong(self.at, "no value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
            self.is_canonical = false;
        }
    }

    fn closes(&mut self, byte: u8) -> bool {
        self.space();
        self.take(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), AuditError> {
        self.space();
        if self.take(byte) { Ok(()) } else { Err(wrong(self.at, &format!("no `{}`", char::from(byte)))) }
    }
}

/// Where both are ASCII, as nearly all keys are, bytes and code units have one order.
pub(crate) fn by_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}
