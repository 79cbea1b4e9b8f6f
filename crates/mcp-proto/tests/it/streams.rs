//! The decoders of byte streams say the same, however the bytes were cut.

use mcp_proto::lines::{Line, Lines};
use mcp_proto::sse::{Decoder, Event, TooLong, encode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Texts likely to form lines and events.
fn stream(pieces: Vec<&'static [u8]>) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![9 => select(pieces).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..4)];
    vec(piece, 0..30).prop_map(|list| list.concat())
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    stream(vec![b"\n", b"\r\n", b"\r", b" ", b"{}", b"a", b"123456789", b"\n\n"])
}

fn events() -> impl Strategy<Value = Vec<u8>> {
    stream(vec![
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\xef",
        b"data:",
        b"data: ",
        b"data",
        b"id: ",
        b"id\n",
        b"retry: 10",
        b"event: m",
        b": keep-alive\n\n",
        b"{\"a\":1}",
        b"x",
        b"\0",
        b"123456789",
    ])
}

/// Cuts `bytes` into pieces of the given lengths, over and over.
fn cut<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let length = lengths.next().copied().unwrap_or(1).clamp(1, bytes.len().max(1)).min(bytes.len());
        let (piece, rest) = bytes.split_at_checked(length).filter(|(piece, _)| !piece.is_empty())?;
        bytes = rest;
        Some(piece)
    })
}

/// Splits at line feeds, without an empty rest.
fn between(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    lines.pop_if(|last| last.is_empty());
    lines
}

fn all_lines(reader: &mut Lines, bytes: &[u8], lengths: &[usize]) -> Vec<Line> {
    let mut out = Vec::new();
    for piece in cut(bytes, lengths) {
        reader.handle_bytes(piece);
        out.extend(std::iter::from_fn(|| reader.poll_line()));
    }
    out.extend(reader.finish());
    out
}

fn all_events(limit: usize, bytes: &[u8], lengths: &[usize]) -> (Vec<Event>, Option<TooLong>) {
    let (mut decoder, mut out) = (Decoder::new(limit), Vec::new());
    for piece in cut(bytes, lengths) {
        decoder.handle_bytes(piece);
        loop {
            match decoder.poll_event() {
                Ok(Some(event)) => out.push(event),
                Ok(None) => break,
                Err(error) => return (out, Some(error)),
            }
        }
    }
    (out, None)
}

proptest! {
    #[test]
    fn lines_are_the_same_for_every_cut(bytes in lines(), lengths in vec(1usize..6, 1..6), limit in 1usize..12) {
        let whole = all_lines(&mut Lines::new(limit), &bytes, &[usize::MAX]);
        prop_assert_eq!(&all_lines(&mut Lines::new(limit), &bytes, &lengths), &whole);
        let kept = all_lines(&mut Lines::of_events(limit), &bytes, &lengths);
        prop_assert_eq!(&all_lines(&mut Lines::of_events(limit), &bytes, &[usize::MAX]), &kept);
        prop_assert!(kept.len() >= whole.len());
    }

    /// References that see the whole text at once.
    #[test]
    fn lines_are_what_stands_between_line_ends(bytes in lines(), limit in 1usize..12, length in 1usize..9) {
        let messages: Vec<&[u8]> = between(&bytes).into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
        let messages = messages.into_iter().filter(|line| !line.trim_ascii().is_empty() || line.len() > limit).collect();
        let fed = bytes.clone().into_iter().map(|b| if b == b'\r' { b'\n' } else { b });
        let only_feeds: Vec<u8> = fed.enumerate().filter(|(at, _)| !bytes[..=*at].ends_with(b"\r\n")).map(|(_, b)| b).collect();
        for (mut reader, expected) in [(Lines::new(limit), messages), (Lines::of_events(limit), between(&only_feeds))] {
            let got = all_lines(&mut reader, &bytes, &[length]);
            prop_assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(expected) {
                match got {
                    Line::Whole(line) => prop_assert!(line == expected && line.len() <= limit),
                    Line::TooLong(length) => prop_assert!(*length == expected.len() && *length > limit),
                }
            }
        }
    }

    #[test]
    fn events_are_the_same_for_every_cut(bytes in events(), lengths in vec(1usize..8, 1..6), limit in 1usize..40) {
        prop_assert_eq!(all_events(limit, &bytes, &lengths), all_events(limit, &bytes, &[usize::MAX]));
    }

    #[test]
    fn an_encoded_event_is_decoded(data in "(\r|\n|.){0,20}", id in proptest::option::of("[a-z0-9:]{1,8}"), length in 1usize..9) {
        let mut bytes = Vec::new();
        encode(id.as_deref(), data.as_bytes(), &mut bytes);
        let (events, error) = all_events(1000, &bytes, &[length]);
        prop_assert_eq!((events.len(), error), (1, None));
        let feeds = data.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(&events[0].data, feeds.as_bytes());
        prop_assert_eq!(events[0].id.as_deref(), id.as_deref());
    }

    #[test]
    fn memory_stays_bounded_while_no_line_ends(pieces in vec(1usize..5000, 1..50)) {
        let mut reader = Lines::new(1000);
        for piece in pieces {
            reader.handle_bytes(&vec![b'x'; piece]);
            prop_assert_eq!(reader.poll_line(), None);
            prop_assert!(reader.buffer().len() <= 1000);
        }
    }
}
