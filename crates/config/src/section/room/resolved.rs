//! Which rooms there are, and who may come into them, all checked. Secrets are references still: they are not fetched here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use banyan_model::Segment;
use room_proto::access::{Doors, PROPOSES, Rule};
use room_proto::capability::Capabilities;
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::Settings;

use crate::secret::SecretRef;

/// The segment under which rooms stand in the tree.
pub const ROOM_SEGMENT: &str = "room";

/// All rooms of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Rooms {
    /// Whether a room that is not named comes into being when the first joins.
    pub open: bool,
    /// What those may send whose token and room do not say.
    pub capabilities: Capabilities,
    /// Issuers whose tokens say who a participant is, by their names in the configuration.
    pub issuers: Vec<Arc<str>>,
    /// What tokens of HS256 are signed with; `None`: none are taken.
    pub secret: Option<SecretRef>,
    /// Whether a token may stand in the address.
    pub query_token: bool,
    /// Whether clients of MEW are let in.
    pub mew: bool,
    /// The bounds of rooms that are not named.
    pub settings: Settings,
    /// Those that are.
    pub rooms: BTreeMap<Topic, Room>,
    /// Who comes in by a token of its own.
    pub participants: BTreeMap<ParticipantId, Participant>,
}

/// One room.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// Who it takes.
    pub rule: Rule,
    /// Who may change what others may send.
    pub admins: BTreeSet<ParticipantId>,
    /// Its bounds.
    pub settings: Settings,
    /// What of the gate is in it.
    pub seats: Seats,
}

/// What of the gate is in a room by configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// Whether its participants' tools stand in the tree, so that the gate calls them from a seat of its own.
    pub is_mounted: bool,
    /// Under which id each mount sits there; `None`: the whole tree.
    pub servers: BTreeMap<ParticipantId, Option<Segment>>,
}

/// The id under which the gate itself sits in rooms.
const GATE: &str = "gate";

/// The id under which the gate itself sits in rooms: beside its servers, and where it calls others.
pub fn gate_seat() -> ParticipantId {
    ParticipantId::new(GATE).unwrap_or_else(|_| unreachable!("`gate` is an id"))
}

impl Seats {
    /// Whether nothing does.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && !self.is_mounted
    }

    /// Whether a participant of this id is part of the gate.
    pub fn has(&self, id: &ParticipantId) -> bool {
        self.servers.contains_key(id) || (!self.is_empty() && id.as_str() == GATE)
    }
}

/// Somebody who comes into rooms by a token of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Participant {
    /// What its token is known by.
    pub token: TokenKey,
    /// The rooms that it is good for.
    pub rooms: Vec<String>,
    /// What it may send; `None`: its room says.
    pub capabilities: Option<Capabilities>,
}

/// What a token is known by.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKey {
    /// Itself, kept elsewhere.
    Secret(SecretRef),
    /// Its hash.
    Sha256([u8; 32]),
}

/// There are none.
impl Default for Rooms {
    fn default() -> Self {
        Self {
            open: false,
            capabilities: Capabilities::read(PROPOSES).unwrap_or_default(),
            issuers: Vec::new(),
            secret: None,
            query_token: false,
            mew: false,
            settings: Settings::default(),
            rooms: BTreeMap::new(),
            participants: BTreeMap::new(),
        }
    }
}

impl Rooms {
    /// Those whose participants' tools stand in the tree.
    pub fn mounted(&self) -> impl Iterator<Item = &Topic> {
        self.rooms.iter().filter(|(_, room)| room.seats.is_mounted).map(|(topic, _)| topic)
    }

    /// Whether there is, or can be, any room.
    pub fn are_served(&self) -> bool {
        self.open || !self.rooms.is_empty()
    }

    /// Who is let into which.
    pub fn doors(&self) -> Doors {
        let rules = self.rooms.iter().map(|(topic, room)| (topic.clone(), room.rule.clone())).collect();
        Doors { rules, open: self.open, capabilities: self.capabilities.clone() }
    }

    /// The bounds of a room.
    pub fn settings_of(&self, topic: &Topic) -> &Settings {
        self.rooms.get(topic).map_or(&self.settings, |room| &room.settings)
    }

    /// Whether what has this id in a room is part of the gate.
    pub fn sits(&self, topic: &Topic, id: &ParticipantId) -> bool {
        self.rooms.get(topic).is_some_and(|room| room.seats.has(id))
    }

    /// Whether a participant may change what others of a room may send.
    pub fn is_admin(&self, topic: &Topic, id: &ParticipantId) -> bool {
        self.rooms.get(topic).is_some_and(|room| room.admins.contains(id))
    }
}
