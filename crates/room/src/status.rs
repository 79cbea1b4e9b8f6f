//! What a gate says about its rooms, in shapes that scripts may rely on. It counts nothing itself.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use config::resolved;
use room_proto::access::Access;
use room_proto::capability::{Capabilities, Pattern};
use room_proto::name::ParticipantId;
use room_proto::room::{Preferences, Routing};

use crate::Rooms;
use crate::driver::Live;

/// What there is to say about one room.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RoomStatus {
    /// Its name: the topic.
    pub name: String,
    /// `public`, `private` or `restricted`.
    pub access: String,
    /// How many are there.
    pub participants: usize,
    /// Messages that were passed on since it opened.
    pub messages: u64,
    /// To how many, taken together.
    pub deliveries: u64,
    /// Messages that went nowhere.
    pub refused: u64,
    /// Participants that were cut off because they read too slowly.
    pub cut: u64,
}

/// One who is in a room.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ParticipantStatus {
    /// Its id.
    pub id: String,
    /// What it may send.
    pub capabilities: Vec<String>,
    /// `all` or `directed`: which messages it gets.
    pub routing: String,
    /// Since when it is there: Unix seconds.
    #[serde(default)]
    pub since: u64,
}

impl ParticipantStatus {
    /// Describes a participant, present since `since`.
    pub fn of((id, capabilities, preferences): (&ParticipantId, &Capabilities, Preferences), since: Option<SystemTime>) -> Self {
        let since = since.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs());
        let routing = match preferences.routing {
            Routing::All => "all",
            Routing::Directed => "directed",
        };
        Self { id: id.as_str().to_owned(), capabilities: texts(capabilities), routing: routing.to_owned(), since }
    }
}

/// Capabilities as they are written.
pub fn texts(capabilities: &Capabilities) -> Vec<String> {
    capabilities.patterns().iter().map(Pattern::as_str).map(str::to_owned).collect()
}

impl Rooms {
    /// Every room that is configured or open, by name.
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
