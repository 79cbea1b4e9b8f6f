//! The interpreter of one room: what its MEW peers say and hear, translated. A message that several hear is translated once. How it is
//! translated is not decided here but in `room_proto::mew`.

use bytes::Bytes;
use room_proto::envelope::Refused;
use room_proto::mew::{Inward, Outward, Translator};
use room_proto::websocket::{Opcode, frame};

/// Translates for all MEW peers of a room.
#[derive(Default)]
pub struct Interpreter {
    translator: Translator,
    /// What the room said last, and the frame of the same in MEW.
    last: Option<(Bytes, Option<Bytes>)>,
}

impl Interpreter {
    /// What a peer says, as an envelope of MCPx; `None`: nothing that the room has to know.
    pub fn hear(&self, message: &[u8], most: usize) -> Result<Option<Bytes>, Refused> {
        Ok(match self.translator.inward(message, most)? {
            Inward::Envelope(envelope) => Some(envelope),
            Inward::Join => None,
        })
    }

    /// What the room says, as a frame; `None`: it is not for them.
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
