//! Checks for what cuts byte streams into pieces: it must not matter where the stream itself was cut. Nothing about content.

use mcp_proto::lines::{Line, Lines};
use mcp_proto::sse::{Decoder, Event, TooLong};

/// The first byte is the limit, the second the length of the pieces.
pub(super) fn lines(data: &[u8]) {
    let [limit, length, bytes @ ..] = data else { return };
    let (limit, length) = (usize::from(*limit), usize::from(*length).max(1));
    let pieces = all_lines(Lines::new(limit), bytes.chunks(length));
    assert_eq!(pieces, all_lines(Lines::new(limit), [bytes]));
    let of_events = all_lines(Lines::of_events(limit), bytes.chunks(length));
    assert_eq!(of_events, all_lines(Lines::of_events(limit), [bytes]));
    let ends = (0..bytes.len()).filter(|at| bytes[*at] == b'\r' || bytes[..=*at].ends_with(b"\n") && !bytes[..=*at].ends_with(b"\r\n"));
    assert_eq!(of_events.len(), ends.count() + usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r")));
    for line in of_events.iter().chain(&pieces) {
        match line {
            Line::TooLong(length) => assert!(*length > limit),
            Line::Whole(line) => assert!(line.len() <= limit && !line.contains(&b'\n')),
        }
    }
}

/// The first byte is the limit, the second the length of the pieces.
pub(super) fn sse(data: &[u8]) {
    let [limit, length, bytes @ ..] = data else { return };
    let (limit, length) = (usize::from(*limit), usize::from(*length).max(1));
    let (events, end) = all_events(limit, bytes.chunks(length));
    assert!(events.iter().all(|event| event.data.len() <= limit));
    assert_eq!((events, end), all_events(limit, [bytes]));
}

fn all_lines<'a>(mut reader: Lines, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
    let mut out = Vec::new();
    for piece in pieces {
        reader.handle_bytes(piece);
        out.extend(std::iter::from_fn(|| reader.poll_line()));
    }
    out.extend(reader.finish());
    out
}

fn all_events<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Option<TooLong>) {
    let (mut decoder, mut out) = (Decoder::new(limit), Vec::new());
    for piece in pieces {
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
