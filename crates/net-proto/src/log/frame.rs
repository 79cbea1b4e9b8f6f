//! Messages in a TCP stream (RFC 6587): counted in front, or each a line. Senders do not say which; each message tells by its first byte.

use memchr::memchr;

use super::LONGEST;

/// Digits of a count.
const MOST_DIGITS: usize = 5;

/// Reader of a stream. What is longer than a message may be is cut off, never a reason to end the stream.
#[derive(Debug, Default)]
pub struct LogFramer {
    buffer: Vec<u8>,
    consumed: usize,
    /// Bytes of a message too long, still to come and to be left out.
    skipped: usize,
    /// The rest of a line too long is left out up to its end.
    skips_line: bool,
}

impl LogFramer {
    /// Takes arrived bytes, to be read by [`LogFramer::message`]. Read all messages before more is taken: so is the buffer bounded.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Next whole message; `None`: more bytes have to come.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            self.skip();
            let rest = &self.buffer[self.consumed..];
            if self.skipped > 0 || self.skips_line || rest.is_empty() {
                return None;
            }
            let message = match count(rest) {
                Count::Unknown => return None,
                Count::Known { head, length } => self.counted(head, length)?,
                Count::Absent => self.line()?,
            };
            if !message.is_empty() {
                return Some(message);
            }
        }
    }

    fn skip(&mut self) {
        let rest = &self.buffer[self.consumed..];
        if self.skips_line {
            let end = memchr(b'\n', rest);
            self.skips_line = end.is_none();
            self.consumed += end.map_or(rest.len(), |end| end + 1);
        }
        let here = self.skipped.min(self.buffer.len() - self.consumed);
        self.consumed += here;
        self.skipped -= here;
    }

    fn counted(&mut self, head: usize, length: usize) -> Option<Vec<u8>> {
        let kept = length.min(LONGEST);
        let from = self.consumed + head;
        let message = self.buffer.get(from..from + kept)?.to_vec();
        self.consumed = from + kept;
        self.skipped = length - kept;
        Some(message)
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let rest = &self.buffer[self.consumed..];
        match memchr(b'\n', &rest[..rest.len().min(LONGEST + 1)]) {
            Some(end) => {
                let line = rest[..end].trim_ascii_end().to_vec();
                self.consumed += end + 1;
                Some(line)
            }
            None if rest.len() > LONGEST => {
                let line = rest[..LONGEST].to_vec();
                self.consumed += LONGEST;
                self.skips_line = true;
                Some(line)
            }
            None => None,
        }
    }
}

/// The count in front of a message.
enum Count {
    Known {
        head: usize,
        length: usize,
    },
    Absent,
    /// More bytes have to come.
    Unknown,
}

fn count(rest: &[u8]) -> Count {
    let digits = rest.iter().take(MOST_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let is_count = (1..=MOST_DIGITS).contains(&digits) && rest[0] != b'0';
    match rest.get(digits) {
        None if is_count => Count::Unknown,
        Some(b' ') if is_count => {
            let length = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
            length.map_or(Count::Absent, |length| Count::Known { head: digits + 1, length })
        }
        _ => Count::Absent,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], size: usize) -> Vec<String> {
        let mut framer = LogFramer::default();
        let mut found = Vec::new();
        for piece in bytes.chunks(size) {
            framer.receive(piece);
            while let Some(message) = framer.message() {
                found.push(String::from_utf8_lossy(&message).into_owned());
            }
        }
        found
    }

    #[test]
    fn nm_10_both_framings_come_in_one_stream() {
        let bytes = b"<1>one\r\n5 <1>2\n\n<1>three\n8 <1>a b c<1>last\n";
        assert_eq!(read(bytes, 3), ["<1>one", "<1>2\n", "<1>three", "<1>a b c", "<1>last"]);
    }

    #[test]
    fn the_rest_of_a_long_message_is_left_out() {
        let long = "x".repeat(3 * LONGEST);
        for bytes in [format!("{} {long}<1>next\n", long.len()), format!("{long}\n<1>next\n")] {
            let found = read(bytes.as_bytes(), 1000);
            assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [LONGEST, 7]);
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(prop::sample::select(b"<1>a 0123\n\r".to_vec()), 0..200), size in 1usize..20) {
            prop_assert_eq!(read(&bytes, size), read(&bytes, bytes.len().max(1)));
        }
    }
}
