//! A raw object with the places of its members, so that no reader scans the text again.
//! An object never changes: an edit makes another one.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

use super::member::{Member, MemberIndex, place};
use super::scan::{Level, META, Scan};
use super::{Duplicates, Members};

/// A raw object. Clones share everything.
#[derive(Debug, Clone)]
pub struct Object {
    text: Bytes,
    /// Places of the members: given by the scan of the whole message, or found on first use.
    found: OnceLock<MemberIndex>,
}

impl Object {
    /// Makes `{}`.
    pub fn empty() -> Self {
        Self::from(Bytes::from_static(b"{}"))
    }

    /// Wraps the object `text` together with members found earlier.
    pub(super) fn found(text: Bytes, found: MemberIndex) -> Self {
        Self { text, found: found.into() }
    }

    /// Finds the members; text that is no sound object has none.
    fn index(&self) -> &MemberIndex {
        let read = || {
            let read = Scan::new(&self.text, Duplicates::RefuseTop).whole(Level::Params);
            read.map_or_else(|_| MemberIndex::new(0, &[], None), |whole| MemberIndex::new(0, &whole.members, whole.meta))
        };
        self.found.get_or_init(read)
    }

    /// Gives the raw text.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Gives the raw text and drops the places.
    pub fn into_text(self) -> Bytes {
        self.text
    }

    /// Gives the members.
    #[inline]
    pub fn members(&self) -> Members<'_> {
        let found = self.index();
        Members { text: &self.text, list: Cow::Borrowed(found.own()) }
    }

    /// Gives the members of `_meta`, where `_meta` is an object.
    pub fn meta(&self) -> Option<Members<'_>> {
        let found = self.index();
        found.meta().map(|list| Members { text: &self.text, list: Cow::Borrowed(list) })
    }

    /// Gives the raw `_meta` and its members; places count from the opening brace of `_meta`.
    pub(super) fn meta_members(&self) -> Option<(&[u8], impl Iterator<Item = Member>)> {
        let found = self.index();
        let metas = found.meta()?;
        let span = found.own().iter().find(|member| member.is(&self.text, META))?.value_span();
        let start = place(span.start);
        Some((&self.text[span], metas.iter().map(move |member| member.since(start))))
    }

    /// The raw value of a member, sharing the text.
    pub fn get(&self, key: &str) -> Option<Bytes> {
        self.members().span(key).map(|s| self.text.slice(s))
    }

    /// Reads a member whose value is a string, unescaped.
    pub fn str(&self, key: &str) -> Option<Cow<'_, str>> {
        self.members().str(key)
    }

    /// Replaces the value of `key` by `raw`; every other byte stays. `key` must exist and must not be `_meta`.
    pub fn with(&self, key: &str, raw: &[u8]) -> Self {
        let Some(span) = self.members().span(key) else { return self.clone() };
        let text = Bytes::from([&self.text[..span.start], raw, &self.text[span.end..]].concat());
        Self::found(text, self.index().around(&span, raw.len()))
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
        Self { text, found: OnceLock::new() }
    }
}

impl From<Vec<u8>> for Object {
    fn from(text: Vec<u8>) -> Self {
        Bytes::from(text).into()
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
        let object = Object::from(Bytes::from_static(br#"{"a":1,"_meta":{"x":"y"},"b":[2]}"#));
        assert_eq!(object.members().get("b"), Some(&b"[2]"[..]));
        assert_eq!(object.meta().unwrap().str("x").as_deref(), Some("y"));
        assert!(Object::from(Bytes::from_static(br#"{"_meta":7}"#)).meta().is_none());
        assert!(Object::from(Bytes::from_static(b"[]")).members().is_empty());
        assert_eq!(Object::empty().len(), 2);
    }

    #[test]
    fn a_member_set_anew_moves_those_behind_it() {
        let object = Object::from(Bytes::from_static(br#"{ "a":1,"name":"longer","_meta":{"x":1},"z":2 }"#));
        let edited = object.with("name", b"\"n\"");
        assert_eq!(&edited[..], br#"{ "a":1,"name":"n","_meta":{"x":1},"z":2 }"#);
        let again = Object::from(edited.text().clone());
        assert_eq!(edited.index(), again.index());
        assert_eq!(object.with("none", b"1"), object);
    }
}
