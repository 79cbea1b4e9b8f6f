//! Cuts a byte stream into lines, as MCP's stdio transport frames its messages and as event streams are made of them.
//! Does not look into them.

use bytes::{Buf, Bytes, BytesMut};

/// A piece of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Whole(Bytes),
    /// Bytes dropped so far of an overlong line.
    TooLong(usize),
}

/// An incremental line reader with an upper bound on memory.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    searched: usize,
    skipped: usize,
    limit: usize,
    /// A carriage return alone ends a line as well, and empty lines come out too.
    of_events: bool,
    /// The last line ended with a carriage return, whose line feed may still come.
    returned: bool,
}

impl Lines {
    /// Lines may be `limit` bytes long; empty ones are passed over.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, skipped: 0, limit, of_events: false, returned: false }
    }

    /// The lines of an event stream: a carriage return alone ends one as well (WHATWG HTML, 9.2.5), and empty ones come out too.
    pub fn of_events(limit: usize) -> Self {
        Self { of_events: true, ..Self::new(limit) }
    }

    /// Counts the bytes dropped of the current line, if overlong.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Tells if the current line is already overlong.
    pub fn overflowed(&self) -> bool {
        self.skipped > 0
    }

    /// Gives the buffer for the next bytes of the stream.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Appends bytes of the stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Gives the next complete line.
    pub fn poll_line(&mut self) -> Option<Line> {
        loop {
            self.pass_line_feed();
            let Some(at) = self.next_end() else {
                // A carriage return at the end may be half a line end: it counts when something else follows.
                let known = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer).len();
                if known > self.limit {
                    self.skipped += known;
                    self.buffer.advance(known);
                }
                self.searched = self.buffer.len();
                return None;
            };
            let end = self.searched + at;
            let mut line = self.buffer.split_to(end + 1).freeze();
            self.searched = 0;
            self.returned = line.last() == Some(&b'\r');
            line.truncate(end);
            if line.last() == Some(&b'\r') {
                line.truncate(end - 1);
            }
            let length = std::mem::take(&mut self.skipped) + line.len();
            if length > self.limit {
                return Some(Line::TooLong(length));
            }
            if self.of_events || !line.trim_ascii().is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// Gives the beginning of the current line, as far as received.
    pub fn open(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes the beginning of the current line, at any length, and tells if the line has ended.
    pub fn take_open(&mut self) -> (Bytes, bool) {
        self.searched = 0;
        let Some(end) = self.next_end() else { return (self.buffer.split().freeze(), false) };
        let mut line = self.buffer.split_to(end + 1).freeze();
        self.returned = line.last() == Some(&b'\r');
        line.truncate(end);
        (line, true)
    }

    /// Finds the end of the buffer's first line, counted from the searched part.
    fn next_end(&self) -> Option<usize> {
        let unseen = &self.buffer[self.searched..];
        if self.of_events { memchr::memchr2(b'\n', b'\r', unseen) } else { memchr::memchr(b'\n', unseen) }
    }

    fn pass_line_feed(&mut self) {
        if self.returned && !self.buffer.is_empty() {
            self.returned = false;
            if self.buffer.starts_with(b"\n") {
                self.buffer.advance(1);
            }
        }
    }

    /// Gives the text behind the last line end, at the end of the stream.
    pub fn finish(&mut self) -> Option<Line> {
        self.pass_line_feed();
        if self.buffer.is_empty() && self.skipped == 0 {
            return None;
        }
        self.handle_bytes(b"\n");
        self.poll_line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_the_bytes_came_in() {
        let text = b"one\r\n\n  \ntwo\nthree";
        for chunk in 1..text.len() {
            let mut lines = Lines::new(100);
            let mut out = Vec::new();
            for part in text.chunks(chunk) {
                lines.handle_bytes(part);
                while let Some(line) = lines.poll_line() {
                    out.push(line);
                }
            }
            out.extend(lines.finish());
            let whole = |s: &'static str| Line::Whole(Bytes::from_static(s.as_bytes()));
            assert_eq!(out, [whole("one"), whole("two"), whole("three")]);
        }
    }

    #[test]
    fn a_line_past_the_limit_is_dropped_and_the_next_one_is_read() {
        let mut lines = Lines::new(4);
        lines.handle_bytes(b"123456");
        assert_eq!(lines.poll_line(), None);
        lines.handle_bytes(b"78\nok\n");
        assert_eq!(lines.poll_line(), Some(Line::TooLong(8)));
        assert_eq!(lines.poll_line(), Some(Line::Whole(Bytes::from_static(b"ok"))));
    }

    #[test]
    fn a_line_of_an_event_stream_is_there_as_soon_as_its_carriage_return_is() {
        let mut lines = Lines::of_events(4);
        let empty = Some(Line::Whole(Bytes::new()));
        lines.handle_bytes(b"a\r\r");
        assert_eq!(lines.poll_line(), Some(Line::Whole(Bytes::from_static(b"a"))));
        assert_eq!((lines.poll_line(), lines.poll_line()), (empty.clone(), None));
        lines.handle_bytes(b"\n");
        assert_eq!(lines.poll_line(), None, "the line feed belongs to the carriage return before it");
        lines.handle_bytes(b"\n");
        assert_eq!((lines.poll_line(), lines.poll_line()), (empty, None));
    }

    #[test]
    fn a_line_end_that_comes_in_two_pieces_does_not_count() {
        let mut lines = Lines::new(4);
        lines.handle_bytes(b"1234\r");
        assert_eq!(lines.poll_line(), None);
        lines.handle_bytes(b"\n12345\r");
        assert_eq!(lines.poll_line(), Some(Line::Whole(Bytes::from_static(b"1234"))));
        assert_eq!(lines.poll_line(), None);
        lines.handle_bytes(b"\n");
        assert_eq!(lines.poll_line(), Some(Line::TooLong(5)));
    }
}
