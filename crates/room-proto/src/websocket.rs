//! Frames of WebSocket (RFC 6455, 5): bytes that came in any pieces become messages, and messages become frames. No extension is spoken, and
//! binary messages are refused: a room speaks text (MCPx v0.1, 3). The handshake, and who answers a ping, are not here.

mod frame;

use bytes::{Bytes, BytesMut};

use frame::{Head, unmask};
pub use frame::{Opcode, close, frame, head};

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The one that connected: what it sends is masked.
    Client,
    /// The one that was connected to: what it gets is masked.
    Server,
}

/// Something that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// The other end closes: with which code, if it says one, and why. Nothing comes behind it.
    Close(Option<u16>, String),
    /// Wants a pong with the same payload.
    Ping(Bytes),
    /// Answers a ping.
    Pong(Bytes),
    /// A whole message: UTF-8.
    Text(Bytes),
}

/// Why a connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketError {
    /// It brought a binary message.
    #[error("messages are text here: send them in text frames")]
    Binary,
    /// It broke the protocol.
    #[error("the frames break RFC 6455: {0}")]
    Protocol(&'static str),
    /// A text that is none.
    #[error("a text is not UTF-8")]
    Text,
    /// A message is over the bound.
    #[error("a message has at most {most} bytes here: send less, or in parts")]
    TooLarge {
        /// The bound.
        most: usize,
    },
}

impl WebSocketError {
    /// The code to close with (7.4.1).
    pub fn code(self) -> u16 {
        match self {
            Self::Binary => 1003,
            Self::Protocol(_) => 1002,
            Self::Text => 1007,
            Self::TooLarge { .. } => 1009,
        }
    }
}

/// Reads what comes over one connection.
#[derive(Debug)]
pub struct Reader {
    end: End,
    most: usize,
    /// What has come and is not a whole frame.
    buffer: BytesMut,
    /// What has come of a message in several frames.
    begun: Option<BytesMut>,
    over: bool,
}

impl Reader {
    /// For this end of a connection, and messages of at most `most` bytes.
    pub fn new(end: End, most: usize) -> Self {
        Self { end, most, buffer: BytesMut::new(), begun: None, over: false }
    }

    /// From now on messages have at most `most` bytes.
    pub fn bound(&mut self, most: usize) {
        self.most = most;
    }

    /// Bytes have come, cut anywhere. What `poll` has not taken is held, so it is to be asked after each.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if !self.over {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next thing that came; `None`: nothing more has come as a whole.
    ///
    /// # Errors
    /// When the connection is to be closed. Nothing is read after that.
    pub fn poll(&mut self) -> Result<Option<Received>, WebSocketError> {
        while !self.over {
            let step = self.step();
            self.over |= matches!(step, Err(_) | Ok(Step::Received(Received::Close(..))));
            match step? {
                Step::Begun => {}
                Step::Received(received) => return Ok(Some(received)),
                Step::Waits => return Ok(None),
            }
        }
        Ok(None)
    }

    /// How many bytes are held for what is not whole yet.
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
            Opcode::Ping => Ok(Step::Received(Received::Ping(payload.freeze()))),
            Opcode::Pong => Ok(Step::Received(Received::Pong(payload.freeze()))),
            Opcode::Binary => Err(WebSocketError::Binary),
            Opcode::Continuation | Opcode::Text => self.part(payload, head.is_last),
        }
    }

    /// What a frame is, if it may come now.
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

    /// A part of a message came: its only one, as a rule.
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
        Ok(Step::Received(Received::Text(whole.freeze())))
    }
}

enum Step {
    /// A part of a message has come.
    Begun,
    Received(Received),
    /// There is no whole frame.
    Waits,
}

/// What a close frame says (5.5.1).
fn closed(payload: &[u8]) -> Result<Received, WebSocketError> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        let empty = Received::Close(None, String::new());
        return if payload.is_empty() { Ok(empty) } else { Err(WebSocketError::Protocol("half a code closes")) };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(WebSocketError::Protocol("nobody closes with this code"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| WebSocketError::Text)?;
    Ok(Received::Close(Some(code), reason.to_owned()))
}

#[cfg(test)]
mod tests;
