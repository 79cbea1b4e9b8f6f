//! Events of a participant. Does not show them.

use bytes::Bytes;
use json::Members;

use super::hold::Mismatch;
use super::pause::Pause;
use crate::chain::{ChainId, MessageRole};
use crate::envelope::Envelope;
use crate::refusal::Refusal;

/// An event of the room, as seen by a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A raw request that waits for this participant's answer.
    Asked(Bytes),
    /// A message dropped for a mismatch.
    Dropped {
        from: String,
        why: Mismatch,
    },
    Expired(ChainId),
    Joined {
        id: String,
    },
    Left {
        id: String,
    },
    /// A proposal, a request, a response, or the end of a proposal.
    Linked {
        found: MessageRole,
        from: String,
        /// The raw payload.
        payload: Bytes,
    },
    /// This participant is to stop acting alone for a while.
    Paused(Pause),
    /// The gateway refused a message.
    Refused {
        /// A stable word.
        code: String,
        /// The reason for people.
        message: String,
        /// Id of the message.
        of: Option<String>,
    },
    /// This participant may go on.
    Resumed {
        /// `None`: the pause was over.
        by: Option<String>,
    },
    Said(ChatMessage),
    /// Not an envelope.
    Unread(Refusal),
    /// This participant was let in, or got other capabilities.
    Welcomed,
}

/// A message of chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    pub id: String,
    pub from: String,
    /// Empty: everybody.
    pub to: Vec<String>,
    pub text: String,
    /// Id of the message under discussion.
    pub about: Option<String>,
}

impl ChatMessage {
    pub(super) fn from_envelope(envelope: &Envelope<'_>) -> Self {
        Self {
            id: envelope.id.to_string(),
            from: envelope.from.to_string(),
            to: envelope.to.iter().map(ToString::to_string).collect(),
            text: Members::again(envelope.payload).str("text").unwrap_or_default().into_owned(),
            about: envelope.correlation_id.as_ref().map(ToString::to_string),
        }
    }
}
