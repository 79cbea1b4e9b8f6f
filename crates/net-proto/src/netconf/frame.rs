//! Messages in a stream of bytes: ended by `]]>]]>` (1.0), or in chunks (1.1). Linear and bounded; looks into no message.

use memchr::memmem;

const END: &[u8] = b"]]>]]>";
/// Bytes of a chunk's head: `\n#4294967295\n`.
const LONGEST_HEAD: usize = 13;

/// Reason for which a stream is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a message of the device is longer than {0} bytes")]
    TooLong(usize),
    #[error("the device sends chunks that are none")]
    Chunk,
}

/// Reader of a stream. Begins with the framing of 1.0, in which every hello is sent.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    is_chunked: bool,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were searched already, in the framing of 1.0.
    searched: usize,
    /// Bytes of the buffer that are behind the reader.
    consumed: usize,
    message: Vec<u8>,
    /// Bytes that the chunk still has.
    left: usize,
}

impl Framer {
    /// Takes later messages of at most `limit` bytes.
    pub fn limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes messages of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, is_chunked: false, buffer: Vec::new(), searched: 0, consumed: 0, message: Vec::new(), left: 0 }
    }

    /// Goes over to chunks, once both hellos name base 1.1.
    pub fn begin_chunks(&mut self) {
        self.is_chunked = true;
        self.searched = self.consumed;
    }

    /// Takes arrived bytes, to be read by [`Framer::message`].
    pub fn receive(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.searched = self.searched.saturating_sub(self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Next whole message; `None`: more bytes have to come.
    ///
    /// # Errors
    /// The stream cannot be read any further: close the session.
    pub fn message(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        if self.is_chunked { self.chunked() } else { self.ended() }
    }

    /// Bytes of a message in the framing that holds now.
    pub fn frame(&self, message: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(message.len() + 24);
        if self.is_chunked {
            out.extend_from_slice(format!("\n#{}\n", message.len()).as_bytes());
            out.extend_from_slice(message.as_bytes());
            out.extend_from_slice(b"\n##\n");
        } else {
            out.extend_from_slice(message.as_bytes());
            out.extend_from_slice(END);
        }
        out
    }

    fn ended(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        // The mark may have begun in what was searched before.
        let from = self.searched.saturating_sub(END.len() - 1).max(self.consumed);
        match memmem::find(&self.buffer[from..], END) {
            Some(found) if from + found - self.consumed <= self.limit => {
                let message = self.buffer[self.consumed..from + found].to_vec();
                self.consumed = from + found + END.len();
                self.searched = self.consumed;
                Ok(Some(message))
            }
            None if self.buffer.len() - self.consumed <= self.limit + END.len() => {
                self.searched = self.buffer.len();
                Ok(None)
            }
            Some(_) | None => Err(FrameError::TooLong(self.limit)),
        }
    }

    fn chunked(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        loop {
            if self.left > 0 {
                let here = self.left.min(self.buffer.len() - self.consumed);
                self.message.extend_from_slice(&self.buffer[self.consumed..self.consumed + here]);
                self.consumed += here;
                self.left -= here;
                if self.left > 0 {
                    return Ok(None);
                }
            }
            let Some(head) = self.head()? else { return Ok(None) };
            match head {
                Some(length) if self.message.len().saturating_add(length) > self.limit => return Err(FrameError::TooLong(self.limit)),
                Some(length) => self.left = length,
                None if self.message.is_empty() => return Err(FrameError::Chunk),
                None => return Ok(Some(std::mem::take(&mut self.message))),
            }
        }
    }

    /// Head of a chunk: a length, or the end of the message as the inner `None`.
    fn head(&mut self) -> Result<Option<Option<usize>>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let rest = &rest[..rest.len().min(LONGEST_HEAD)];
        let begins_well = b"\n#".starts_with(&rest[..rest.len().min(2)]);
        if !begins_well {
            return Err(FrameError::Chunk);
        }
        let Some(end) = rest.iter().skip(2).position(|byte| *byte == b'\n').map(|at| at + 2) else {
            return if rest.len() == LONGEST_HEAD { Err(FrameError::Chunk) } else { Ok(None) };
        };
        let digits = &rest[2..end];
        self.consumed += end + 1;
        if digits == b"#" {
            return Ok(Some(None));
        }
        let is_number = digits.iter().all(u8::is_ascii_digit) && digits.first().is_some_and(|first| *first != b'0');
        let length = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|text| text.parse::<u32>().ok());
        let length = length.and_then(|length| usize::try_from(length).ok()).ok_or(FrameError::Chunk)?;
        Ok(Some(Some(length)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(framer: &mut Framer, bytes: &[u8], size: usize) -> Result<Vec<String>, FrameError> {
        let mut found = Vec::new();
        for piece in bytes.chunks(size) {
            framer.receive(piece);
            while let Some(message) = framer.message()? {
                found.push(String::from_utf8_lossy(&message).into_owned());
            }
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn nm_14_messages_come_out_as_they_went_in(messages in proptest::collection::vec("[a-z<>\\]#\n]{1,40}", 1..5), size in 1..50_usize, is_chunked: bool) {
            prop_assume!(is_chunked || messages.iter().all(|m| !format!("{m}]]>]]").contains("]]>]]>")));
            let mut framer = Framer::new(1_000);
            if is_chunked {
                framer.begin_chunks();
            }
            let bytes: Vec<u8> = messages.iter().flat_map(|message| framer.frame(message)).collect();
            prop_assert_eq!(read(&mut framer, &bytes, size), Ok(messages));
        }

        #[test]
        fn nm_14_any_bytes_end_in_messages_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1..20_usize, is_chunked: bool) {
            let mut framer = Framer::new(50);
            if is_chunked {
                framer.begin_chunks();
            }
            if let Ok(messages) = read(&mut framer, &bytes, size) {
                prop_assert!(messages.iter().all(|message| message.len() <= 200));
            }
        }
    }

    #[test]
    fn nm_14_chunks_are_put_together_and_bad_ones_refused() {
        let chunked = |bytes: &[u8]| {
            let mut framer = Framer::new(10);
            framer.begin_chunks();
            read(&mut framer, bytes, 3)
        };
        assert_eq!(chunked(b"\n#4\n<rpc\n#2\n/>\n##\n"), Ok(vec!["<rpc/>".to_owned()]));
        for bad in [&b"<rpc/>"[..], b"\n#0\n", b"\n#-1\nx", b"\n##\n", b"\n#99999999999\n", b"\n#01\nx"] {
            assert_eq!(chunked(bad), Err(FrameError::Chunk), "{}", String::from_utf8_lossy(bad));
        }
        assert_eq!(chunked(b"\n#11\n"), Err(FrameError::TooLong(10)));
        let mut framer = Framer::new(10);
        assert_eq!(read(&mut framer, &[b'x'; 100], 7), Err(FrameError::TooLong(10)));
    }
}
