//! Frames of WebSocket (RFC 6455, 5): received bytes, cut anywhere, become messages, and messages become frames. No extension is spoken,
//! and binary messages are refused: a room speaks text (MCPx v0.1, 3). Handshake and pongs are left to the driver.

mod frame;

use bytes::{Bytes, BytesMut};

use frame::{Head, unmask};
pub use frame::{Opcode, close, frame, head};

/// End of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end that connected: frames from here are masked.
    Client,
    /// The other end: frames to here are masked.
    Server,
}

/// A message or control frame received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketEvent {
    /// The other end closes, with a code, if any, and a reason. Nothing follows.
    Close(Option<u16>, String),
    /// Wants a pong with the same payload.
    Ping(Bytes),
    Pong(Bytes),
    /// A whole message: UTF-8.
    Text(Bytes),
}

/// Reasons for closing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketError {
    /// A binary message came.
    #[error("messages are text here: send them in text frames")]
    Binary,
    #[error("the frames break RFC 6455: {0}")]
    Protocol(&'static str),
    /// A text was not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    #[error("a message has at most {most} bytes here: send less, or in parts")]
    TooLarge { most: usize },
}

impl WebSocketError {
    /// Gives the code of the close frame (7.4.1).
    pub fn code(self) -> u16 {
        match self {
            Self::Binary => 1003,
            Self::Protocol(_) => 1002,
            Self::Text => 1007,
            Self::TooLarge { .. } => 1009,
        }
    }
}

/// Reader of one connection.
#[derive(Debug)]
pub struct Reader {
    end: End,
    most: usize,
    /// Bytes received, not yet a whole frame.
    buffer: BytesMut,
    /// Parts received of a message in several frames.
    begun: Option<BytesMut>,
    over: bool,
}

impl Reader {
    /// Makes a reader for this end of a connection, and messages of at most `most` bytes.
    pub fn new(end: End, most: usize) -> Self {
        Self { end, most, buffer: BytesMut::new(), begun: None, over: false }
    }

    /// Changes the longest message.
    pub fn bound(&mut self, most: usize) {
        self.most = most;
    }

    /// Takes received bytes, cut anywhere. Bytes stay in memory until `poll`, which has to be called each time.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if !self.over {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Gives the next message or control frame; `None`: nothing whole.
    ///
    /// # Errors
    /// When the connection is to be closed. Nothing is read afterwards.
    pub fn poll(&mut self) -> Result<Option<WebSocketEvent>, WebSocketError> {
        while !self.over {
            let step = self.step();
            self.over |= matches!(step, Err(_) | Ok(Step::Received(WebSocketEvent::Close(..))));
            match step? {
                Step::Begun => {}
                Step::Received(received) => return Ok(Some(received)),
                Step::Waits => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Counts the bytes held for unfinished frames and messages.
    pub fn held(&self) -> usize {
        self.buffer.len() + self.begun.as_ref().map_or(0, BytesMut::len)
    }

    fn step(&mut self) -> Result<Step, WebSocketError> {
        let Some(head) = Head::read(&self.buffer, self.end)? else { return Ok(Step::Waits) };
        let opcode = self.check(&head)?;
        // Checked against a bound by now.
        let length = usize::try_from(head.length).unwrap_or(usize::MAX);
        if self.buffer.len() - head.size < length {
            return Ok(Step::Waits);
        }
        let mut payload = self.buffer.split_to(head.size + length).split_off(head.size);
        if let Some(key) = head.mask {
            unmask(&mut payload, key);
        }
        match opcode {
            Opcode::Close => closed(&payload).map(Step::Received),
            Opcode::Ping => Ok(Step::Received(WebSocketEvent::Ping(payload.freeze()))),
            Opcode::Pong => Ok(Step::Received(WebSocketEvent::Pong(payload.freeze()))),
            Opcode::Binary => Err(WebSocketError::Binary),
            Opcode::Continuation | Opcode::Text => self.part(payload, head.is_last),
        }
    }

    /// Gives the opcode of a frame, if permitted at this place.
    fn check(&self, head: &Head) -> Result<Opcode, WebSocketError> {
        let opcode = head.opcode()?;
        match (opcode, &self.begun) {
            (Opcode::Binary, _) => return Err(WebSocketError::Binary),
            (Opcode::Text, Some(_)) => return Err(WebSocketError::Protocol("a message begins within another")),
            (Opcode::Continuation, None) => return Err(WebSocketError::Protocol("a message goes on that has not begun")),
            (Opcode::Close | Opcode::Continuation | Opcode::Ping | Opcode::Pong | Opcode::Text, _) => {}
        }
        let before = if opcode.is_control() { 0 } else { self.begun.as_ref().map_or(0, BytesMut::len) };
        let room = self.most.saturating_sub(before) as u64;
        if !opcode.is_control() && head.length > room {
            return Err(WebSocketError::TooLarge { most: self.most });
        }
        Ok(opcode)
    }

    /// Takes a part of a message: usually the only part.
    fn part(&mut self, payload: BytesMut, is_last: bool) -> Result<Step, WebSocketError> {
        let whole = match self.begun.take() {
            None => payload,
            Some(mut begun) => {
                begun.unsplit(payload);
                begun
            }
        };
        if !is_last {
            self.begun = Some(whole);
            return Ok(Step::Begun);
        }
        std::str::from_utf8(&whole).map_err(|_| WebSocketError::Text)?;
        Ok(Step::Received(WebSocketEvent::Text(whole.freeze())))
    }
}

enum Step {
    /// A part of a message.
    Begun,
    Received(WebSocketEvent),
    /// No whole frame.
    Waits,
}

/// Reads a close frame (5.5.1).
fn closed(payload: &[u8]) -> Result<WebSocketEvent, WebSocketError> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        let empty = WebSocketEvent::Close(None, String::new());
        return if payload.is_empty() { Ok(empty) } else { Err(WebSocketError::Protocol("half a code closes")) };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(WebSocketError::Protocol("nobody closes with this code"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| WebSocketError::Text)?;
    Ok(WebSocketEvent::Close(Some(code), reason.to_owned()))
}

#[cfg(test)]
mod tests;
