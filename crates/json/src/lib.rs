//! Finds members in raw JSON and gives their places, so that the rest can be sent on untouched.
//!
//! One strict pass over RFC 8259 text checks grammar, UTF-8, duplicate keys and depth, and builds nothing.
//! Numbers and strings stay text, and no message becomes a tree: only text to be hashed, shown or described does ([`tree`]).
//! Every protocol that forwards raw JSON reads with this crate, so that no two read a text in two ways.

mod before;
pub mod canonical;
mod member;
mod object;
mod plain;
mod run;
mod scan;
pub mod stream;
mod text;
pub mod tree;

use std::borrow::Cow;
use std::ops::Range;

pub use before::Before;
pub use object::Object;
pub use text::{as_str, push_quoted, quote};

use member::{Key, Member};
use scan::{Level, Scan, Whole};
use text::unescape;

/// Nesting beyond this depth is refused, as most parsers of other peers do.
pub const MAX_DEPTH: usize = 128;

/// Bytes of a value in the surrounding text.
pub type Span = Range<usize>;

/// Reasons for refusing a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Two members of one object have the same name.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// Two members of the object that ends at this byte have the same name.
    #[error("duplicate key in the object that ends at byte {0}")]
    DuplicateWithin(usize),
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Not JSON at this byte.
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    /// An object has more members than can be compared while they come.
    #[error("an object has too many members")]
    TooMany,
}

/// Thoroughness of the comparison of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// At every depth: for text that a decision may rest on.
    RefuseDeep,
    /// In the outermost object, the `params` of a message and their `_meta`: for text forwarded as received.
    RefuseTop,
}

/// The members of one object, in order, keys still escaped.
#[derive(Debug, Clone, Default)]
pub struct Members<'a> {
    text: &'a [u8],
    list: Cow<'a, [Member]>,
}

impl<'a> Members<'a> {
    /// Reads `text` as one whole object (surrounding space allowed).
    pub fn parse(text: &'a [u8], duplicates: Duplicates) -> Result<Self, JsonError> {
        let Whole { members, .. } = Scan::new(text, duplicates).whole(Level::Listed)?;
        Ok(Self { text, list: Cow::Owned(members) })
    }

    /// Reads an object that an earlier pass over the whole text has found sound.
    pub fn again(text: &'a [u8]) -> Self {
        Self::parse(text, Duplicates::RefuseTop).unwrap_or_default()
    }

    /// The raw bytes of a member's value.
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.span(key).map(|s| &self.text[s])
    }

    /// Gives the place of a member's value.
    pub fn span(&self, key: &str) -> Option<Span> {
        self.member(key).map(Member::value_span)
    }

    /// Gives the place of a whole member, from the opening quote of the key to the end of the value.
    pub fn member_span(&self, key: &str) -> Option<Span> {
        self.member(key).map(Member::whole)
    }

    /// Reads a member whose value is an object.
    pub fn object(&self, key: &str) -> Option<Members<'a>> {
        self.get(key).and_then(|v| Members::parse(v, Duplicates::RefuseTop).ok())
    }

    /// Reads a member whose value is a string, unescaped.
    pub fn str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(as_str)
    }

    /// Tells if the object has a member `key`.
    pub fn has(&self, key: &str) -> bool {
        self.span(key).is_some()
    }

    /// Lists the unescaped key and the raw value of every member.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a [u8])> + '_ {
        self.list.iter().map(|m| (unescape(&self.text[m.key_span()]), &self.text[m.value_span()]))
    }

    /// Lists the unescaped keys that begin with the plain text `prefix`.
    pub fn beginning_with(&self, prefix: &str) -> impl Iterator<Item = Cow<'a, str>> {
        let of = |m: &&Member| m.is_escaped() || self.text[m.key_span()].starts_with(prefix.as_bytes());
        self.list.iter().filter(of).map(|m| unescape(&self.text[m.key_span()])).filter(move |key| key.starts_with(prefix))
    }

    /// Finds the first key that is none of `known` but equals one of them to readers that ignore case, such as Go's `encoding/json` and
    /// Json.NET.
    pub fn lookalike(&self, known: &[&str]) -> Option<Cow<'a, str>> {
        let is_one = |member: &&Member| {
            let key = &self.text[member.key_span()];
            if !member.is_escaped() && key.is_ascii() {
                let is_like = |one: &[u8]| one.len() == key.len() && one != key && one.eq_ignore_ascii_case(key);
                return known.iter().any(|one| is_like(one.as_bytes()));
            }
            let key = unescape(key);
            known.iter().any(|one| *one != key && folded(one).eq(folded(&key)))
        };
        self.list.iter().find(is_one).map(|member| unescape(&self.text[member.key_span()]))
    }

    /// Lists the places of every whole member and of the member's value.
    pub fn spans(&self) -> Vec<(Span, Span)> {
        self.list.iter().map(|m| (m.whole(), m.value_span())).collect()
    }

    fn member(&self, key: &str) -> Option<&Member> {
        let key = Key::new(key);
        self.list.iter().find(|m| m.is(self.text, key))
    }

    /// Counts the members.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Tells if the object is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The characters of a key without what case says: `ſ` and the sign of Kelvin are letters too.
pub fn folded(key: &str) -> impl Iterator<Item = char> {
    key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// The members of a message known to JSON-RPC, found in one pass; values are raw.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    pub jsonrpc: Option<&'a [u8]>,
    /// The id of the request, or of the request answered.
    pub id: Option<&'a [u8]>,
    pub method: Option<&'a [u8]>,
    pub params: Option<Part<'a>>,
    pub result: Option<Part<'a>>,
    pub error: Option<&'a [u8]>,
}

/// A raw value, and the parsed object where the value is an object.
pub type Part<'a> = (&'a [u8], Option<Object>);

const ERROR: Key<'_> = Key::new("error");
const ID: Key<'_> = Key::new("id");
const JSONRPC: Key<'_> = Key::new("jsonrpc");
const METHOD: Key<'_> = Key::new("method");

/// Reads a whole message.
pub fn message(text: &bytes::Bytes, duplicates: Duplicates) -> Result<Parts<'_>, JsonError> {
    Scan::new(text, duplicates).whole(Level::Message).map(|whole| parts(text, whole))
}

/// Reads a whole message at the depth used for earlier messages, and keeps the `_meta` that the next message will probably repeat.
pub fn message_after<'a>(text: &'a bytes::Bytes, before: &mut Before) -> Result<Parts<'a>, JsonError> {
    let parts = Scan::after(text, before).whole(Level::Message).map(|whole| parts(text, whole))?;
    before.keep(parts.params.as_ref().and_then(|(_, object)| object.as_ref()));
    Ok(parts)
}

fn parts(text: &bytes::Bytes, whole: Whole) -> Parts<'_> {
    let Whole { members, mut inner, .. } = whole;
    let mut parts = Parts::default();
    for member in &members {
        let value = &text[member.value_span()];
        let part = |found: Option<_>| Some((value, found.map(|found| Object::found(text.slice(member.value_span()), found))));
        if member.is(text, JSONRPC) {
            parts.jsonrpc = Some(value);
        } else if member.is(text, ID) {
            parts.id = Some(value);
        } else if member.is(text, METHOD) {
            parts.method = Some(value);
        } else if member.is(text, scan::PARAMS) {
            parts.params = part(inner.params.take());
        } else if member.is(text, scan::RESULT) {
            parts.result = part(inner.result.take());
        } else if member.is(text, ERROR) {
            parts.error = Some(value);
        }
    }
    parts
}

/// Checks that `text` is one JSON value and gives the place of the value without surrounding space.
pub fn check(text: &[u8], duplicates: Duplicates) -> Result<Span, JsonError> {
    Scan::new(text, duplicates).one_value()
}

/// The elements of a raw array; `None` when `text` is not a sound array.
pub fn elements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let spans = Scan::new(text, Duplicates::RefuseTop).elements().ok()?;
    Some(spans.into_iter().map(|s| &text[s]).collect())
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
    fn e1_a_key_in_another_case_is_told_from_the_key_itself_and_from_others() {
        let known = ["name", "taskId", "arguments"];
        let of = |text: &str| Members::parse(text.as_bytes(), Duplicates::RefuseDeep).unwrap().lookalike(&known).map(Cow::into_owned);
        for (text, found) in [
            (r#"{"name":1,"taskId":2,"arguments":{"Name":1},"nam":1,"names":2,"größe":3,"":0}"#, None),
            (r#"{"name":1,"Name":2}"#, Some("Name")),
            (r#"{"taskid":1}"#, Some("taskid")),
            (r#"{"n\u0041me":1}"#, Some("nAme")),
            (r#"{"n\u0061me":1}"#, None),
            (r#"{"argument\u017f":1}"#, Some("argumentſ")),
            (r#"{"tasKId":1}"#, Some("tasKId")),
        ] {
            assert_eq!(of(text).as_deref(), found, "{text}");
        }
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
