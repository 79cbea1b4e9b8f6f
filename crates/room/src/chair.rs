//! A place in a room for what is part of the gate: no socket, and the same bytes. What is said from it is not known here.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use config::resolved;
use room_proto::capability::Capabilities;
use room_proto::name::{ConnectionId, ParticipantId, Topic};
use room_proto::room::{Joining, Preferences};

use crate::driver::{Input, Live};
use crate::writer::{Joined, Source};
use crate::{NotSeated, Rooms, Way};

/// Somebody who sits there.
pub struct Chair {
    pub voice: Mouth,
    /// The longest message that the room takes.
    pub longest: usize,
    source: Source,
}

/// Says something from a chair.
#[derive(Clone)]
pub struct Mouth {
    room: Arc<Live>,
    connection: ConnectionId,
}

impl Chair {
    /// Sits down as `id`, with what it may send.
    pub async fn take(
        rooms: &Arc<Rooms>,
        config: &resolved::Rooms,
        topic: &Topic,
        id: &ParticipantId,
        may: &[&str],
        preferences: Preferences,
    ) -> Result<Self, NotSeated> {
        let capabilities = Capabilities::read(may.iter().copied()).unwrap_or_default();
        let joining = Joining { id: id.clone(), capabilities, preferences, expires: None, is_own: true, is_steward: false };
        let Joined { id: connection, room, longest, source, last: _ } =
            rooms.join(topic, config.settings_of(topic), &joining, Way::Plain).await?;
        Ok(Self { voice: Mouth { room, connection }, longest, source })
    }

    /// The next message; `None`: it was taken away. May be dropped and asked for again.
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
    /// Waits while the room has much to do; `false`: it is over.
    pub async fn say(&self, message: Bytes) -> bool {
        self.room.send(Input::Message(self.connection, message)).await
    }
}

/// Where somebody sits at present, for others who speak in its name.
#[derive(Clone, Default)]
pub struct Place(Arc<Mutex<Option<Mouth>>>);

impl Place {
    /// It sits there now, or nowhere.
    pub fn set(&self, mouth: Option<Mouth>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = mouth;
    }

    /// Says something; `false`: it sits nowhere.
    pub async fn say(&self, message: Bytes) -> bool {
        let mouth = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match mouth {
            Some(mouth) => mouth.say(message).await,
            None => false,
        }
    }
}
