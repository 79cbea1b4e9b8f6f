//! A place in a room for a part of the gate: without a socket, and with the same bytes. Does not know the messages.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use config::resolved;
use room_proto::capability::Capabilities;
use room_proto::name::{ConnectionId, ParticipantId, Topic};
use room_proto::room::{Newcomer, Preferences};

use crate::driver::{Input, Live};
use crate::writer::{SeatedConnection, Source};
use crate::{NotSeated, Rooms, Way};

/// A place taken in a room.
pub struct Chair {
    pub voice: Mouth,
    /// Longest message accepted by the room.
    pub longest: usize,
    source: Source,
}

/// Sender of messages from a chair.
#[derive(Clone)]
pub struct Mouth {
    room: Arc<Live>,
    connection: ConnectionId,
}

impl Chair {
    /// Takes a place as `id`, with capabilities.
    pub async fn take_seat(
        rooms: &Arc<Rooms>,
        config: &resolved::Rooms,
        topic: &Topic,
        id: &ParticipantId,
        may: &[&str],
        preferences: Preferences,
    ) -> Result<Self, NotSeated> {
        let capabilities = Capabilities::read(may.iter().copied()).unwrap_or_default();
        let joining = Newcomer { id: id.clone(), capabilities, preferences, expires: None, is_own: true, is_steward: false };
        let SeatedConnection { id: connection, room, longest, source, last: _ } =
            rooms.join(topic, config.settings_of(topic), &joining, Way::Plain).await?;
        Ok(Self { voice: Mouth { room, connection }, longest, source })
    }

    /// Gives the next message; `None`: the place is lost. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.source.next().await
    }
}

impl Drop for Chair {
    fn drop(&mut self) {
        self.voice.room.tell(Input::Leave(self.voice.connection));
    }
}

impl Mouth {
    /// Counts a message of a participant that this place found to be false.
    pub fn note_mismatched(&self, from: &str) {
        self.room.faults.note_mismatched(from);
    }

    /// Says a message, and waits for a busy room; `false`: the room is over.
    pub async fn say(&self, message: Bytes) -> bool {
        self.room.send(Input::Message(self.connection, message)).await
    }
}

/// Current place of a participant, for others who speak in the same name.
#[derive(Clone, Default)]
pub struct Place(Arc<Mutex<Option<Mouth>>>);

impl Place {
    /// Sets the current place, if any.
    pub fn set(&self, mouth: Option<Mouth>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = mouth;
    }

    /// Says a message; `false`: no current place.
    pub async fn say(&self, message: Bytes) -> bool {
        let mouth = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match mouth {
            Some(mouth) => mouth.say(message).await,
            None => false,
        }
    }
}
