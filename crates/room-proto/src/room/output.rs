//! Inputs and outputs of a room. Carries nothing out.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::also::Also;
use crate::capability::{Capabilities, Pattern, PatternError};
use crate::name::{ConnectionId, ParticipantId};
use crate::refusal::Refusal;

/// Choice of received messages (MCPx v0.1, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// All messages of the room.
    #[default]
    All,
    /// Messages addressed to the participant or to everybody.
    Directed,
}

/// Choices of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preferences {
    pub routing: Routing,
    /// Returns the participant's own messages, as far as the routing wants them. Messages to oneself always come back.
    pub echo: bool,
    /// Wanted classes beyond MCPx v0.1.
    pub also: Also,
    /// Number of past messages wanted on joining, where the room keeps a history.
    pub history: usize,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { routing: Routing::All, echo: true, also: Also::default(), history: 0 }
    }
}

/// Choice of messages for a participant, as far as somebody has chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hearing {
    pub routing: Option<Routing>,
    pub echo: Option<bool>,
}

impl Hearing {
    /// Fills open choices.
    #[must_use]
    pub fn or(self, otherwise: Self) -> Self {
        Self { routing: self.routing.or(otherwise.routing), echo: self.echo.or(otherwise.echo) }
    }

    /// Changes preferences as far as somebody has chosen.
    #[must_use]
    pub fn over(self, preferences: Preferences) -> Preferences {
        let (routing, echo) = (self.routing.unwrap_or(preferences.routing), self.echo.unwrap_or(preferences.echo));
        Preferences { routing, echo, ..preferences }
    }
}

/// A participant admitted to the room.
#[derive(Debug, Clone)]
pub struct Newcomer {
    pub id: ParticipantId,
    /// Capabilities of the token or the room. The room adds changes by admins.
    pub capabilities: Capabilities,
    pub preferences: Preferences,
    /// End of the admission; `None`: never.
    pub expires: Option<Instant>,
    /// Marks a part of the gate, whose messages are bounded there and not once more here.
    pub is_own: bool,
    /// Marks a steward: an admin of the room, the operator of the gate, or the gate where rules are learnt. Only stewards pause a steward.
    pub is_steward: bool,
}

/// Output of a room: everything to be sent, before everything to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomOutput {
    /// News for the record.
    Event(Event),
    /// An order for a connection.
    Transmit(Transmit),
}

/// An order for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// Send a message, and report by `handle_written`.
    Send {
        connection: ConnectionId,
        /// The envelope.
        bytes: Bytes,
    },
    /// Close a connection: further messages do not count.
    Close { connection: ConnectionId, why: CloseReason },
}

/// Reasons for closing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// An admin put the participant out.
    Dismissed,
    /// The token has run out.
    Expired,
    /// Too many messages were refused.
    Misbehaved,
    /// The same participant connected again.
    Replaced,
    RoomEnds,
    SlowReader,
    /// The admission is void.
    Withdrawn,
}

impl CloseReason {
    /// Gives the code of the close frame (RFC 6455, 7.4).
    pub fn code(self) -> u16 {
        match self {
            Self::Dismissed => 4003,
            Self::Expired | Self::Misbehaved | Self::Withdrawn => 1008,
            Self::Replaced => 4009,
            Self::RoomEnds => 1001,
            Self::SlowReader => 1013,
        }
    }

    /// Gives the text of the close frame: at most 123 bytes.
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

    /// Tells whether queued messages are dropped, so that the close frame gets through.
    pub fn drops_what_waits(self) -> bool {
        self == Self::SlowReader
    }
}

/// News for the record and for observers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    CapabilitiesChanged(ChangedCapabilities),
    /// A participant is there.
    Joined {
        id: ParticipantId,
        connection: ConnectionId,
        /// Marks a participant who was there already, over another connection.
        again: bool,
    },
    /// A participant is gone.
    Left {
        id: ParticipantId,
        /// `None`: the participant left by itself.
        why: Option<CloseReason>,
    },
    /// A message was passed on.
    Relayed {
        /// The sender.
        id: ParticipantId,
        bytes: Bytes,
        /// Number of connections.
        receivers: usize,
        /// Number of absent addressees.
        absent: usize,
    },
    /// A message was not passed on.
    Refused {
        /// The sender.
        id: ParticipantId,
        /// The `id` of the message, where legible.
        message: Option<String>,
        why: Refusal,
    },
}

/// An admin's change of capabilities (11.3). A pattern both removed and added is added.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub add: &'a [Pattern],
    /// Patterns as listed; kinds covered by them do not matter.
    pub remove: &'a [Pattern],
    pub by: &'a str,
}

/// A change of capabilities that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCapabilities {
    pub id: ParticipantId,
    pub old: Capabilities,
    pub new: Capabilities,
    pub by: String,
}

/// Choices of a participant after an order to change the hearing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HearingOutcome {
    pub preferences: Preferences,
    /// Marks other choices than before.
    pub is_changed: bool,
}

/// Reasons of a room for refusing an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    #[error("the room is full: it has {most} participants; try again when one has left, or raise its bound")]
    Full { most: usize },
    #[error("there is no participant {id:?} in this room: look at who is present")]
    NotHere { id: ParticipantId },
    /// The capabilities would not be legal.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// An admin has put the participant out.
    #[error("an admin of this room has put {id:?} out: come again in {} s", retry_after.as_secs() + 1)]
    PutOut { id: ParticipantId, retry_after: Duration },
    /// The name goes to and fro between connections.
    #[error("{id:?} is here, and has connected anew again and again: use one connection, or another id, and connect again in {} s", retry_after.as_secs() + 1)]
    Reconnections { id: ParticipantId, retry_after: Duration },
    #[error("the participant sends too much: try again in {} ms", retry_after.as_millis() + 1)]
    RateLimited { retry_after: Duration },
    /// The room remembers changes for too many participants.
    #[error("changed capabilities of {most} participants are remembered here, which is the bound: raise it")]
    Rulings { most: usize },
}
