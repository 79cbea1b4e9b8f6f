//! Interpreter of a room with MEW peers. Translates a message for several only once, by `room_proto::mew`.

use bytes::Bytes;
use room_proto::envelope::RefusedEnvelope;
use room_proto::mew::{Inward, Outward, Translator};
use room_proto::websocket::{Opcode, frame};

/// Translator for all MEW peers of a room.
#[derive(Default)]
pub struct Interpreter {
    translator: Translator,
    /// The last message of the room, with its frame in MEW.
    last: Option<(Bytes, Option<Bytes>)>,
}

impl Interpreter {
    /// Translates a peer's message into an envelope of MCPx; `None`: no concern of the room.
    pub fn hear(&self, message: &[u8], most: usize) -> Result<Option<Bytes>, RefusedEnvelope> {
        Ok(match self.translator.inward(message, most)? {
            Inward::Envelope(envelope) => Some(envelope),
            Inward::Join => None,
        })
    }

    /// Translates a message of the room into a frame; `None`: not for MEW peers.
    pub fn tell(&mut self, room: &str, message: &Bytes) -> Option<Bytes> {
        let same = |(known, _): &&(Bytes, Option<Bytes>)| (known.as_ptr(), known.len()) == (message.as_ptr(), message.len());
        if let Some((_, framed)) = self.last.as_ref().filter(same) {
            return framed.clone();
        }
        let framed = match self.translator.outward(message) {
            Outward::Envelope(envelope) => Some(frame(Opcode::Text, &envelope, None).into()),
            Outward::Held { from, why } => {
                tracing::warn!(room, from, %why, "a message in a room did not hold and was kept from clients of MEW");
                None
            }
            Outward::Unknown => None,
        };
        self.last = Some((message.clone(), framed.clone()));
        framed
    }
}
