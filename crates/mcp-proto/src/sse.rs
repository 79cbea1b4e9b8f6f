//! Server-sent events: an incremental decoder with a bound on memory, and an encoder.
//!
//! Does not reconnect and does not know the meaning of the data.

use std::sync::Arc;

use bytes::{Buf, Bytes};

use crate::lines::Line;
use crate::lines::Lines;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The data lines, joined by line feeds.
    pub data: Bytes,
    /// The event's name, `message` by default.
    pub name: Option<String>,
    /// The last event id set by the stream: one text shared by all events of the id, at any length.
    pub id: Option<Arc<str>>,
    /// Milliseconds for a client to wait before it reconnects.
    pub retry: Option<u64>,
}

/// A stream with an event beyond the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {limit} bytes")]
pub struct TooLong {
    pub limit: usize,
}

/// Reads a stream of events, in chunks cut anywhere.
#[derive(Debug)]
pub struct Decoder {
    lines: Lines,
    limit: usize,
    data: Vec<Bytes>,
    size: usize,
    name: Option<String>,
    last_id: Option<Arc<str>>,
    retry: Option<u64>,
    started: bool,
    fresh: bool,
    blank: Vec<u8>,
    /// A line of data is being taken in parts.
    taking: bool,
}

impl Decoder {
    /// An event's data may be `limit` bytes long.
    pub fn new(limit: usize) -> Self {
        Self {
            lines: Lines::of_events(limit.saturating_add(16)),
            limit,
            data: Vec::new(),
            size: 0,
            name: None,
            last_id: None,
            retry: None,
            started: false,
            fresh: false,
            blank: Vec::new(),
            taking: false,
        }
    }

    /// Appends bytes of the stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if !self.started {
            // A byte order mark may stand in front of the stream, and may come in pieces.
            self.blank.extend_from_slice(bytes);
            let mark = b"\xef\xbb\xbf";
            if self.blank.len() < 3 && mark.starts_with(&self.blank) {
                return;
            }
            self.started = true;
            let held = std::mem::take(&mut self.blank);
            self.lines.handle_bytes(held.strip_prefix(mark).unwrap_or(&held));
            bytes = &[];
        }
        self.lines.handle_bytes(bytes);
    }

    /// Gives the next complete event. An event without data comes out only with an id or `retry`.
    pub fn poll_event(&mut self) -> Result<Option<Event>, TooLong> {
        while let Some(line) = self.lines.poll_line() {
            let Line::Whole(line) = line else { return Err(TooLong { limit: self.limit }) };
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
                continue;
            }
            self.field(&line)?;
        }
        if self.lines.overflowed() { Err(TooLong { limit: self.limit }) } else { Ok(None) }
    }

    /// Gives the data of the arriving event, if all of it is in one unfinished line of more than `least` bytes.
    pub fn open_data(&self, least: usize) -> Option<&[u8]> {
        let line = self.lines.open();
        if line.len() <= least || !self.data.is_empty() {
            return None;
        }
        line.get(data_prefix(line)?..)
    }

    /// Takes the received data of the unfinished line, and tells if the line has ended; until then no event can be asked for.
    ///
    /// The event's data then holds only further lines of data, behind a line feed: mostly nothing.
    pub fn take_data(&mut self) -> (Bytes, bool) {
        let prefix = if self.taking { 0 } else { data_prefix(self.lines.open()).unwrap_or(0) };
        let (mut data, has_ended) = self.lines.take_open();
        data.advance(prefix.min(data.len()));
        if !std::mem::replace(&mut self.taking, !has_ended) {
            self.data.push(Bytes::new());
        }
        (data, has_ended)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let had = !self.data.is_empty() || std::mem::take(&mut self.fresh);
        self.fresh = false;
        let data = std::mem::take(&mut self.data);
        self.size = 0;
        let (name, retry) = (self.name.take(), self.retry.take());
        had.then(|| Event { data: join(data), name, id: self.last_id.clone(), retry })
    }

    fn field(&mut self, line: &Bytes) -> Result<(), TooLong> {
        let colon = memchr::memchr(b':', line);
        let name = &line[..colon.unwrap_or(line.len())];
        let value = colon.map_or(Bytes::new(), |c| {
            let skip = usize::from(line.get(c + 1) == Some(&b' '));
            line.slice(c + 1 + skip..)
        });
        let text = || String::from_utf8_lossy(&value).into_owned();
        match name {
            b"data" => {
                self.size += value.len() + 1;
                if self.size > self.limit + 1 {
                    return Err(TooLong { limit: self.limit });
                }
                self.data.push(value);
            }
            b"event" => self.name = Some(text()),
            b"id" if !value.contains(&0) => {
                self.last_id = Some(text().into());
                self.fresh = true;
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = text().parse().ok();
                self.fresh = true;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Counts the bytes of a line before its data; `None` for another field.
fn data_prefix(line: &[u8]) -> Option<usize> {
    let data = line.strip_prefix(b"data:")?;
    Some(if data.starts_with(b" ") { 6 } else { 5 })
}

/// Writes an event. `data` is split at its line ends, and readers see a line feed for each.
pub fn encode(id: Option<&str>, data: &[u8], out: &mut Vec<u8>) {
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    let mut rest = data;
    loop {
        let end = memchr::memchr2(b'\n', b'\r', rest);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        out.push(b'\n');
        let Some(end) = end else { break };
        rest = &rest[end + if rest[end..].starts_with(b"\r\n") { 2 } else { 1 }..];
    }
    out.push(b'\n');
}

/// The beginning of an event with data in pieces, each written by [`encode_piece`]; a blank line ends the event.
pub const BEGIN: &[u8] = b"data: ";

/// A piece of an event's data. Line ends come out as [`encode`] has them, or as two where one is cut in half.
pub fn encode_piece(piece: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &piece).is_none() {
        return piece;
    }
    let mut out = Vec::with_capacity(piece.len() + 64);
    encode(None, &piece, &mut out);
    // Its beginning and its end are those of the whole event.
    out.truncate(out.len() - 2);
    Bytes::from(out).slice(BEGIN.len()..)
}

/// Writes the event that opens a resumable stream: an id, no data, and the time to come back (SEP-1699).
pub fn encode_priming(id: &str, retry_ms: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").as_bytes());
}

fn join(mut data: Vec<Bytes>) -> Bytes {
    if data.len() < 2 {
        return data.pop().unwrap_or_default();
    }
    Bytes::from(data.join(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &[u8], chunk: usize) -> Vec<Event> {
        let mut decoder = Decoder::new(1000);
        let mut out = Vec::new();
        for part in text.chunks(chunk) {
            decoder.handle_bytes(part);
            while let Some(event) = decoder.poll_event().unwrap() {
                out.push(event);
            }
        }
        out
    }

    #[test]
    fn events_are_the_same_for_every_chunking() {
        let text =
            b"\xef\xbb\xbf: hello\n\nid: 1\nretry: 200\ndata: \n\nevent: message\r\ndata: {\"a\":1}\r\n\r\ndata:x\rdata: y\nid: 2\r\r\n";
        let expected = decode(text, text.len());
        assert_eq!(expected.len(), 3);
        assert_eq!(expected[0], Event { id: Some("1".into()), retry: Some(200), ..Event::default() });
        assert_eq!(expected[1].data, &b"{\"a\":1}"[..]);
        assert_eq!((&expected[2].data[..], expected[2].id.as_deref()), (&b"x\ny"[..], Some("2")));
        for chunk in 1..text.len() {
            assert_eq!(decode(text, chunk), expected, "chunks of {chunk}");
        }
    }

    #[test]
    fn an_event_past_the_limit_ends_the_stream() {
        let mut decoder = Decoder::new(8);
        decoder.handle_bytes(b"data: 123456\ndata: 789\n\n");
        assert!(decoder.poll_event().is_err());
        let mut endless = Decoder::new(8);
        endless.handle_bytes(&[b'x'; 100]);
        assert!(endless.poll_event().is_err());
    }

    #[test]
    fn a_long_line_of_data_is_taken_while_it_comes() {
        for (text, rest) in [
            ("id: 1\ndata: 0123456789abcdef\n\ndata: next\n\n", ""),
            ("data:0123456789abcdef\r\n\r\ndata: next\n\n", ""),
            ("data: 0123456789abcdef\rdata: more\ndata:\nid: 2\n\ndata: next\n\n", "\nmore\n"),
        ] {
            for chunk in 1..12 {
                let (mut decoder, mut out, mut events) = (Decoder::new(1000), Vec::new(), Vec::new());
                let mut open = false;
                for part in text.as_bytes().chunks(chunk) {
                    decoder.handle_bytes(part);
                    loop {
                        if open || events.is_empty() && decoder.open_data(8).is_some() {
                            let begun = decoder.open_data(8).map(<[u8]>::to_vec);
                            let (data, has_ended) = decoder.take_data();
                            assert!(open || begun.is_some_and(|begun| begun == data));
                            out.extend_from_slice(&data);
                            open = !has_ended;
                        }
                        let Some(event) = (!open).then(|| decoder.poll_event().unwrap()).flatten() else { break };
                        events.push(event);
                    }
                }
                let data: Vec<&[u8]> = events.iter().map(|event| &event.data[..]).collect();
                assert_eq!(
                    (&out[..], &data[..]),
                    (&b"0123456789abcdef"[..], &[rest.as_bytes(), b"next"][..]),
                    "{text:?} in chunks of {chunk}"
                );
            }
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut out = Vec::new();
        encode_priming("s:0", 500, &mut out);
        encode(Some("s:1"), b"{\"a\":\r1\r\n}", &mut out);
        let events = decode(&out, 7);
        assert_eq!(events[0].retry, Some(500));
        assert_eq!(&events[1].data[..], b"{\"a\":\n1\n}");
        let piece = |text: &'static str| encode_piece(Bytes::from_static(text.as_bytes()));
        let pieces = [Bytes::from_static(BEGIN), piece("{\"a\":\r1"), piece("\r\n}\n"), piece(" "), Bytes::from_static(b"\n\n")];
        assert_eq!(&decode(&pieces.concat(), 7)[0].data[..], b"{\"a\":\n1\n}\n ");
    }
}
