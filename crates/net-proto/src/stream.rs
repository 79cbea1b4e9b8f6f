//! Framings of JSON-RPC on the draft's TLS transport (section 8.1: "length-prefixed JSON-RPC 2.0 objects per MCP spec", of which MCP has
//! none). The first byte of a client tells which of three its messages come in; answers go out in the same. Looks into no message.

use memchr::{memchr, memmem};

/// Bytes of the length before a message, big-endian.
const PREFIX: usize = 4;
/// Bytes of the header lines before a message.
const LONGEST_HEADER: usize = 1024;
const HEADER_END: &[u8] = b"\r\n\r\n";

/// Form in which messages follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each message a line, as MCP has them over stdio.
    Lines,
    /// Four bytes of length before each message.
    Lengths,
    /// `Content-Length: N` and an empty line before each message, as language servers have them.
    Headers,
}

/// Reason for which a connection is closed. The texts go to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    #[error("a message is longer than {0} bytes: send less at a time")]
    TooLong(usize),
    #[error(
        "the first byte is 0x{0:02x}: begin with `{{` (a message a line), with the length of the message in four bytes, or with `Content-Length:`"
    )]
    UnknownFraming(u8),
    #[error("a header before a message names no length: write `Content-Length: BYTES`, and an empty line")]
    Header,
    #[error(
        "a message begins with 0x{0:02x}, in another framing than the messages before: a connection keeps the framing of its first message"
    )]
    ChangedFraming(u8),
}

/// Reader of what a client sends.
#[derive(Debug)]
pub struct StreamReader {
    limit: usize,
    framing: Option<Framing>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are behind the reader.
    consumed: usize,
    /// Bytes of the buffer that hold no end of a line or header.
    searched: usize,
}

impl Framing {
    /// The framing that a stream with this first byte has.
    ///
    /// # Errors
    /// [`StreamError::UnknownFraming`]
    pub fn by_first_byte(first: u8) -> Result<Self, StreamError> {
        match first {
            b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' => Ok(Self::Lines),
            // A message has less than 16 MiB, so that the first of four bytes is zero.
            0 => Ok(Self::Lengths),
            b'C' | b'c' => Ok(Self::Headers),
            other => Err(StreamError::UnknownFraming(other)),
        }
    }

    /// Bytes that carry a message. The message is JSON without line ends.
    pub fn frame(self, message: &[u8]) -> Vec<u8> {
        let mut out = match self {
            Self::Lines => Vec::with_capacity(message.len() + 1),
            Self::Lengths => u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec(),
            Self::Headers => format!("Content-Length: {}\r\n\r\n", message.len()).into_bytes(),
        };
        out.extend_from_slice(message);
        if self == Self::Lines {
            out.push(b'\n');
        }
        out
    }
}

impl StreamReader {
    /// Takes messages of at most `limit` bytes, less than 16 MiB.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.min((1 << 24) - 1), framing: None, buffer: Vec::new(), consumed: 0, searched: 0 }
    }

    /// The framing of the client; `None` before its first byte.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Has a message begun that is not whole?
    pub fn is_amid(&self) -> bool {
        self.consumed < self.buffer.len()
    }

    /// Takes arrived bytes, to be read by [`StreamReader::message`]. Read all messages before more is taken: so is the buffer bounded.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.searched = self.searched.saturating_sub(self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Next whole message; `None`: more bytes have to come.
    ///
    /// # Errors
    /// The stream cannot be read any further: close the connection.
    pub fn message(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        let framing = match (self.framing, self.buffer.get(self.consumed)) {
            (Some(framing), _) => framing,
            (None, None) => return Ok(None),
            (None, Some(first)) => *self.framing.insert(Framing::by_first_byte(*first)?),
        };
        match framing {
            Framing::Lines => self.line(),
            Framing::Lengths => self.kept(framing).and_then(|()| self.prefixed()),
            Framing::Headers => self.kept(framing).and_then(|()| self.headed()),
        }
    }

    /// Checks that the next message does not begin as those of another framing do.
    fn kept(&self, framing: Framing) -> Result<(), StreamError> {
        match self.buffer.get(self.consumed) {
            Some(&first) if !first.is_ascii_whitespace() && Framing::by_first_byte(first).is_ok_and(|other| other != framing) => {
                Err(StreamError::ChangedFraming(first))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        loop {
            self.kept(Framing::Lines)?;
            let from = self.searched.max(self.consumed);
            let Some(end) = memchr(b'\n', &self.buffer[from..]).map(|at| from + at) else {
                self.searched = self.buffer.len();
                return if self.buffer.len() - self.consumed > self.limit { Err(StreamError::TooLong(self.limit)) } else { Ok(None) };
            };
            let whole = &self.buffer[self.consumed..end];
            // Spaces around the message count, as they do while the end of the line has not come.
            if whole.len() > self.limit {
                return Err(StreamError::TooLong(self.limit));
            }
            let line = whole.trim_ascii();
            let message = (!line.is_empty()).then(|| line.to_vec());
            self.consumed = end + 1;
            if message.is_some() {
                return Ok(message);
            }
        }
    }

    fn prefixed(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        let Some(prefix) = self.buffer[self.consumed..].first_chunk::<PREFIX>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
        self.counted(PREFIX, length)
    }

    fn headed(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        let rest = &self.buffer[self.consumed..];
        let rest = &rest[..rest.len().min(LONGEST_HEADER)];
        let Some(end) = memmem::find(rest, HEADER_END) else {
            return if rest.len() == LONGEST_HEADER { Err(StreamError::Header) } else { Ok(None) };
        };
        let length = length_of(&rest[..end]).ok_or(StreamError::Header)?;
        self.counted(end + HEADER_END.len(), length)
    }

    /// The message of `length` bytes that begins after `head` bytes.
    fn counted(&mut self, head: usize, length: usize) -> Result<Option<Vec<u8>>, StreamError> {
        if length > self.limit {
            return Err(StreamError::TooLong(self.limit));
        }
        let from = self.consumed + head;
        let Some(message) = self.buffer.get(from..from + length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.consumed = from + length;
        Ok(Some(message))
    }
}

/// The one length that header lines name.
fn length_of(header: &[u8]) -> Option<usize> {
    let header = std::str::from_utf8(header).ok()?;
    let mut lengths = header.split("\r\n").filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    let (length, second) = (lengths.next()?, lengths.next());
    // Two lengths are a way to say one thing to a proxy and another to its server.
    let is_number = second.is_none() && !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { length.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Framing; 3] = [Framing::Lines, Framing::Lengths, Framing::Headers];

    #[test]
    fn nm_11_a_connection_keeps_the_framing_of_its_begin() {
        for (first, second) in ALL.into_iter().flat_map(|one| ALL.map(|other| (one, other))) {
            let bytes = [first.frame(b"{\"id\":1}"), second.frame(b"{\"id\":2}")].concat();
            let (messages, error) = read(&bytes, bytes.len(), 100);
            if first == second {
                assert_eq!((messages.len(), error), (2, None));
            } else {
                assert!(messages.len() == 1 && matches!(error, Some(StreamError::ChangedFraming(_))), "{first:?} {second:?} {error:?}");
            }
        }
    }

    fn read(bytes: &[u8], size: usize, limit: usize) -> (Vec<Vec<u8>>, Option<StreamError>) {
        let mut reader = StreamReader::new(limit);
        let mut messages = Vec::new();
        for piece in bytes.chunks(size) {
            reader.receive(piece);
            loop {
                match reader.message() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(error) => return (messages, Some(error)),
                }
            }
        }
        (messages, None)
    }

    proptest! {
        #[test]
        fn nm_11_messages_come_out_as_they_went_in(texts in prop::collection::vec("[a-z]{0,40}", 1..6), which in 0usize..3, size in 1usize..50) {
            let framing = ALL[which];
            let messages: Vec<Vec<u8>> = texts.iter().map(|text| format!("{{\"a\":\"{text}\"}}").into_bytes()).collect();
            let bytes: Vec<u8> = messages.iter().flat_map(|message| framing.frame(message)).collect();
            prop_assert_eq!(read(&bytes, size, 100), (messages, None));
        }

        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(prop::sample::select(b"{}\0\x01\x05C:-Leghnot123\r\n ".to_vec()), 0..200), size in 1usize..20) {
            prop_assert_eq!(read(&bytes, size, 50), read(&bytes, bytes.len().max(1), 50));
        }
    }

    #[test]
    fn nm_11_the_first_byte_tells_the_framing() {
        for framing in ALL {
            let bytes = framing.frame(b"{}");
            assert_eq!(Framing::by_first_byte(bytes[0]), Ok(framing));
        }
        let error = Framing::by_first_byte(0x16).unwrap_err();
        assert!(error.to_string().starts_with("the first byte is 0x16: begin with `{`"), "{error}");
    }

    #[test]
    fn the_limit_holds_in_each_framing() {
        for framing in ALL {
            let exact = framing.frame(&[b'['; 50]);
            assert_eq!(read(&exact, 7, 50).0.len(), 1, "{framing:?}");
            let longer = framing.frame(&[b'['; 51]);
            assert_eq!(read(&longer, 7, 50), (vec![], Some(StreamError::TooLong(50))), "{framing:?}");
        }
        let spaced = [b"\r", [b'{'; 50].as_slice(), b"\n"].concat();
        assert_eq!(read(&spaced, 9, 50), read(&spaced, 99, 50), "spaces count, however the line comes");
        // The announcement alone is refused.
        assert_eq!(read(b"\0\xff\xff\xff", 4, 1000).1, Some(StreamError::TooLong(1000)));
        assert_eq!(read(b"Content-Length: 99999999999\r\n\r\n", 99, 1000).1, Some(StreamError::TooLong(1000)));
    }

    #[test]
    fn headers_name_one_length() {
        let other = b"Content-Type: application/json\r\ncontent-length:2\r\n\r\n{}";
        assert_eq!(read(other, 3, 100), (vec![b"{}".to_vec()], None));
        for header in ["Content-Length: 2\r\nContent-Length: 3", "Content-Length: +2", "Content-Length:", "Content-Type: x", "C"] {
            let bytes = format!("{header}\r\n\r\n{{}} {{}}");
            assert_eq!(read(bytes.as_bytes(), 5, 100).1, Some(StreamError::Header), "{header}");
        }
        assert_eq!(read(&[b'C'; LONGEST_HEADER], 100, 5000).1, Some(StreamError::Header));
    }

    #[test]
    fn empty_lines_are_passed_over() {
        assert_eq!(read(b"\r\n\n {} \r\n\n", 2, 100), (vec![b"{}".to_vec()], None));
    }
}
