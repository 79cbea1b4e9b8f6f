//! A strict pass over JSON text. Findings are kept on one stack, so that nesting costs no allocation.
//! The meaning of members is not known here.

use super::before::Before;
use super::member::{Key, Member, MemberIndex};
use super::run::{plain_run, run};
use super::text::unescape;
use super::{Duplicates, JsonError, MAX_DEPTH, Span};

/// No longer text is read, in bytes: places are kept in four.
const MAX_TEXT: usize = u32::MAX as usize;

/// So many keys of one object are compared with each other; more are sorted.
const PAIRWISE: usize = 12;

pub(super) const PARAMS: Key<'_> = Key::new("params");
pub(super) const RESULT: Key<'_> = Key::new("result");
pub(super) const META: Key<'_> = Key::new("_meta");

pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    deep: bool,
    /// Members of every open object of interest, innermost last.
    stack: Vec<Member>,
    inner: Inner,
    /// A duplicate key.
    twice: Span,
    /// The `_meta` of an earlier message, read as strictly.
    before: Option<&'a Before>,
}

/// Objects found within a message.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) params: Option<MemberIndex>,
    pub(super) result: Option<MemberIndex>,
}

/// The outcome of scanning a whole text.
pub(super) struct Whole {
    /// The members of the outermost object.
    pub(super) members: Vec<Member>,
    /// Number of members at the end of the list that belong to `_meta`.
    pub(super) meta: Option<usize>,
    pub(super) inner: Inner,
}

/// The object being read, by place in the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Message,
    /// The `params` of a message.
    Params,
    /// The `result` of a message.
    Result,
    /// The `_meta` of either.
    Meta,
    /// Any object, with members.
    Listed,
    /// Any object, checked for soundness only.
    Other,
}

/// Reasons for reading to end; the scan knows the place. Small, since every step returns one.
#[derive(Clone, Copy)]
pub(super) enum Bad {
    Duplicate,
    Syntax,
    TooDeep,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8], duplicates: Duplicates) -> Self {
        let deep = duplicates == Duplicates::RefuseDeep;
        // What is longer ends too early, and that is where it is refused.
        let text = &text[..text.len().min(MAX_TEXT)];
        Self { text, at: 0, deep, stack: Vec::new(), inner: Inner::default(), twice: 0..0, before: None }
    }

    /// Scans a message following others from the same peer, at the same depth.
    pub(super) fn after(text: &'a [u8], before: &'a Before) -> Self {
        Self { before: Some(before), ..Self::new(text, Duplicates::RefuseDeep) }
    }

    /// Reads one object that fills the whole text.
    pub(super) fn whole(mut self, level: Level) -> Result<Whole, JsonError> {
        self.stack.reserve(if level == Level::Message { 24 } else { 8 });
        let mut read = || {
            self.space();
            let meta = self.object(1, level)?;
            self.expect_end()?;
            Ok(meta)
        };
        match read() {
            Ok(meta) => Ok(Whole { members: self.stack, meta, inner: self.inner }),
            Err(bad) => Err(self.error(bad)),
        }
    }

    /// Reads one value that fills the whole text, and gives its place.
    pub(super) fn one_value(mut self) -> Result<Span, JsonError> {
        let mut read = || {
            self.space();
            let start = self.at;
            self.value(0)?;
            let end = self.at;
            self.expect_end()?;
            Ok(start..end)
        };
        read().map_err(|bad| self.error(bad))
    }

    /// Reads an array that fills the whole text, and gives the places of its elements.
    pub(super) fn elements(mut self) -> Result<Vec<Span>, JsonError> {
        let mut spans = Vec::new();
        let mut read = || {
            self.space();
            self.array(1, Some(&mut spans))?;
            self.expect_end()
        };
        read().map_err(|bad| self.error(bad))?;
        Ok(spans)
    }

    #[cold]
    fn error(&self, bad: Bad) -> JsonError {
        match bad {
            Bad::Duplicate => JsonError::DuplicateKey(unescape(&self.text[self.twice.clone()]).into_owned()),
            Bad::Syntax => JsonError::Syntax(self.at),
            Bad::TooDeep => JsonError::TooDeep,
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expect_end(&mut self) -> Result<(), Bad> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(Bad::Syntax) }
    }

    #[inline]
    fn expect(&mut self, b: u8) -> Result<(), Bad> {
        if self.peek() != Some(b) {
            return Err(Bad::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), Bad> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'{') => {
                let base = self.stack.len();
                self.object(depth + 1, Level::Other)?;
                self.stack.truncate(base);
                Ok(())
            }
            Some(b'[') => self.array(depth + 1, None),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(Bad::Syntax),
        }
    }

    /// Reads an object. Leaves the members on the stack where the level or the comparison of keys needs them, followed by the members of
    /// `_meta` where the level needs those; returns the number of the latter.
    fn object(&mut self, depth: usize, level: Level) -> Result<Option<usize>, Bad> {
        if depth > MAX_DEPTH {
            return Err(Bad::TooDeep);
        }
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(None);
        }
        let listed = self.deep || level != Level::Other;
        let (base, mut own, mut any_escaped, mut meta) = (self.stack.len(), 0, false, None);
        loop {
            let key = self.at + 1;
            let escaped = self.string()?;
            any_escaped |= escaped;
            let key = key..self.at - 1;
            self.space();
            self.expect(b':')?;
            self.space();
            if listed {
                let member = Member::new(self.text, key, escaped, self.at);
                let from = self.stack.len();
                if self.member(depth, level, &member, meta.is_none())? {
                    meta = Some(from..self.stack.len());
                }
                if own < PAIRWISE && self.is_there(base, meta.as_ref(), &member) {
                    return Err(Bad::Duplicate);
                }
                own += 1;
                self.stack.push(member.ending(self.at));
            } else {
                self.value(depth)?;
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(Bad::Syntax),
            }
            self.space();
        }
        self.at += 1;
        let metas = meta.map(|span| {
            self.stack[span.start..].rotate_left(span.len());
            span.len()
        });
        if any_escaped || own > PAIRWISE {
            self.refuse_duplicates(base, base + own)?;
        }
        Ok(metas)
    }

    /// Reads the value of one member and keeps some members of a message. `true`: the members of a `_meta` are on the stack.
    fn member(&mut self, depth: usize, level: Level, member: &Member, first: bool) -> Result<bool, Bad> {
        let next = match level {
            Level::Message if member.is(self.text, PARAMS) => Level::Params,
            Level::Message if member.is(self.text, RESULT) => Level::Result,
            Level::Params | Level::Result if first && member.is(self.text, META) => Level::Meta,
            Level::Listed | Level::Message | Level::Meta | Level::Other | Level::Params | Level::Result => {
                return self.value(depth).map(|()| false);
            }
        };
        if self.peek() != Some(b'{') {
            return self.value(depth).map(|()| false);
        }
        let (base, start) = (self.stack.len(), self.at);
        if level == Level::Params && self.stands_again() {
            return Ok(true);
        }
        let meta = self.object(depth + 1, next)?;
        if next == Level::Meta {
            return Ok(true);
        }
        let found = Some(MemberIndex::new(start, &self.stack[base..], meta));
        if next == Level::Result {
            self.inner.result = found;
        } else {
            self.inner.params = found;
        }
        self.stack.truncate(base);
        Ok(false)
    }

    /// Skips a `_meta` equal to the one before, byte for byte, and puts its members on the stack.
    #[inline]
    fn stands_again(&mut self) -> bool {
        let Some(known) = self.before.filter(|before| before.stands_at(&self.text[self.at..])) else { return false };
        self.stack.extend(known.members(self.at));
        self.at += known.len();
        true
    }

    fn array(&mut self, depth: usize, mut spans: Option<&mut Vec<Span>>) -> Result<(), Bad> {
        if depth > MAX_DEPTH {
            return Err(Bad::TooDeep);
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
                _ => return Err(Bad::Syntax),
            }
            self.space();
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string. `true`: the string holds an escape.
    #[inline]
    fn string(&mut self) -> Result<bool, Bad> {
        self.expect(b'"')?;
        self.at += plain_run(self.text, self.at);
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.rest_of_string()
    }

    /// The same from anywhere within a string.
    #[cold]
    fn rest_of_string(&mut self) -> Result<bool, Bad> {
        let mut escaped = false;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let (stop, is_ascii) = run(rest);
            // No character of several bytes holds a byte that ends a run, and outside of strings there is none at all.
            if !is_ascii && let Err(e) = std::str::from_utf8(&rest[..stop]) {
                self.at += e.valid_up_to();
                return Err(Bad::Syntax);
            }
            self.at += stop;
            match rest.get(stop) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    self.at += 1;
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Bad::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Bad> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(Bad::Syntax);
                }
                self.at += 5;
            }
            _ => return Err(Bad::Syntax),
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Bad> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Bad::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Bad> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(Bad::Syntax),
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

    fn digits(&mut self) -> Result<(), Bad> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(Bad::Syntax) } else { Ok(()) }
    }

    /// Tells if a key spelled like the key of `member` is on the stack from `base` on, `meta` left out.
    #[inline]
    fn is_there(&mut self, base: usize, meta: Option<&Span>, member: &Member) -> bool {
        let is_in = |list: &[Member]| list.iter().any(|other| member.is_spelled_like(other, self.text));
        let there = match meta {
            None => is_in(&self.stack[base..]),
            Some(meta) => is_in(&self.stack[base..meta.start]) || is_in(&self.stack[meta.end..]),
        };
        if there {
            self.twice = member.key_span();
        }
        there
    }

    /// Compares keys in a sorted copy, so that a hostile object costs n log n.
    #[cold]
    fn refuse_duplicates(&mut self, from: usize, to: usize) -> Result<(), Bad> {
        let list = &self.stack[from..to];
        let mut keys: Vec<_> = list.iter().map(|m| (unescape(&self.text[m.key_span()]), m.key_span())).collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let Some(twice) = keys.windows(2).find(|w| w[0].0 == w[1].0).map(|w| w[0].1.clone()) else { return Ok(()) };
        self.twice = twice;
        Err(Bad::Duplicate)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Duplicates, JsonError, check};

    #[test]
    fn what_no_string_may_hold_is_refused_wherever_it_stands() {
        for length in 1..150 {
            for at in 0..length {
                let mut text = vec![b'a'; length];
                for bad in [0, 0x1f, b'\n', 0x80, 0xff, 0xc3] {
                    text[at] = bad;
                    let quoted = [b"\"", &text[..], b"\""].concat();
                    assert_eq!(check(&quoted, Duplicates::RefuseTop), Err(JsonError::Syntax(at + 1)), "{bad} at {at} of {length}");
                }
                text[at] = 0x7f;
                assert!(check(&[b"\"", &text[..], b"\""].concat(), Duplicates::RefuseTop).is_ok());
            }
        }
    }
}
