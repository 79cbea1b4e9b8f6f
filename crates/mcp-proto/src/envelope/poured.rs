//! A response read as it arrives, and not kept: the place of its `result`, and a few wanted members.
//!
//! Responses are held to the rules of [`Message::parse`](super::Message::parse), with one more bound
//! ([`JsonError::TooMany`]); but a fault shows only where it stands, perhaps behind bytes already passed on.

use bytes::Bytes;

use super::EnvelopeError;
use crate::json;
#[cfg(doc)]
use crate::json::JsonError;
use crate::json::stream::{Mark, Stream};

/// Bytes of the longest value kept.
const KEPT: usize = 4 << 10;

/// Reads one response.
#[derive(Debug)]
pub struct Poured {
    stream: Stream,
    /// The wanted members of the result.
    wanted: &'static [&'static str],
    found: Vec<FoundMember>,
    member: Member,
    /// The value being read, if kept; `None` for an unwanted or overlong value.
    value: Option<Vec<u8>>,
    id: Option<Bytes>,
    is_2_0: bool,
    has_error: bool,
    has_method: bool,
    result: Place,
}

#[derive(Debug)]
struct FoundMember {
    name: &'static str,
    /// `None` for an overlong value.
    value: Option<Bytes>,
}

/// The member of the message being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Id,
    Other,
    Result,
    Version,
}

#[derive(Debug, Default)]
struct Place {
    begin: Option<usize>,
    end: Option<usize>,
    is_object: bool,
    has_members: bool,
}

impl Poured {
    /// `wanted`: the names of the members of the result that are kept, of 16 bytes at most.
    pub fn new(wanted: &'static [&'static str]) -> Self {
        Self {
            stream: Stream::default(),
            wanted,
            found: Vec::new(),
            member: Member::Other,
            value: None,
            id: None,
            is_2_0: false,
            has_error: false,
            has_method: false,
            result: Place::default(),
        }
    }

    /// Reads the next piece.
    pub fn read(&mut self, piece: &[u8]) -> Result<(), EnvelopeError> {
        let mut rest = piece;
        loop {
            let before = rest;
            let mark = self.stream.next(&mut rest)?;
            self.keep(&before[..before.len() - rest.len()]);
            match mark {
                None => return Ok(()),
                Some(Mark::Begins(1)) => self.begins(rest.first() == Some(&b'{')),
                Some(Mark::Begins(_)) if self.member == Member::Result => self.begins_within(),
                Some(Mark::Ends(1)) => self.ends(),
                Some(Mark::Ends(_)) if self.member == Member::Result => self.ends_within(),
                Some(Mark::Begins(_) | Mark::Ends(_)) => {}
            }
        }
    }

    /// Gives the beginning of the `result`, if known and an object.
    pub fn begin(&self) -> Option<usize> {
        self.result.begin.filter(|_| self.result.is_object)
    }

    /// Gives the end of the `result`, if known.
    pub fn end(&self) -> Option<usize> {
        self.result.end
    }

    /// Counts the bytes read.
    pub fn at(&self) -> usize {
        self.stream.at()
    }

    /// Tells if the text so far may be a response without an error.
    pub fn may_be_result(&self) -> bool {
        !self.has_error && !self.has_method
    }

    /// Gives the raw id, if known.
    pub fn id(&self) -> Option<&Bytes> {
        self.id.as_ref()
    }

    /// Tells if the result so far has a wanted member.
    pub fn has(&self, name: &str) -> bool {
        self.found.iter().any(|found| found.name == name)
    }

    /// Tells if the result so far has any member.
    pub fn has_members(&self) -> bool {
        self.result.has_members
    }

    /// Tells if the response is complete.
    pub fn is_whole(&self) -> bool {
        self.stream.end().is_ok()
    }

    /// Ends the text and gives a raw object of the wanted members of the result, without overlong ones.
    pub fn finish(&self) -> Result<Bytes, EnvelopeError> {
        self.stream.end()?;
        let invalid = |why| EnvelopeError::Invalid { id: self.id.clone(), why };
        if !self.is_2_0 {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        if self.begin().is_none() || !self.may_be_result() {
            return Err(invalid("a response has either `result` or an `error` object"));
        }
        let mut object = vec![b'{'];
        for (name, value) in self.found.iter().filter_map(|found| Some((found.name, found.value.as_ref()?))) {
            if object.len() > 1 {
                object.push(b',');
            }
            object.extend_from_slice(json::quote(name).as_bytes());
            object.push(b':');
            object.extend_from_slice(value);
        }
        object.push(b'}');
        Ok(object.into())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.value.as_ref().is_some_and(|value| value.len() + bytes.len() > KEPT) {
            self.value = None;
        }
        if let Some(value) = &mut self.value {
            value.extend_from_slice(bytes);
        }
    }

    fn begins(&mut self, is_object: bool) {
        self.member = match self.stream.key() {
            Some(b"error") => {
                self.has_error = true;
                Member::Other
            }
            Some(b"id") => Member::Id,
            Some(b"jsonrpc") => Member::Version,
            Some(b"method") => {
                self.has_method = true;
                Member::Other
            }
            Some(b"result") => {
                // Said twice, the text is refused at its end; until then the first one counts.
                if self.result.begin.is_none() {
                    self.result = Place { begin: Some(self.stream.at()), is_object, ..Place::default() };
                }
                Member::Result
            }
            _ => Member::Other,
        };
        self.value = matches!(self.member, Member::Id | Member::Version).then(Vec::new);
    }

    fn ends(&mut self) {
        let value = self.value.take();
        match self.member {
            Member::Id => self.id = value.filter(|raw| super::usable_id(raw)).map(Bytes::from),
            Member::Result => self.result.end = self.result.end.or(Some(self.stream.at())),
            Member::Version => self.is_2_0 = value.as_deref() == Some(b"\"2.0\""),
            Member::Other => {}
        }
        self.member = Member::Other;
    }

    fn begins_within(&mut self) {
        self.result.has_members = true;
        if let Some(name) = self.stream.key().and_then(|key| self.wanted.iter().find(|name| name.as_bytes() == key)) {
            self.found.push(FoundMember { name, value: None });
            self.value = Some(Vec::new());
        }
    }

    fn ends_within(&mut self) {
        if let (Some(value), Some(found)) = (self.value.take(), self.found.last_mut()) {
            found.value = Some(value.into());
        }
    }
}
