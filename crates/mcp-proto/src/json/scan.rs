//! One strict pass over JSON text. What is found is kept on one stack, so that nesting costs no allocation.
//! What the members mean is not known here.

use std::sync::Arc;

use super::text::{key_is, unescape};
use super::{Duplicates, JsonError, MAX_DEPTH, Member, Span};

/// Most strings end within so many bytes, and a call for the rest would cost more than they do.
const SHORT: usize = 48;

pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    deep: bool,
    /// The members of every object that is open and of interest, innermost last.
    stack: Vec<Member>,
    /// What was asked for of the objects that are closed.
    pub(super) inner: Inner,
}

/// What was found in objects within the outermost one.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// The members of `params`, where it is an object.
    pub(super) params: Option<Found>,
    /// Those of `result`.
    pub(super) result: Option<Found>,
    /// The members of the `_meta` of the object read last.
    pub(super) meta: Option<Vec<Member>>,
}

/// The members of an object and of its `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Its own, and behind them those of its `_meta`; places count from its opening brace.
    pub(super) members: Arc<[Member]>,
    pub(super) own: usize,
    pub(super) has_meta: bool,
}

impl Found {
    /// Of an object that begins at `start` of the text in which its members were found.
    pub(super) fn new(start: usize, own: &[Member], meta: Option<&[Member]>) -> Self {
        let members = own.iter().chain(meta.unwrap_or_default()).map(|m| m.since(start)).collect();
        Self { members, own: own.len(), has_meta: meta.is_some() }
    }
}

/// Which object is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A whole message.
    Message,
    /// The `params` of a message.
    Params,
    /// The `result` of a message.
    Result,
    /// The `_meta` of either.
    Meta,
    /// Any, with its members.
    Listed,
    /// Any, for its soundness only.
    Other,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8], duplicates: Duplicates) -> Self {
        Self { text, at: 0, deep: duplicates == Duplicates::RefuseDeep, stack: Vec::new(), inner: Inner::default() }
    }

    /// Reads one object that is the whole text; gives its members.
    pub(super) fn whole(mut self, level: Level) -> Result<(Vec<Member>, Inner), JsonError> {
        self.stack.reserve(if level == Level::Message { 24 } else { 8 });
        self.space();
        self.object(1, level)?;
        self.end()?;
        Ok((self.stack, self.inner))
    }

    /// Where the next byte stands that has not been read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn bad<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax(self.at))
    }

    pub(super) fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    pub(super) fn end(&mut self) -> Result<(), JsonError> {
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

    pub(super) fn value(&mut self, depth: usize) -> Result<(), JsonError> {
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
            _ => self.bad(),
        }
    }

    /// Leaves the members of the object on the stack, where its level or the comparison of keys asks for them.
    fn object(&mut self, depth: usize, level: Level) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let listed = self.deep || level != Level::Other;
        let (base, mut any_escaped) = (self.stack.len(), false);
        loop {
            let key = self.at + 1;
            let escaped = self.string()?;
            any_escaped |= escaped;
            let key = key..self.at - 1;
            self.space();
            self.expect(b':')?;
            self.space();
            let value = self.at;
            self.member(depth, level, &key, escaped)?;
            if listed {
                self.stack.push(Member { key, escaped, value: value..self.at });
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
        refuse_duplicates(self.text, &self.stack[base..], any_escaped)
    }

    /// The value of one member; some of those of a message are kept.
    fn member(&mut self, depth: usize, level: Level, key: &Span, escaped: bool) -> Result<(), JsonError> {
        let next = match level {
            Level::Message if key_is(self.text, key, escaped, "params") => Level::Params,
            Level::Message if key_is(self.text, key, escaped, "result") => Level::Result,
            Level::Params | Level::Result if key_is(self.text, key, escaped, "_meta") => Level::Meta,
            Level::Listed | Level::Message | Level::Meta | Level::Other | Level::Params | Level::Result => return self.value(depth),
        };
        if self.peek() != Some(b'{') {
            return self.value(depth);
        }
        let (base, start) = (self.stack.len(), self.at);
        self.object(depth + 1, next)?;
        let found = &self.stack[base..];
        match next {
            Level::Meta => self.inner.meta = Some(found.to_vec()),
            Level::Result => self.inner.result = Some(Found::new(start, found, self.inner.meta.take().as_deref())),
            Level::Listed | Level::Message | Level::Other | Level::Params => {
                self.inner.params = Some(Found::new(start, found, self.inner.meta.take().as_deref()))
            }
        }
        self.stack.truncate(base);
        Ok(())
    }

    pub(super) fn array(&mut self, depth: usize, mut spans: Option<&mut Vec<Span>>) -> Result<(), JsonError> {
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

    /// `true`: it holds an escape.
    fn string(&mut self) -> Result<bool, JsonError> {
        self.expect(b'"')?;
        let mut escaped = false;
        loop {
            let rest = &self.text[self.at..];
            let (stop, is_ascii) = run(rest);
            // No character of several bytes holds a byte that ends a run, and outside of strings there is none at all.
            if !is_ascii && let Err(e) = std::str::from_utf8(&rest[..stop]) {
                return Err(JsonError::Syntax(self.at + e.valid_up_to()));
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
                _ => return self.bad(),
            }
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

/// How many bytes of `rest` belong to a string without an escape: up to a quote, a backslash or a control character; and whether they
/// are all ASCII.
pub(super) fn run(rest: &[u8]) -> (usize, bool) {
    let mut seen = 0;
    for (i, block) in rest.chunks_exact(8).take(SHORT / 8).enumerate() {
        let word = u64::from_le_bytes(block.try_into().unwrap_or_default());
        let stops = stops(word);
        if stops != 0 {
            let stop = stops.trailing_zeros() / 8;
            let before = word & !(u64::MAX << (stop * 8));
            return (i * 8 + stop as usize, (seen | before) & HIGH == 0);
        }
        seen |= word;
    }
    let begun = (rest.len() / 8).min(SHORT / 8) * 8;
    let (more, is_ascii) = long_run(&rest[begun..]);
    (begun + more, is_ascii && seen & HIGH == 0)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of the first byte of `word` that is a quote, a backslash or below 0x20, and perhaps of bytes behind it.
fn stops(word: u64) -> u64 {
    // A byte that is zero borrows from its high bit; a borrow can only reach bytes behind the first that is zero.
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

fn long_run(rest: &[u8]) -> (usize, bool) {
    let stop = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    // Whole blocks are looked at together; only one that has a control character is searched for its place.
    let (mut at, mut seen) = (0, 0);
    for block in rest[..stop].chunks(64) {
        let (control, all) = block.iter().fold((false, 0), |(control, all), b| (control | (*b < 0x20), all | *b));
        if control {
            let stop = block.iter().position(|b| *b < 0x20).unwrap_or(0);
            return (at + stop, rest[..at + stop].is_ascii());
        }
        seen |= all;
        at += block.len();
    }
    (stop, seen < 0x80)
}

/// Few keys are compared pairwise; many by a sorted copy, so that a hostile object costs n log n.
fn refuse_duplicates(text: &[u8], list: &[Member], escaped: bool) -> Result<(), JsonError> {
    let duplicate = |key: &Span| Err(JsonError::DuplicateKey(unescape(&text[key.clone()]).into_owned()));
    if list.len() <= 12 && !escaped {
        for (i, a) in list.iter().enumerate() {
            let key = &text[a.key.clone()];
            if list[..i].iter().any(|b| b.key.len() == key.len() && text[b.key.clone()] == *key) {
                return duplicate(&a.key);
            }
        }
        return Ok(());
    }
    let mut keys: Vec<_> = list.iter().map(|m| (unescape(&text[m.key.clone()]), &m.key)).collect();
    keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    keys.windows(2).find(|w| w[0].0 == w[1].0).map_or(Ok(()), |w| duplicate(w[0].1))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::json::check;

    /// The same, a byte at a time.
    fn slow_run(rest: &[u8]) -> (usize, bool) {
        let stop = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
        (stop, rest[..stop].is_ascii())
    }

    proptest! {
        #[test]
        fn a_run_ends_where_a_search_byte_by_byte_ends(mut bytes in vec(any::<u8>(), 0..20), long in 0..200_usize, stop in any::<u8>()) {
            prop_assert_eq!(run(&bytes), slow_run(&bytes));
            // Mostly nothing stops it, so that every block and the rest behind them is reached.
            let edge = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa0, 0xa2, 0xdc, 0xff];
            let mut text: Vec<u8> = edge.iter().copied().cycle().skip(bytes.len()).take(long).collect();
            prop_assert_eq!(run(&text).0, long);
            text.push(stop);
            text.append(&mut bytes);
            prop_assert_eq!(run(&text), slow_run(&text));
        }

        #[test]
        fn a_word_stops_at_its_first_byte_that_ends_a_string(
            word in vec(prop_oneof![any::<u8>(), select(b"\"\\#!][\x00\x1f\x20\x21\x7f\x80\xa2\xdc".to_vec())], 8),
        ) {
            let found = stops(u64::from_le_bytes(word[..].try_into().unwrap_or_default()));
            let first = if found == 0 { 8 } else { (found.trailing_zeros() / 8) as usize };
            prop_assert_eq!(first, slow_run(&word).0);
        }
    }

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
