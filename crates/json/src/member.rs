//! Places of the members of an object, and a quick comparison of keys that reads their text only when needed.
//! Nothing here knows a message.

use std::sync::Arc;

use super::Span;
use super::text::unescape;

/// Places of one member of an object. No text read here reaches 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    key: u32,
    key_end: u32,
    value: u32,
    end: u32,
    tag: u32,
}

/// Marks a key spelled with an escape: only the unescaped text can be compared.
const ESCAPED: u32 = 1 << 31;

impl Member {
    /// A member with key (without quotes) and value beginning at these places of `text`; the end is not known yet.
    #[inline]
    pub(super) fn new(text: &[u8], key: Span, escaped: bool, value: usize) -> Self {
        let tag = if escaped { ESCAPED } else { tag(&text[key.clone()]) };
        Self { key: place(key.start), key_end: place(key.end), value: place(value), end: place(value), tag }
    }

    /// Tells if the unescaped key of the member equals `key`.
    #[inline]
    pub(super) fn is(&self, text: &[u8], key: Key<'_>) -> bool {
        if self.tag == key.tag {
            return text[self.key_span()] == *key.text.as_bytes();
        }
        self.is_escaped() && self.is_unescaped(text, key)
    }

    #[cold]
    fn is_unescaped(&self, text: &[u8], key: Key<'_>) -> bool {
        unescape(&text[self.key_span()]) == key.text
    }

    /// Sets the end of the value to the byte before `at`.
    #[inline]
    pub(super) fn ending(self, at: usize) -> Self {
        Self { end: place(at), ..self }
    }

    /// Compares two keys without escapes.
    #[inline]
    pub(super) fn is_spelled_like(&self, other: &Self, text: &[u8]) -> bool {
        self.tag == other.tag && text[self.key_span()] == text[other.key_span()]
    }

    #[inline]
    pub(super) fn is_escaped(&self) -> bool {
        self.tag == ESCAPED
    }

    /// Gives the place of the key, still escaped, without the quotes.
    #[inline]
    pub(super) fn key_span(&self) -> Span {
        self.key as usize..self.key_end as usize
    }

    #[inline]
    pub(super) fn value_span(&self) -> Span {
        self.value as usize..self.end as usize
    }

    /// Gives the place from the opening quote of the key to the end of the value.
    pub(super) fn whole(&self) -> Span {
        self.key as usize - 1..self.end as usize
    }

    /// Moves the places to a text that begins `by` bytes later.
    pub(super) fn since(&self, by: u32) -> Self {
        Self { key: self.key - by, key_end: self.key_end - by, value: self.value - by, end: self.end - by, tag: self.tag }
    }

    /// Moves the places to a text that begins `by` bytes earlier.
    pub(super) fn behind(&self, by: u32) -> Self {
        Self { key: self.key + by, key_end: self.key_end + by, value: self.value + by, end: self.end + by, tag: self.tag }
    }

    /// Moves the places to a text with `now` bytes in place of `span`, a span crossed by no key.
    pub(super) fn around(&self, span: &Span, now: usize) -> Self {
        let moved = |at: u32| if at as usize >= span.end { place(at as usize - span.len() + now) } else { at };
        Self { key: moved(self.key), key_end: moved(self.key_end), value: moved(self.value), end: moved(self.end), tag: self.tag }
    }
}

/// A key to look for.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    text: &'a str,
    tag: u32,
}

impl<'a> Key<'a> {
    #[inline]
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, tag: tag(text.as_bytes()) }
    }
}

/// Members of an object and of the object's `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberIndex {
    /// Members of the object, then members of the object's `_meta`; places count from the opening brace of the object.
    members: Arc<[Member]>,
    own: u32,
    has_meta: bool,
}

impl MemberIndex {
    /// Collects the members of an object beginning at `start`; the last `meta` members belong to `_meta`.
    pub(super) fn new(start: usize, members: &[Member], meta: Option<usize>) -> Self {
        let own = place(members.len() - meta.unwrap_or_default());
        Self { members: members.iter().map(|m| m.since(place(start))).collect(), own, has_meta: meta.is_some() }
    }

    #[inline]
    pub(super) fn own(&self) -> &[Member] {
        &self.members[..self.own as usize]
    }

    /// Gives the members of `_meta`, where `_meta` is an object.
    #[inline]
    pub(super) fn meta(&self) -> Option<&[Member]> {
        self.has_meta.then(|| &self.members[self.own as usize..])
    }

    /// Moves the places to a text with `now` bytes in place of `span`, a span crossed by no key.
    pub(super) fn around(&self, span: &Span, now: usize) -> Self {
        Self { members: self.members.iter().map(|member| member.around(span, now)).collect(), ..*self }
    }
}

/// Digest of a key: length, first, middle and last byte, equal for equal spellings.
#[inline]
const fn tag(key: &[u8]) -> u32 {
    match key {
        [] => 0,
        [only] => 1 << 24 | *only as u32,
        [first, .., last] => (key.len() as u32 & 0x7f) << 24 | (*first as u32) << 16 | (key[key.len() / 2] as u32) << 8 | *last as u32,
    }
}

pub(super) fn place(at: usize) -> u32 {
    at as u32
}
