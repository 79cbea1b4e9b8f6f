//! Rooms and participants, checked. Fetches no secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use banyan_model::Segment;
use room_proto::access::{Doors, PROPOSES, Rule};
use room_proto::capability::Capabilities;
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::{Hearing, Settings};

use crate::secret::SecretRef;
use crate::section::mount::family::FamilySettings;

/// The segment of rooms in the tree.
pub const ROOM_SEGMENT: &str = "room";

/// The mounted rooms of this gate: participants are called in their room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountedRooms;

impl FamilySettings for MountedRooms {
    const FAMILY: &'static str = "rooms";

    fn description(&self) -> String {
        "tools that participants of rooms offer".to_owned()
    }
}

/// All rooms of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Rooms {
    /// Other rooms than the file's come into being with the first participant.
    pub open: bool,
    /// Capabilities, where token and room name none.
    pub capabilities: Capabilities,
    /// Names of issuers with tokens for participants.
    pub issuers: Vec<Arc<str>>,
    /// Key of tokens with HS256; `None`: no such tokens.
    pub secret: Option<SecretRef>,
    /// Programs of the same machine get tokens.
    pub dev_tokens: bool,
    /// A token may stand in the address.
    pub query_token: bool,
    /// Clients of MEW are let in.
    pub mew: bool,
    /// Bounds of other rooms than the file's.
    pub settings: Settings,
    pub rooms: BTreeMap<Topic, Room>,
    pub participants: BTreeMap<ParticipantId, Participant>,
}

/// A room.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    pub rule: Rule,
    /// Participants with the right to change capabilities of others.
    pub admins: BTreeSet<ParticipantId>,
    pub settings: Settings,
    pub seats: Seats,
}

/// Parts of the gate in a room by configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// Participants' tools stand in the tree; the gate calls them from a seat of its own.
    pub is_mounted: bool,
    /// Mounts by their id in the room; `None`: the whole tree.
    pub servers: BTreeMap<ParticipantId, Option<Segment>>,
}

/// The id of the gate itself in rooms.
const GATE: &str = "gate";

/// Makes the id of the gate itself in rooms: beside its servers, and as a caller of others.
pub fn gate_seat() -> ParticipantId {
    ParticipantId::new(GATE).unwrap_or_else(|_| unreachable!("`gate` is an id"))
}

impl Seats {
    /// Checks whether nothing of the gate has a seat.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && !self.is_mounted
    }

    /// Checks whether a participant is part of the gate.
    pub fn has(&self, id: &ParticipantId) -> bool {
        self.servers.contains_key(id) || (!self.is_empty() && id.as_str() == GATE)
    }
}

/// A participant with a token of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Participant {
    pub token: TokenKey,
    pub rooms: Vec<String>,
    /// `None`: as the room says.
    pub capabilities: Option<Capabilities>,
    pub hearing: Hearing,
}

/// The mark of a token.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKey {
    /// Itself, kept elsewhere.
    Secret(SecretRef),
    Sha256([u8; 32]),
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            open: false,
            capabilities: Capabilities::read(PROPOSES).unwrap_or_default(),
            issuers: Vec::new(),
            secret: None,
            dev_tokens: false,
            query_token: false,
            mew: false,
            settings: Settings::default(),
            rooms: BTreeMap::new(),
            participants: BTreeMap::new(),
        }
    }
}

impl Rooms {
    /// Lists the mounted rooms.
    pub fn mounted(&self) -> impl Iterator<Item = &Topic> {
        self.rooms.iter().filter(|(_, room)| room.seats.is_mounted).map(|(topic, _)| topic)
    }

    /// Checks whether any room can exist.
    pub fn are_served(&self) -> bool {
        self.open || !self.rooms.is_empty()
    }

    /// Makes the rules of access.
    pub fn doors(&self) -> Doors {
        let rules = self.rooms.iter().map(|(topic, room)| (topic.clone(), room.rule.clone())).collect();
        Doors { rules, open: self.open, capabilities: self.capabilities.clone() }
    }

    /// The bounds of a room.
    pub fn settings_of(&self, topic: &Topic) -> &Settings {
        self.rooms.get(topic).map_or(&self.settings, |room| &room.settings)
    }

    /// Checks whether a participant of a room is part of the gate.
    pub fn sits(&self, topic: &Topic, id: &ParticipantId) -> bool {
        self.rooms.get(topic).is_some_and(|room| room.seats.has(id))
    }

    /// Checks whether a participant may change capabilities of others in a room.
    pub fn is_admin(&self, topic: &Topic, id: &ParticipantId) -> bool {
        self.rooms.get(topic).is_some_and(|room| room.admins.contains(id))
    }
}
