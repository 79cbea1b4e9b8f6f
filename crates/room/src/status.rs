//! Reports of a gate about its rooms, in shapes stable for scripts. Counts nothing itself.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use config::resolved;
use room_proto::access::Access;
use room_proto::capability::{Capabilities, Pattern};
use room_proto::name::ParticipantId;
use room_proto::room::{Preferences, Routing};

use crate::Rooms;
use crate::driver::Live;
use crate::faults::FaultCounts;

/// Status of a room.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RoomStatus {
    /// The topic.
    pub name: String,
    /// `public`, `private` or `restricted`.
    pub access: String,
    pub participants: usize,
    /// Messages passed on since the opening.
    pub messages: u64,
    /// Receivers of all messages together.
    pub deliveries: u64,
    /// Messages refused.
    pub refused: u64,
    /// Participants cut off for slow reading.
    pub cut: u64,
}

/// Status of a participant.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ParticipantStatus {
    pub id: String,
    pub capabilities: Vec<String>,
    /// `all` or `directed`.
    pub routing: String,
    /// Arrival: Unix seconds.
    #[serde(default)]
    pub since: u64,
    /// Messages refused by the room.
    #[serde(default)]
    pub refused: u64,
    /// Messages passed on whose kind and payload differ, as far as a server at the table saw them.
    #[serde(default)]
    pub mismatched: u64,
}

impl ParticipantStatus {
    /// Describes a participant, present since `since`.
    pub fn describe(
        (id, capabilities, preferences): (&ParticipantId, &Capabilities, Preferences),
        since: Option<SystemTime>,
        FaultCounts { refused, mismatched }: FaultCounts,
    ) -> Self {
        let since = since.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs());
        let routing = match preferences.routing {
            Routing::All => "all",
            Routing::Directed => "directed",
        };
        Self { id: id.as_str().to_owned(), capabilities: texts(capabilities), routing: routing.to_owned(), since, refused, mismatched }
    }
}

/// Writes capabilities as texts.
pub fn texts(capabilities: &Capabilities) -> Vec<String> {
    capabilities.patterns().iter().map(Pattern::as_str).map(str::to_owned).collect()
}

impl Rooms {
    /// Lists configured and open rooms, by name.
    pub fn status(&self, config: &resolved::Rooms) -> Vec<RoomStatus> {
        let live = self.live();
        let mut names: Vec<_> = config.rooms.keys().chain(live.keys()).collect();
        names.sort();
        names.dedup();
        let access = |name| match config.rooms.get(name).map_or(Access::Public, |room| room.rule.access) {
            Access::Private => "private",
            Access::Public => "public",
            Access::Restricted => "restricted",
        };
        names.into_iter().map(|name| status(name.as_str(), access(name), live.get(name).map(AsRef::as_ref))).collect()
    }
}

fn status(name: &str, access: &str, live: Option<&Live>) -> RoomStatus {
    let number = |of: fn(&Live) -> u64| live.map_or(0, of);
    RoomStatus {
        name: name.to_owned(),
        access: access.to_owned(),
        participants: live.map_or(0, |room| room.counts.participants.load(Ordering::Relaxed)),
        messages: number(|room| room.counts.messages.load(Ordering::Relaxed)),
        deliveries: number(|room| room.counts.deliveries.load(Ordering::Relaxed)),
        refused: number(|room| room.counts.refused.load(Ordering::Relaxed)),
        cut: number(|room| room.counts.cut.load(Ordering::Relaxed)),
    }
}
