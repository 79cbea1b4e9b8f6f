//! What goes into a room and what comes out of it. It is not carried out here.

use std::time::Instant;

use bytes::Bytes;

use super::also::Also;
use crate::capability::{Capabilities, Pattern, PatternError};
use crate::name::{ConnectionId, ParticipantId};
use crate::refusal::Refusal;

/// Which messages a participant gets (MCPx v0.1, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// All of the room.
    #[default]
    All,
    /// Those for it, and those for everybody.
    Directed,
}

/// What a participant chose for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preferences {
    /// Which messages it gets.
    pub routing: Routing,
    /// Whether it gets back what it sends itself, when it gets all of the room. What it addresses to itself it always gets.
    pub echo: bool,
    /// What it wants to get that MCPx v0.1 does not have.
    pub also: Also,
    /// How many of the last messages it wants when it joins, where the room keeps any.
    pub history: usize,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { routing: Routing::All, echo: true, also: Also::default(), history: 0 }
    }
}

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub struct Joining {
    /// As whom.
    pub id: ParticipantId,
    /// What its token or the room gives it. What an admin changed meanwhile is added here.
    pub capabilities: Capabilities,
    /// What it chose.
    pub preferences: Preferences,
    /// When what let it in ends; `None`: never.
    pub expires: Option<Instant>,
    /// Whether it is part of the gate: then what it sends is bounded there, and not once more here.
    pub is_own: bool,
    /// Whether it looks after the room: an admin of it, whoever runs the gate, or the gate where it learns rules. Nobody else pauses it.
    pub is_steward: bool,
}

/// RoomOutput of a room: all that is to be sent, before what is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomOutput {
    /// News for the record.
    Event(Event),
    /// An order for a connection.
    Transmit(Transmit),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// Send a message. When it is written, the room is told by `handle_written`.
    Send {
        /// Over which connection.
        connection: ConnectionId,
        /// The envelope.
        bytes: Bytes,
    },
    /// Close a connection: nothing that comes over it counts any more.
    Close {
        /// Which.
        connection: ConnectionId,
        /// Why.
        why: Closed,
    },
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closed {
    /// An admin put the participant out.
    Dismissed,
    /// The token has run out.
    Expired,
    /// Too many of its messages were refused.
    Misbehaved,
    /// The same participant connected again.
    Replaced,
    /// The room ends.
    RoomEnds,
    /// It did not read what was sent.
    SlowReader,
    /// What let it in holds no more.
    Withdrawn,
}

impl Closed {
    /// The code of the close frame (RFC 6455, 7.4).
    pub fn code(self) -> u16 {
        match self {
            Self::Dismissed => 4003,
            Self::Expired | Self::Misbehaved | Self::Withdrawn => 1008,
            Self::Replaced => 4009,
            Self::RoomEnds => 1001,
            Self::SlowReader => 1013,
        }
    }

    /// The text of the close frame: at most 123 bytes.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Dismissed => "an admin of this room has put you out",
            Self::Expired => "your token has expired: connect with a new one",
            Self::Misbehaved => "too many of your messages were refused: mend what their errors say and connect again",
            Self::Replaced => "the same participant has connected again: use one connection, or another id",
            Self::RoomEnds => "the room ends: connect again later",
            Self::SlowReader => "you read more slowly than the room speaks: connect again, or choose routing=directed",
            Self::Withdrawn => "what let you in has changed: connect again if you still may",
        }
    }

    /// Whether what still waits for the connection is to be dropped, so that the close frame gets through.
    pub fn drops_what_waits(self) -> bool {
        self == Self::SlowReader
    }
}

/// Something for the record, and for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What a participant may send was changed.
    CapabilitiesChanged(Changed),
    /// One is there.
    Joined {
        /// Who.
        id: ParticipantId,
        /// Over which connection.
        connection: ConnectionId,
        /// Whether it was there already, over another.
        again: bool,
    },
    /// One is not there any more.
    Left {
        /// Who.
        id: ParticipantId,
        /// Why it was closed; `None`: it went itself.
        why: Option<Closed>,
    },
    /// A message was passed on.
    Relayed {
        /// Whose.
        id: ParticipantId,
        /// The message as it came.
        bytes: Bytes,
        /// To how many connections.
        receivers: usize,
        /// How many of those that it names are not there.
        absent: usize,
    },
    /// A message went nowhere.
    Refused {
        /// Whose.
        id: ParticipantId,
        /// The `id` of the message, where it could be read.
        message: Option<String>,
        /// Why.
        why: Refusal,
    },
}

/// What an admin changes of what a participant may send (11.3). What is removed and added is added.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What it may send as well from now on.
    pub add: &'a [Pattern],
    /// What is taken away: patterns as they are listed, not what they cover.
    pub remove: &'a [Pattern],
    /// Who changes it.
    pub by: &'a str,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Whose.
    pub id: ParticipantId,
    /// Before.
    pub old: Capabilities,
    /// After.
    pub new: Capabilities,
    /// Who changed it.
    pub by: String,
}

/// Why a room does not do what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    /// There are no seats left.
    #[error("the room is full: it has {most} participants; try again when one has left, or raise its bound")]
    Full {
        /// The bound.
        most: usize,
    },
    /// Nobody of that id is there.
    #[error("there is no participant {id:?} in this room: look at who is present")]
    NotHere {
        /// The id.
        id: ParticipantId,
    },
    /// The capabilities would not be legal.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Changes for so many participants are remembered already.
    #[error("changed capabilities of {most} participants are remembered here, which is the bound: raise it")]
    Rulings {
        /// The bound.
        most: usize,
    },
}
