//! A room with company, for the tests of a participant: connection 0 belongs to the participant under test. Tests nothing itself.

use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now};
use bytes::Bytes;

use crate::capability::Capabilities;
use crate::name::{ConnectionId, ParticipantId, Topic};
use crate::room::{Newcomer, Preferences, Room, RoomOutput, Settings, Transmit};

/// Participants with their capabilities. The first two are parts of the gate.
pub(crate) type Who = [(&'static str, &'static [&'static str]); 5];

pub(crate) struct Company {
    pub(crate) room: Room,
    pub(crate) now: Now,
    who: &'static Who,
    preferences: Preferences,
    given: u64,
}

impl Company {
    #[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
    pub(crate) fn new(who: &'static Who, preferences: Preferences) -> Self {
        let now = Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH };
        let settings = Settings { reconnection: (Duration::ZERO, 1), ..Settings::default() };
        let room = Room::new(Topic::new("ops").unwrap(), settings, 1);
        Self { room, now, who, preferences, given: 0 }
    }

    /// Lets a participant in, over the connection of its place.
    pub(crate) fn join(&mut self, place: usize) {
        let (id, capabilities) = self.who[place];
        let newcomer = Newcomer {
            id: ParticipantId::new(id).unwrap(),
            capabilities: Capabilities::read(capabilities.iter().copied()).unwrap(),
            preferences: self.preferences,
            expires: None,
            is_own: place < 2,
            is_steward: false,
        };
        self.room.handle_join(self.now, ConnectionId(place as u64), newcomer).unwrap();
    }

    /// Gives the next message for the participant under test.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        while let Some(output) = self.room.poll_output() {
            if let RoomOutput::Transmit(Transmit::Send { connection: ConnectionId(0), bytes }) = output {
                return Some(bytes);
            }
        }
        None
    }

    /// Sends an envelope with this raw payload; gives the id.
    pub(crate) fn say(&mut self, who: &str, to: &[&str], kind: &str, of: Option<&str>, payload: &str) -> String {
        self.given += 1;
        let id = format!("{who}-{}", self.given);
        let of = of.map(|of| format!(",\"correlation_id\":\"{of}\"")).unwrap_or_default();
        let text = format!(r#"{{"protocol":"mcpx/v0.1","id":"{id}","from":"{who}","to":{to:?},"kind":"{kind}"{of},"payload":{payload}}}"#);
        self.room.handle_message(self.now, self.connection(who), &text.into());
        id
    }

    pub(crate) fn connection(&self, who: &str) -> ConnectionId {
        ConnectionId(self.who.iter().position(|(id, _)| *id == who).unwrap() as u64)
    }
}
