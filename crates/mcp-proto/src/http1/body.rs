//! Where a body ends, and the bytes that belong to it. It holds none of them.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use super::HttpError;

/// The size line of a chunk with its extensions, or all trailers together, may be this long.
const MAX_LINE: usize = 8 << 10;

/// How a body is framed (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Chunked,
    Close,
    Length(u64),
}

/// Cuts a body out of what the connection gives.
#[derive(Debug)]
pub struct Body {
    state: State,
    keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes of the chunk are left, and the line end behind it.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// So many bytes are left.
    Length(u64),
    /// Nothing more belongs to it.
    Over,
    /// A chunk's size.
    Size,
    /// What stands behind the last chunk; so many bytes of it are gone.
    Trailer(usize),
    UntilClose,
}

impl Body {
    /// `keep`: the connection stays open behind it.
    pub(super) fn new(framing: Framing, keep: bool) -> Self {
        let state = match framing {
            Framing::Chunked => State::Size,
            Framing::Close => State::UntilClose,
            Framing::Length(0) => State::Over,
            Framing::Length(length) => State::Length(length),
        };
        Self { state, keep }
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
                    let Some(line) = line(buffer)? else { return Ok(None) };
                    let size = chunk_size(&buffer[line.clone()])?;
                    buffer.advance(line.end + 2);
                    self.state = if size == 0 { State::Trailer(0) } else { State::Chunk(size) };
                }
                State::Trailer(gone) => {
                    let Some(line) = line(buffer)? else { return Ok(None) };
                    let gone = gone + line.end + 2;
                    if gone > MAX_LINE {
                        return Err(HttpError::Framing);
                    }
                    buffer.advance(line.end + 2);
                    self.state = if line.is_empty() { State::Over } else { State::Trailer(gone) };
                }
            }
        }
    }

    /// Takes the whole body at once, where its length is known and all of it is there.
    pub fn take_whole(&mut self, buffer: &mut BytesMut) -> Option<Bytes> {
        let length = usize::try_from(self.left()?).ok().filter(|length| *length <= buffer.len())?;
        self.state = State::Over;
        Some(buffer.split_to(length).freeze())
    }

    /// Whether everything has been taken.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// How many bytes are still to come, where the head said so.
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            State::Over => Some(0),
            State::Chunk(_) | State::ChunkEnd | State::Size | State::Trailer(_) | State::UntilClose => None,
        }
    }

    /// The connection has ended. `true`: that is how this body ends; `false`: it broke off.
    pub fn closed(&mut self) -> bool {
        if self.state == State::UntilClose {
            self.state = State::Over;
        }
        self.is_over()
    }

    /// Whether another request may follow on the connection.
    pub fn keeps_connection(&self) -> bool {
        self.keep && self.is_over()
    }
}

/// As much as there is of `left` bytes, and how many remain.
fn cut(buffer: &mut BytesMut, left: u64) -> (Bytes, u64) {
    let here = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
    (buffer.split_to(here).freeze(), left - here as u64)
}

/// Where the first line of `buffer` stands, without its end.
fn line(buffer: &BytesMut) -> Result<Option<Range<usize>>, HttpError> {
    match memchr::memchr(b'\n', &buffer[..buffer.len().min(MAX_LINE)]) {
        Some(at) if at > 0 && buffer[at - 1] == b'\r' => Ok(Some(0..at - 1)),
        Some(_) => Err(HttpError::Framing),
        None if buffer.len() >= MAX_LINE => Err(HttpError::Framing),
        None => Ok(None),
    }
}

/// The size of a chunk; extensions mean nothing here (RFC 9112, section 7.1.1).
fn chunk_size(line: &[u8]) -> Result<u64, HttpError> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(HttpError::Framing);
    }
    let text = std::str::from_utf8(digits).map_err(|_| HttpError::Framing)?;
    u64::from_str_radix(text, 16).map_err(|_| HttpError::Framing)
}
