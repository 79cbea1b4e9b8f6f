//! Repeated heads on one connection: most programs send the same bytes each time, except the digits of the length and the name of
//! the called tool. The reading of such a head holds for the next. Heads are not read here.

use std::hash::RandomState;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use super::fields::Fields;
use super::search::Search;
use super::whole_number;
use crate::recent::Recent;

/// The previous head of a connection with repeated heads. Longer heads are read each time, so that an idle connection keeps little.
#[derive(Debug)]
pub struct Before<T> {
    /// Length of the last head.
    length: usize,
    /// Number of heads with the length, but not the bytes, of the head before.
    misses: u8,
    /// Others can't find the head yet.
    is_alone: bool,
    known: Option<Arc<KnownHead<T>>>,
    /// Progress in the arriving head.
    pub(super) search: Search,
}

/// Heads of other connections.
#[derive(Debug)]
pub struct Heads<T>(Recent<KnownHead<T>>);

#[derive(Debug)]
struct KnownHead<T> {
    text: Bytes,
    varying: VaryingValues,
    head: T,
}

/// Places of values that may differ in the next head, in order.
type VaryingValues = [Option<(Value, Range<usize>)>; 2];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Length,
    Name,
}

/// Shifts of all places from these places on.
pub(super) type Shifts = [(usize, isize); 2];

/// A head that differs only in varying values.
struct Alike {
    end: usize,
    moved: Shifts,
    length: Option<usize>,
}

/// Kinds of repetition.
pub(super) enum Again<'a, T> {
    Same(&'a T),
    /// Other values, the shifts of later places, and the new length of the body, if stated.
    Alike(&'a T, Bytes, Shifts, Option<usize>),
}

const MOST: usize = 1 << 10;
/// Number of mismatches after which a head is kept only now and then.
const MISSES: u8 = 8;
const AGAIN: u8 = 32;

impl<T> Default for Before<T> {
    fn default() -> Self {
        Self { length: 0, misses: 0, is_alone: false, known: None, search: Search::default() }
    }
}

impl<T> Heads<T> {
    /// Makes an empty set.
    pub fn new(seed: RandomState) -> Self {
        Self(Recent::new(seed))
    }
}

impl<T> Before<T> {
    /// Takes a head off the beginning of `buffer`, if equal to the head before.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Option<Again<'_, T>> {
        let KnownHead { text, varying, head } = self.known.as_deref()?;
        if buffer.starts_with(text) {
            self.misses = 0;
            buffer.advance(text.len());
            return Some(Again::Same(head));
        }
        let Alike { end, moved, length } = alike(text, varying, buffer)?;
        self.misses = 0;
        Some(Again::Alike(head, buffer.split_to(end).freeze(), moved, length))
    }

    /// Keeps the reading of a head that is likely to be repeated.
    pub(super) fn keep(&mut self, fields: &Fields, head: impl FnOnce(Fields) -> T) {
        let text = fields.text();
        if std::mem::replace(&mut self.length, text.len()) != text.len() || text.len() > MOST {
            return;
        }
        let is_tried = self.misses < MISSES || self.misses.is_multiple_of(AGAIN);
        self.misses = self.misses.wrapping_add(1);
        if !is_tried {
            return;
        }
        // What was read must not stay for a copy of its beginning.
        let text = Bytes::copy_from_slice(text);
        let value = |value, name| Some((value, fields.only(name).filter(|span| !span.is_empty())?));
        let mut varying = [value(Value::Length, "content-length"), value(Value::Name, "mcp-name")];
        varying.sort_by_key(|value| value.as_ref().map(|(_, span)| span.start));
        self.known = Some(Arc::new(KnownHead { head: head(fields.moved(text.clone(), &Shifts::default())), text, varying }));
        self.is_alone = true;
    }

    /// Tells if a kept head is still to be [shared](Self::share).
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Shares the head with other connections of the same head. All of them must read heads in the same way.
    pub fn share(&mut self, heads: &mut Heads<T>) {
        self.is_alone = false;
        let Some(known) = &mut self.known else { return };
        match heads.0.find(&known.text, |other| other.text == known.text) {
            Some(other) => *known = other,
            None => heads.0.put(&known.text, known),
        }
    }
}

/// Tells if `now` begins with a head that differs from `text` only in the values at `varying`.
fn alike(text: &[u8], varying: &VaryingValues, now: &[u8]) -> Option<Alike> {
    let (mut then, mut end, mut moved, mut length) = (0, 0, Shifts::default(), None);
    for (value, moved) in varying.iter().zip(&mut moved) {
        let Some((kind, span)) = value else { continue };
        let same = &text[then..span.start];
        let rest = now.get(end..)?.strip_prefix(same)?;
        let other = &rest[..memchr::memchr(b'\r', &rest[..rest.len().min(MOST)])?];
        match kind {
            Value::Length => length = Some(usize::try_from(whole_number(other).filter(|_| other.iter().all(u8::is_ascii_digit))?).ok()?),
            // What a reader takes for the space around a value, or refuses within it, is left to the reader.
            Value::Name => {
                let is_whole = other.trim_ascii() == other && !other.is_empty();
                is_whole.then_some(()).filter(|()| other.iter().all(|byte| (b' '..=b'~').contains(byte)))?;
            }
        }
        *moved = (span.end, other.len() as isize - span.len() as isize);
        (then, end) = (span.end, end + same.len() + other.len());
    }
    let same = &text[then..];
    now.get(end..)?.starts_with(same).then_some(Alike { end: end + same.len(), moved, length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::Post;

    fn take(before: &mut Before<Post>, text: &str) -> Option<(usize, String)> {
        let mut buffer = BytesMut::from(text);
        let post = Post::take_after(&mut buffer, |_| true, before).ok()??;
        assert_eq!(post.fields().str("content-length").unwrap().parse(), Ok(post.length()));
        Some((post.length(), post.fields().str("x")?.to_owned()))
    }

    #[test]
    fn a_head_is_known_when_it_comes_the_third_time_and_its_length_is_read_anew() {
        let head = |length: &str, x: &str| format!("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\nx: {x}\r\n\r\n");
        let mut before = Before::default();
        assert_eq!(take(&mut before, &head("12", "a")), Some((12, "a".into())));
        assert!(before.known.is_none());
        assert_eq!(take(&mut before, &head("12", "a")), Some((12, "a".into())));
        assert!(matches!(before.take(&mut BytesMut::from(&*head("12", "a"))), Some(Again::Same(_))));
        assert_eq!(take(&mut before, &head("34", "a")), Some((34, "a".into())));
        for (length, x) in [("56", "b"), ("56", "b"), ("5", "b"), ("567", "b"), ("567", "b"), ("999", "c")] {
            assert_eq!(take(&mut before, &head(length, x)), Some((length.parse().unwrap(), x.into())));
        }
        for (length, x) in [("7", "a"), ("7", "a"), ("1234", "a")] {
            assert_eq!(take(&mut before, &head(length, x)), Some((length.parse().unwrap(), x.into())));
        }
        assert!(matches!(before.take(&mut BytesMut::from(&*head("89", "a"))), Some(Again::Alike(_, _, _, Some(89)))));
        for bad in ["+1", "1,", "1 ", "1\r", "xy"] {
            take(&mut before, &head("12", "a"));
            take(&mut before, &head("12", "a"));
            let fresh = Post::take(&mut BytesMut::from(&*head(bad, "a")), |_| true).ok().flatten().map(|post| post.length());
            assert_eq!(take(&mut before, &head(bad, "a")).map(|(length, _)| length), fresh, "{bad:?}");
        }
    }

    #[test]
    fn a_head_is_known_whatever_is_called() {
        let head = |name: &str, length: usize| {
            format!("POST / HTTP/1.1\r\nhost: h\r\nMcp-Name: {name}\r\nx: 1\r\ncontent-length: {length}\r\n\r\n")
        };
        let mut before = Before::default();
        (0..2).for_each(|_| assert!(take(&mut before, &head("first", 1)).is_some()));
        for (name, length) in [("other", 1), ("first", 12), ("a", 345), ("much longer than that", 6)] {
            let mut buffer = BytesMut::from(&*(head(name, length) + "body"));
            assert!(matches!(before.take(&mut buffer.clone()), Some(Again::Alike(..))), "{name}");
            let post = Post::take_after(&mut buffer, |_| true, &mut before).unwrap().unwrap();
            let said = |field| post.fields().str(field);
            assert_eq!((said("mcp-name"), said("x"), said("host"), post.length()), (Some(name), Some("1"), Some("h"), length));
            assert_eq!((post.target(), &buffer[..]), (("/", None), &b"body"[..]));
        }
        for strange in ["", " ", "é", "a\tb", "a "] {
            assert!(before.take(&mut BytesMut::from(&*head(strange, 1))).is_none(), "{strange:?}");
        }
    }

    #[test]
    fn connections_on_which_the_same_comes_share_it() {
        let head = |x: usize| format!("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\nx: {x}\r\n\r\n");
        let mut heads = Heads::new(RandomState::new());
        let mut kept = |x| {
            let mut before = Before::default();
            (0..2).for_each(|_| assert!(take(&mut before, &head(x)).is_some()));
            assert!(before.is_alone());
            before.share(&mut heads);
            assert!(!before.is_alone() && matches!(before.take(&mut BytesMut::from(&*head(x))), Some(Again::Same(_))));
            before
        };
        let same = |a: &Before<Post>, b: &Before<Post>| Arc::ptr_eq(a.known.as_ref().unwrap(), b.known.as_ref().unwrap());
        let (first, other, second) = (kept(0), kept(1), kept(0));
        assert!(same(&first, &second) && !same(&first, &other));
    }

    #[test]
    fn heads_that_never_come_again_are_soon_kept_only_now_and_then() {
        let (mut before, mut kept) = (Before::default(), Vec::new());
        for x in 100..300 {
            let head = format!("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\nx: {x}\r\n\r\n");
            assert!(take(&mut before, &head).is_some());
            if before.known.as_ref().is_some_and(|known| known.text == head) {
                kept.push(x);
            }
        }
        assert_eq!(kept, [101, 102, 103, 104, 105, 106, 107, 108, 133, 165, 197, 229, 261, 293]);
    }
}
