//! JSON as a tree with numbers as written, for text to be hashed, shown or described. Messages are forwarded as received and
//! never built from a tree.

use std::borrow::Cow;

use super::MAX_DEPTH;
use super::canonical::{EXACT, NotCanonical};
use super::plain::plain;
use super::text::unescape_whole;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    /// Digits as written.
    Number(&'a str),
    /// Borrowed where written without an escape.
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of RFC 8785: by the UTF-16 code units of the keys. No key stands twice.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// A value, and if its text is canonical.
#[derive(Debug, Clone)]
pub struct ParsedJson<'a> {
    pub value: Json<'a>,
    /// The text is the value's canonical form. `false` may be too careful.
    pub is_canonical: bool,
}

/// Reads `text` as one whole value.
///
/// # Errors
/// When `text` is not one JSON value, is nested deeper than [`MAX_DEPTH`], holds a key twice or half of a surrogate pair.
pub fn read(text: &[u8]) -> Result<ParsedJson<'_>, NotCanonical> {
    let text = std::str::from_utf8(text).map_err(|e| wrong(e.valid_up_to(), "not UTF-8"))?;
    let mut reader = Reader { text, at: 0, is_canonical: true };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(wrong(reader.at, "something follows the value"));
    }
    Ok(ParsedJson { value, is_canonical: reader.is_canonical })
}

fn wrong(at: usize, why: &str) -> NotCanonical {
    NotCanonical::Json(format!("{why} at byte {at}"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_canonical: bool,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json<'a>, NotCanonical> {
        self.space();
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'{' | b'[') if depth == MAX_DEPTH => Err(wrong(self.at, "nested too deep")),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) | None => Err(wrong(self.at, "no value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, NotCanonical> {
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
            if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(NotCanonical::Doubled(pair[0].0.to_string()));
            }
        }
        Ok(Json::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, NotCanonical> {
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

    fn number(&mut self) -> Result<Json<'a>, NotCanonical> {
        let start = self.at;
        let digits = |this: &mut Self| {
            let from = this.at;
            while this.peek().is_some_and(|b| b.is_ascii_digit()) {
                this.at += 1;
            }
            this.at - from
        };
        self.take_byte(b'-');
        let (first, whole) = (self.peek(), digits(self));
        let mut is_sound = whole > 0 && (whole == 1 || first != Some(b'0'));
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) || self.text[start..self.at] == *"-0" || self.at - start > EXACT {
            self.is_canonical = false;
        }
        if self.take_byte(b'.') {
            is_sound &= digits(self) > 0;
        }
        if self.take_byte(b'e') || self.take_byte(b'E') {
            _ = self.take_byte(b'+') || self.take_byte(b'-');
            is_sound &= digits(self) > 0;
        }
        if is_sound { Ok(Json::Number(&self.text[start..self.at])) } else { Err(wrong(start, "no number")) }
    }

    /// A string; surrogates that stand alone are refused, for no canonical text can hold them.
    fn string(&mut self) -> Result<Cow<'a, str>, NotCanonical> {
        let start = self.at;
        if !self.take_byte(b'"') {
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
        let within = self.text.get(start + 1..self.at - 1).ok_or_else(|| wrong(start, "an escape is cut"))?;
        unescape_whole(within).map(Cow::Owned).ok_or_else(|| wrong(start, "an escape is wrong in the string"))
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, NotCanonical> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(wrong(self.at, "no value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take_byte(&mut self, byte: u8) -> bool {
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
        self.take_byte(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotCanonical> {
        self.space();
        if self.take_byte(byte) { Ok(()) } else { Err(wrong(self.at, &format!("no `{}`", char::from(byte)))) }
    }
}

/// The order of keys in RFC 8785, section 3.2.3. Where both are ASCII, as nearly all are, bytes and code units have one order.
pub fn by_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l3_what_is_nested_too_deep_is_refused_before_it_is_read() {
        let nested = |open: &str, within: &str, close: &str, count: usize| open.repeat(count) + within + &close.repeat(count);
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let levels = open.matches(['[', '{']).count();
            assert!(read(nested(open, "1", close, MAX_DEPTH / levels).as_bytes()).is_ok());
            for count in [MAX_DEPTH / levels + 1, 100_000] {
                assert!(matches!(read(nested(open, "1", close, count).as_bytes()), Err(NotCanonical::Json(_))), "{count} × {open}");
            }
        }
    }

    #[test]
    fn only_what_is_its_own_form_is_taken_as_it_is() {
        for same in ["{}", "[]", "0", "-1", r#"{"a":1,"b":[true,null,"€~"]}"#, r#"{"€":1,"😀":2}"#, "123456789012345"] {
            assert!(read(same.as_bytes()).unwrap().is_canonical, "{same}");
        }
        for other in [
            " 1",
            "1 ",
            "{ }",
            "[1, 2]",
            r#"{"a" :1}"#,
            r#"{"b":1,"a":2}"#,
            "-0",
            "1234567890123456",
            "1.0",
            "1e1",
            "1E1",
            r#""\/""#,
            r#""\n""#,
            r#"{"\u0061":1}"#,
        ] {
            assert!(!read(other.as_bytes()).unwrap().is_canonical, "{other}");
        }
    }
}
