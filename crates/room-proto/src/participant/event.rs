//! What a participant hears of. How it is shown is not decided here.

use bytes::Bytes;
use json::Members;

use super::hold::Mismatch;
use super::pause::Pause;
use crate::chain::{ChainId, Found};
use crate::envelope::Envelope;
use crate::refusal::Refusal;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request that wants an answer of this participant: the message as it came.
    Asked(Bytes),
    /// A message is dropped: it does not hold.
    Dropped {
        /// Whose it is.
        from: String,
        /// Why.
        why: Mismatch,
    },
    /// A proposal has expired.
    Expired(ChainId),
    /// Another is there.
    Joined {
        /// Who.
        id: String,
    },
    /// Another is not there any more.
    Left {
        /// Who.
        id: String,
    },
    /// A proposal, a request, a response, or the end of a proposal.
    Linked {
        /// What it is to a chain.
        found: Found,
        /// Whose it is.
        from: String,
        /// Its raw payload.
        payload: Bytes,
    },
    /// This participant is to do nothing by itself for a while.
    Paused(Pause),
    /// The gateway has refused a message.
    Refused {
        /// The word for why.
        code: String,
        /// The same for people.
        message: String,
        /// The id of the message.
        of: Option<String>,
    },
    /// This participant may go on.
    Resumed {
        /// Who says so; `None`: the pause was over.
        by: Option<String>,
    },
    /// Somebody said something.
    Said(Said),
    /// What came is no envelope.
    Unread(Refusal),
    /// This participant was let in, or what it may send was changed.
    Welcomed,
}

/// A message of chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its id.
    pub id: String,
    /// Who says it.
    pub from: String,
    /// To whom; empty: to everybody.
    pub to: Vec<String>,
    /// What.
    pub text: String,
    /// The message that it is about.
    pub about: Option<String>,
}

impl Said {
    pub(super) fn of(envelope: &Envelope<'_>) -> Self {
        Self {
            id: envelope.id.to_string(),
            from: envelope.from.to_string(),
            to: envelope.to.iter().map(ToString::to_string).collect(),
            text: Members::again(envelope.payload).str("text").unwrap_or_default().into_owned(),
            about: envelope.correlation_id.as_ref().map(ToString::to_string),
        }
    }
}
