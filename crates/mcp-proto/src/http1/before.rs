//! Heads that come again on one connection: most programs send the same bytes each time, but for the digits of the length. What was read of
//! such a head holds for the next one. How heads are read is not known here.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use super::fields::Fields;
use super::whole_number;

/// The head before, of a connection on which heads come again. Longer ones are read each time, so that an idle connection keeps little.
#[derive(Debug)]
pub struct Before<T> {
    /// How long the last one was.
    length: usize,
    /// How often one as long as the one before it was another all the same.
    misses: u8,
    known: Option<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    text: Bytes,
    /// Where its only `content-length` stands; at its end where it has none.
    digits: Range<usize>,
    head: T,
}

/// How a head comes again.
pub(super) enum Again<'a, T> {
    /// As it was.
    Same(&'a T),
    /// With another length.
    Resized(&'a T, Bytes, usize),
}

const MOST: usize = 1 << 10;
/// One that differs so often is likely to go on so, and is kept only now and then.
const MISSES: u8 = 8;
const AGAIN: u8 = 32;

impl<T> Default for Before<T> {
    fn default() -> Self {
        Self { length: 0, misses: 0, known: None }
    }
}

impl<T> Before<T> {
    /// Takes a head off the beginning of `buffer`, where it is the one before.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Option<Again<'_, T>> {
        let Known { text, digits, head } = self.known.as_ref()?;
        let now = buffer.get(..text.len())?;
        if now == text {
            self.misses = 0;
            buffer.advance(text.len());
            return Some(Again::Same(head));
        }
        let other = &now[digits.clone()];
        if now[..digits.start] != text[..digits.start] || now[digits.end..] != text[digits.end..] || !other.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let length = usize::try_from(whole_number(other)?).ok()?;
        self.misses = 0;
        Some(Again::Resized(head, buffer.split_to(text.len()).freeze(), length))
    }

    /// Keeps what was read of a head, where it is likely to come again.
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
        let digits = fields.only("content-length").unwrap_or(text.len()..text.len());
        self.known = Some(Known { head: head(fields.clone().of(text.clone())), text, digits });
    }
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
        for bad in ["+1", "1,", "1 ", "1\r", "xy"] {
            take(&mut before, &head("12", "a"));
            take(&mut before, &head("12", "a"));
            let fresh = Post::take(&mut BytesMut::from(&*head(bad, "a")), |_| true).ok().flatten().map(|post| post.length());
            assert_eq!(take(&mut before, &head(bad, "a")).map(|(length, _)| length), fresh, "{bad:?}");
        }
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
