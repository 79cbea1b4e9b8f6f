//! Objects of a message while being read: bounds, members and faults. Knows no binding.

use std::borrow::Cow;

use json::{Duplicates, Members};

use crate::error::BridgeError;
use crate::raw::{QuotedText, RawMember};

/// Longest message, in bytes.
pub const MOST_BYTES: usize = 8 << 20;
/// Deepest nesting of a message. A translation adds some levels of its own, and [`json::MAX_DEPTH`] is the end for every reader.
pub const MOST_DEPTH: usize = 96;
/// Most elements of an array taken apart by a codec.
pub const MOST_ELEMENTS: usize = 4_096;

/// An object within a message, and its place for errors.
#[derive(Clone, Debug)]
pub(crate) struct RawObject<'a> {
    text: &'a [u8],
    members: Members<'a>,
    at: &'static str,
}

impl<'a> RawObject<'a> {
    /// Reads a whole message within the bounds. No key may stand twice in an object, however deep.
    pub(crate) fn whole(text: &'a [u8]) -> Result<Self, BridgeError> {
        if text.len() > MOST_BYTES || depth(text) > MOST_DEPTH {
            return Err(BridgeError::TooLarge);
        }
        let members = Members::parse(text, Duplicates::RefuseDeep)
            .map_err(|error| BridgeError::Malformed { at: "message", why: error.to_string().into() })?;
        Ok(Self { text, members, at: "message" })
    }

    pub(crate) fn read(text: &'a [u8], at: &'static str) -> Result<Self, BridgeError> {
        let members = Members::parse(text, Duplicates::RefuseTop).map_err(|_| BridgeError::malformed(at, "an object is expected"))?;
        Ok(Self { text, members, at })
    }

    /// The raw value of a member; `null` counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.members.get(key).filter(|raw| *raw != b"null")
    }

    /// The raw value of a member, `null` included.
    pub(crate) fn value(&self, key: &str) -> Option<&'a [u8]> {
        self.members.get(key)
    }

    /// The raw values of all members.
    pub(crate) fn values(&self) -> Result<Vec<&'a [u8]>, BridgeError> {
        if self.members.len() > MOST_ELEMENTS { Err(BridgeError::TooLarge) } else { Ok(self.members.iter().map(|(_, raw)| raw).collect()) }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.members.has(key)
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<QuotedText<'a>>, BridgeError> {
        let read = |raw| QuotedText::read(raw).ok_or(BridgeError::malformed(self.at, "a text is expected in one of its members"));
        self.get(key).map(read).transpose()
    }

    pub(crate) fn needed(&self, key: &str, why: &'static str) -> Result<QuotedText<'a>, BridgeError> {
        self.string(key)?.ok_or(BridgeError::malformed(self.at, why))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, BridgeError> {
        match self.get(key) {
            None | Some(b"false") => Ok(false),
            Some(b"true") => Ok(true),
            Some(_) => Err(BridgeError::malformed(self.at, "true or false is expected in one of its members")),
        }
    }

    pub(crate) fn object(&self, key: &str, at: &'static str) -> Result<Option<RawObject<'a>>, BridgeError> {
        self.get(key).map(|raw| Self::read(raw, at)).transpose()
    }

    /// The raw elements of an array.
    pub(crate) fn array(&self, key: &str) -> Result<Option<Vec<&'a [u8]>>, BridgeError> {
        let Some(raw) = self.get(key) else { return Ok(None) };
        let elements = json::elements(raw).ok_or(BridgeError::malformed(self.at, "an array is expected in one of its members"))?;
        if elements.len() > MOST_ELEMENTS { Err(BridgeError::TooLarge) } else { Ok(Some(elements)) }
    }

    /// The members besides `known`, in their spelling.
    pub(crate) fn rest(&self, known: &[&str]) -> Vec<RawMember<'a>> {
        let spans = self.members.spans();
        let found = self.members.iter().zip(spans).filter(|((key, _), _)| !known.contains(&&**key));
        let member = |key, whole: json::Span, value: json::Span| {
            let value_at = value.start - whole.start;
            RawMember { key, whole: Cow::Borrowed(&self.text[whole]), value_at }
        };
        found.map(|((key, _), (whole, value))| member(key, whole, value)).collect()
    }

    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }
}

/// Counts the levels of nesting, in one pass and before anything is read.
pub(crate) fn depth(text: &[u8]) -> usize {
    let (mut level, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
