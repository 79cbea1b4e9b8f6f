//! Ends of bodies, and the bytes before them. Holds none of these bytes.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use super::{HttpError, MAX_FIELDS};

/// Length of a chunk's size line with its extensions, and of all trailers together, in bytes at most.
const MAX_LINE: usize = 8 << 10;

/// Length of the extensions of all chunks of a body together, in bytes at most: they cost work, and no limit of a body counts them.
const MAX_EXTENSIONS: usize = 16 << 10;

/// Framing of a body (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Chunked,
    Close,
    Length(u64),
}

/// Cuts a body out of the bytes of a connection.
#[derive(Debug)]
pub struct Body {
    state: State,
    keep: bool,
    /// Length of the chunk extensions read so far, in bytes.
    extensions: usize,
    /// Bytes of a line already searched for its end, in vain.
    searched: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes of the chunk are left, and the line end behind it.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// So many bytes are left.
    Length(u64),
    /// Complete.
    Over,
    /// A chunk's size.
    Size,
    /// Trailers behind the last chunk: how many have been read, and their length in bytes.
    Trailer {
        fields: usize,
        length: usize,
    },
    UntilClose,
}

impl Body {
    /// Begins a body. `keep`: the connection stays open behind the body.
    pub(super) fn new(framing: Framing, keep: bool) -> Self {
        let state = match framing {
            Framing::Chunked => State::Size,
            Framing::Close => State::UntilClose,
            Framing::Length(0) => State::Over,
            Framing::Length(length) => State::Length(length),
        };
        Self { state, keep, extensions: 0, searched: 0 }
    }

    /// Takes the next piece off the beginning of `buffer`; `None`: more has to come, or it is over.
    pub fn take(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, HttpError> {
        loop {
            match self.state {
                State::Over => return Ok(None),
                _ if buffer.is_empty() => return Ok(None),
                State::UntilClose => return Ok(Some(buffer.split().freeze())),
                State::Length(left) => {
                    let (piece, left) = cut(buffer, left);
                    self.state = if left == 0 { State::Over } else { State::Length(left) };
                    return Ok(Some(piece));
                }
                State::Chunk(left) => {
                    let (piece, left) = cut(buffer, left);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    return Ok(Some(piece));
                }
                State::ChunkEnd => match &buffer[..buffer.len().min(2)] {
                    b"\r\n" => {
                        buffer.advance(2);
                        self.state = State::Size;
                    }
                    b"\r" => return Ok(None),
                    _ => return Err(HttpError::Framing),
                },
                State::Size => {
                    let Some(line) = self.line(buffer)? else { return Ok(None) };
                    let (size, extension) = chunk_size(&buffer[line.clone()])?;
                    self.extensions += extension;
                    if self.extensions > MAX_EXTENSIONS {
                        return Err(HttpError::Framing);
                    }
                    buffer.advance(line.end + 2);
                    self.state = if size == 0 { State::Trailer { fields: 0, length: 0 } } else { State::Chunk(size) };
                }
                State::Trailer { fields, length } => {
                    let Some(line) = self.line(buffer)? else { return Ok(None) };
                    let (fields, length) = (fields + 1, length + line.end + 2);
                    if !line.is_empty() && (!is_field(&buffer[line.clone()]) || fields > MAX_FIELDS) || length > MAX_LINE {
                        return Err(HttpError::Framing);
                    }
                    buffer.advance(line.end + 2);
                    self.state = if line.is_empty() { State::Over } else { State::Trailer { fields, length } };
                }
            }
        }
    }

    /// Finds the first line of `buffer`, without its end.
    fn line(&mut self, buffer: &[u8]) -> Result<Option<Range<usize>>, HttpError> {
        let searched = std::mem::take(&mut self.searched).min(buffer.len());
        match memchr::memchr(b'\n', &buffer[searched..buffer.len().min(MAX_LINE)]).map(|at| searched + at) {
            // A bare CR within the line is a line end to some readers (RFC 9112, section 2.2).
            Some(at) if at > 0 && memchr::memchr(b'\r', &buffer[..at]) == Some(at - 1) => Ok(Some(0..at - 1)),
            Some(_) => Err(HttpError::Framing),
            None if buffer.len() >= MAX_LINE => Err(HttpError::Framing),
            None => {
                self.searched = buffer.len();
                Ok(None)
            }
        }
    }

    /// Takes the whole body at once, if its length is known and all of it has arrived.
    pub fn take_whole(&mut self, buffer: &mut BytesMut) -> Option<Bytes> {
        let length = usize::try_from(self.left()?).ok().filter(|length| *length <= buffer.len())?;
        self.state = State::Over;
        Some(buffer.split_to(length).freeze())
    }

    /// Tells if everything has been taken.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Counts the missing bytes, if the head gave a length.
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            State::Over => Some(0),
            State::Chunk(_) | State::ChunkEnd | State::Size | State::Trailer { .. } | State::UntilClose => None,
        }
    }

    /// Notes the end of the connection. `true`: the body was complete; `false`: the body broke off.
    pub fn closed(&mut self) -> bool {
        if self.state == State::UntilClose {
            self.state = State::Over;
        }
        self.is_over()
    }

    /// Tells if another request may follow on the connection.
    pub fn keeps_connection(&self) -> bool {
        self.keep && self.is_over()
    }
}

/// Takes as many of `left` bytes as have arrived, and gives the rest of `left`.
fn cut(buffer: &mut BytesMut, left: u64) -> (Bytes, u64) {
    let here = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
    (buffer.split_to(here).freeze(), left - here as u64)
}

/// Reads the size of a chunk, and the length of its extensions, which mean nothing here (RFC 9112, section 7.1.1).
fn chunk_size(line: &[u8]) -> Result<(u64, usize), HttpError> {
    let (size, extension) = line.split_at(memchr::memchr(b';', line).unwrap_or(line.len()));
    let digits = size.trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(HttpError::Framing);
    }
    let text = std::str::from_utf8(digits).map_err(|_| HttpError::Framing)?;
    let size = u64::from_str_radix(text, 16).map_err(|_| HttpError::Framing)?;
    Ok((size, extension.len()))
}

/// Tells if a line is a name, a colon and a value, as a trailer has to be (RFC 9112, section 7.1.2).
fn is_field(line: &[u8]) -> bool {
    let mut slots = [httparse::EMPTY_HEADER; 1];
    let ended = [line, b"\r\n\r\n"].concat();
    matches!(httparse::parse_headers(&ended, &mut slots), Ok(httparse::Status::Complete((_, fields))) if fields.len() == 1)
}
