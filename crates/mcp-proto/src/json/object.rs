//! A raw object that knows where its members stand, so that nobody who asks has to read it again.
//! It does not change: an edit makes another one.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

use super::scan::{Found, Level, Scan};
use super::{Duplicates, Member, Members, Span};

/// A raw object, read once. Clones share everything.
#[derive(Debug, Clone)]
pub struct Object {
    text: Bytes,
    /// Its own members, and behind them those of its `_meta`.
    members: Arc<[Member]>,
    own: usize,
    has_meta: bool,
}

impl Object {
    /// `{}`.
    pub fn empty() -> Self {
        Self { text: Bytes::from_static(b"{}"), members: Arc::default(), own: 0, has_meta: false }
    }

    /// Reads an object that is known to be sound; text that is none has no members.
    pub fn again(text: Bytes) -> Self {
        let (list, inner) = Scan::new(&text, Duplicates::RefuseTop).and_then(|s| s.whole(Level::Params)).unwrap_or_default();
        Self::found(text, Found::new(0, &list, inner.meta.as_deref()))
    }

    /// The object `text`, which has been read.
    pub(super) fn found(text: Bytes, found: Found) -> Self {
        Self { text, members: found.members, own: found.own, has_meta: found.has_meta }
    }

    /// Its raw text.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Its members.
    pub fn members(&self) -> Members<'_> {
        Members { text: &self.text, list: Cow::Borrowed(&self.members[..self.own]) }
    }

    /// The members of its `_meta`, where that is an object.
    pub fn meta(&self) -> Option<Members<'_>> {
        self.has_meta.then(|| Members { text: &self.text, list: Cow::Borrowed(&self.members[self.own..]) })
    }

    /// The raw value of a member, sharing the text.
    pub fn get(&self, key: &str) -> Option<Bytes> {
        self.members().span(key).map(|s| self.text.slice(s))
    }

    /// A member whose value is a string, unescaped.
    pub fn str(&self, key: &str) -> Option<Cow<'_, str>> {
        self.members().str(key)
    }

    /// The same object with `raw` as the value of `key`, which must be there and not be `_meta`; every other byte stays.
    pub fn with(&self, key: &str, raw: &[u8]) -> Self {
        let Some(span) = self.members().span(key) else { return self.clone() };
        let text = Bytes::from([&self.text[..span.start], raw, &self.text[span.end..]].concat());
        let moved = |at: usize| if at >= span.end { at - span.len() + raw.len() } else { at };
        let shift = |s: &Span| moved(s.start)..moved(s.end);
        let members = self.members.iter().map(|m| Member { key: shift(&m.key), escaped: m.escaped, value: shift(&m.value) }).collect();
        Self { text, members, own: self.own, has_meta: self.has_meta }
    }
}

impl Deref for Object {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.text
    }
}

impl From<Bytes> for Object {
    fn from(text: Bytes) -> Self {
        Self::again(text)
    }
}

impl From<Vec<u8>> for Object {
    fn from(text: Vec<u8>) -> Self {
        Self::again(text.into())
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Object {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_knows_its_members_and_those_of_its_meta() {
        let object = Object::again(Bytes::from_static(br#"{"a":1,"_meta":{"x":"y"},"b":[2]}"#));
        assert_eq!(object.members().get("b"), Some(&b"[2]"[..]));
        assert_eq!(object.meta().unwrap().str("x").as_deref(), Some("y"));
        assert!(Object::again(Bytes::from_static(br#"{"_meta":7}"#)).meta().is_none());
        assert!(Object::again(Bytes::from_static(b"[]")).members().is_empty());
        assert_eq!(Object::empty().len(), 2);
    }

    #[test]
    fn a_member_set_anew_moves_those_behind_it() {
        let object = Object::again(Bytes::from_static(br#"{ "a":1,"name":"longer","_meta":{"x":1},"z":2 }"#));
        let edited = object.with("name", b"\"n\"");
        assert_eq!(&edited[..], br#"{ "a":1,"name":"n","_meta":{"x":1},"z":2 }"#);
        let again = Object::again(edited.text().clone());
        assert_eq!((edited.members.clone(), edited.own, edited.has_meta), (again.members.clone(), again.own, again.has_meta));
        assert_eq!(object.with("none", b"1"), object);
    }
}
