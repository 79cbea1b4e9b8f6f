//! The bytes between the server and the machines: framed as lines or as server-sent events, and cut anywhere. Loses nothing.

use std::collections::VecDeque;

use bytes::Bytes;
use mcp_proto::lines::{Line, Lines};
use mcp_proto::sse;

use super::said::ServerLine;
use crate::random::Random;

/// Bytes of the longest line.
pub(super) const LIMIT: usize = 600;

/// The reader's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Message(Bytes),
    TooLong(usize),
}

#[derive(Debug)]
enum Reader {
    Events(sse::Decoder),
    Lines(Lines),
}

/// A direction of a connection, from the server to us.
#[derive(Debug)]
pub(super) struct Wire {
    reader: Reader,
    queue: VecDeque<(Vec<u8>, ServerLine)>,
    /// Bytes read already of the first in the queue.
    ahead: usize,
    cuts: Random,
}

impl Wire {
    pub(super) fn new(events: bool, cut: u64) -> Self {
        let reader = if events { Reader::Events(sse::Decoder::new(LIMIT)) } else { Reader::Lines(Lines::new(LIMIT)) };
        Self { reader, queue: VecDeque::new(), ahead: 0, cuts: Random::new(cut) }
    }

    /// Tells if an overlong message ends the whole stream.
    pub(super) fn is_events(&self) -> bool {
        matches!(self.reader, Reader::Events(_))
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The server writes a line.
    pub(super) fn write(&mut self, said: ServerLine) {
        let mut framed = Vec::new();
        match self.reader {
            Reader::Events(_) => sse::encode(None, said.text().as_bytes(), &mut framed),
            Reader::Lines(_) => {
                framed.extend_from_slice(said.text().as_bytes());
                framed.extend_from_slice(if framed.len() % 3 == 0 { b"\r\n" } else { b"\n" });
            }
        }
        self.queue.push_back((framed, said));
    }

    /// The next line arrives, in pieces, perhaps with the beginning of the one behind it.
    ///
    /// # Errors
    /// When something came out too early, or the stream can't be read.
    pub(super) fn deliver(&mut self) -> Result<Option<(ServerLine, Vec<Read>)>, String> {
        let Some((framed, said)) = self.queue.pop_front() else { return Ok(None) };
        let mut rest = framed.get(self.ahead..).unwrap_or_default();
        self.ahead = 0;
        while rest.len() > 1 && self.cuts.percent(70) {
            let (piece, behind) = rest.split_at(1 + self.cuts.below(rest.len() - 1));
            self.feed(piece);
            self.nothing_yet()?;
            rest = behind;
        }
        let mut last = rest.to_vec();
        if let Some((next, _)) = self.queue.front() {
            self.ahead = if self.cuts.percent(50) { self.cuts.below(next.len() / 2) } else { 0 };
            last.extend_from_slice(next.get(..self.ahead).unwrap_or_default());
        }
        self.feed(&last);
        Ok(Some((said, self.read()?)))
    }

    /// Ends the stream in the second half of the next line, `part` of a thousand into it; gives the line and the output.
    ///
    /// # Errors
    /// When some output came too early, or the stream can't be read.
    pub(super) fn end(&mut self, part: usize) -> Result<Option<(ServerLine, Vec<Read>)>, String> {
        let Some((framed, said)) = self.queue.pop_front() else {
            let left = self.finish()?;
            return if left.is_empty() { Ok(None) } else { Err(format!("{left:?} came out of an empty stream")) };
        };
        // A delivery reads ahead less than half a line, so that where this one ends does not depend on the cuts.
        let half = framed.len() / 2;
        let whole = if self.is_events() { framed.len() - 1 } else { said.text().len() };
        let kept = half + (whole - half) * part / 1000;
        self.feed(framed.get(self.ahead..kept).unwrap_or_default());
        self.nothing_yet()?;
        Ok(Some((said, self.finish()?)))
    }

    fn finish(&mut self) -> Result<Vec<Read>, String> {
        match &mut self.reader {
            // An event that is not ended by an empty line is thrown away (HTML, "Server-sent events").
            Reader::Events(_) => self.read(),
            Reader::Lines(lines) => Ok(lines.finish().map(read_line).into_iter().collect()),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        match &mut self.reader {
            Reader::Events(decoder) => decoder.handle_bytes(bytes),
            Reader::Lines(lines) => lines.handle_bytes(bytes),
        }
    }

    fn nothing_yet(&mut self) -> Result<(), String> {
        let early = self.read()?;
        if early.is_empty() { Ok(()) } else { Err(format!("{early:?} came out before its end had come in")) }
    }

    fn read(&mut self) -> Result<Vec<Read>, String> {
        let mut out = Vec::new();
        match &mut self.reader {
            Reader::Events(decoder) => {
                while let Some(event) = decoder.poll_event().map_err(|e| e.to_string())? {
                    out.push(Read::Message(event.data));
                }
            }
            Reader::Lines(lines) => out.extend(std::iter::from_fn(|| lines.poll_line()).map(read_line)),
        }
        Ok(out)
    }
}

fn read_line(line: Line) -> Read {
    match line {
        Line::TooLong(size) => Read::TooLong(size),
        Line::Whole(text) => Read::Message(text),
    }
}
