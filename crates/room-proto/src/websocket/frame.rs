//! A frame of WebSocket on the wire (RFC 6455, 5.2). Does not put messages together.

use super::{End, WebSocketError};

/// Longest payload of a control frame (5.5).
const MOST_CONTROL: usize = 125;

const LAST: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// A further part of a message.
    Continuation,
    /// A text message, or the first part.
    Text,
    /// A binary message, or the first part.
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    pub(super) fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// Header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    first: u8,
    pub(super) is_last: bool,
    pub(super) length: u64,
    pub(super) mask: Option<[u8; 4]>,
    /// Length of the header itself.
    pub(super) size: usize,
}

impl Head {
    /// Reads a header; `None`: incomplete. Refuses by the first bytes where possible.
    pub(super) fn read(bytes: &[u8], end: End) -> Result<Option<Self>, WebSocketError> {
        let [first, second, ..] = *bytes else { return Ok(None) };
        if first & RESERVED != 0 {
            return Err(WebSocketError::Protocol("a reserved bit is set, and no extension was agreed"));
        }
        let is_masked = second & MASKED != 0;
        if is_masked != (end == End::Server) {
            return Err(WebSocketError::Protocol("clients mask what they send, and servers do not"));
        }
        let rest = bytes.get(2..).unwrap_or_default();
        let (length, extended) = match second & !MASKED {
            126 => (rest.first_chunk().map(|two| u64::from(u16::from_be_bytes(*two))), 2),
            127 => (rest.first_chunk().map(|eight| u64::from_be_bytes(*eight)), 8),
            short => (Some(u64::from(short)), 0),
        };
        let Some(length) = length else { return Ok(None) };
        if (extended == 2 && length < 126) || (extended == 8 && (length <= u64::from(u16::MAX) || length >> 63 != 0)) {
            return Err(WebSocketError::Protocol("a length is not written in its shortest form"));
        }
        let mask = if is_masked { rest.get(extended..).and_then(<[u8]>::first_chunk).copied() } else { None };
        if is_masked && mask.is_none() {
            return Ok(None);
        }
        let size = 2 + extended + if is_masked { 4 } else { 0 };
        Ok(Some(Self { first, is_last: first & LAST != 0, length, mask, size }))
    }

    /// Gives the opcode.
    pub(super) fn opcode(&self) -> Result<Opcode, WebSocketError> {
        let opcode = match self.first & !(LAST | RESERVED) {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return Err(WebSocketError::Protocol("nobody knows this kind of frame")),
        };
        if opcode.is_control() && (!self.is_last || self.length > MOST_CONTROL as u64) {
            return Err(WebSocketError::Protocol("a control frame is in parts, or longer than 125 bytes"));
        }
        Ok(opcode)
    }
}

/// Gives the header of a single unmasked frame for a payload of `length` bytes, as a server sends: 2 to 10 bytes. The payload follows
/// unchanged, so that all receivers share one copy.
pub fn head(opcode: Opcode, length: usize) -> Vec<u8> {
    write_head(opcode, length, 0)
}

/// Writes a whole frame. A client masks with an unpredictable key (5.3); a server does not.
pub fn frame(opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut frame = write_head(opcode, payload.len(), if mask.is_some() { MASKED } else { 0 });
    frame.reserve(payload.len() + 4);
    frame.extend(mask.into_iter().flatten());
    let begin = frame.len();
    frame.extend_from_slice(payload);
    if let (Some(key), Some(payload)) = (mask, frame.get_mut(begin..)) {
        unmask(payload, key);
    }
    frame
}

/// Writes a close frame. Too long a reason is cut.
pub fn close(code: u16, reason: &str, mask: Option<[u8; 4]>) -> Vec<u8> {
    let reason = reason.get(..reason.floor_char_boundary(MOST_CONTROL - 2)).unwrap_or_default();
    frame(Opcode::Close, &[&code.to_be_bytes(), reason.as_bytes()].concat(), mask)
}

fn write_head(opcode: Opcode, length: usize, masked: u8) -> Vec<u8> {
    let mut head = Vec::with_capacity(14);
    head.push(LAST | opcode.bits());
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ 0..=125), _) => head.push(masked | short),
        (_, Ok(two)) => {
            head.push(masked | 126);
            head.extend(two.to_be_bytes());
        }
        _ => {
            head.push(masked | 127);
            head.extend((length as u64).to_be_bytes());
        }
    }
    head
}

/// Masks or unmasks: the same operation (5.3).
pub(super) fn unmask(payload: &mut [u8], key: [u8; 4]) {
    let wide = [key, key].concat();
    let mut blocks = payload.chunks_exact_mut(8);
    for block in &mut blocks {
        block.iter_mut().zip(&wide).for_each(|(byte, key)| *byte ^= key);
    }
    blocks.into_remainder().iter_mut().zip(&wide).for_each(|(byte, key)| *byte ^= key);
}
