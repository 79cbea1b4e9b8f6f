//! What comes of a call in a room, and what is to be done. Decides nothing.

use bytes::Bytes;

use crate::sitting::CallId;
use crate::voice::Unsaid;

/// What a participant answered, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The raw `error` object.
    Error(Bytes),
    /// The raw `result`, an object.
    Result(Bytes),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The call was not made.
    #[error("it is not there")]
    Absent,
    /// The call was not made.
    #[error("{most} calls are under way at it, which is the limit: wait for one to end")]
    Busy {
        /// How many may be.
        most: usize,
    },
    /// Whoever was called does not go on, for this reason, which may be empty.
    #[error("it has given the call up{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    GivenUp(String),
    /// Whether it took effect is not known.
    #[error("it has left while the call was under way")]
    Left,
    /// The room did not pass the call on.
    #[error("the room refused the call: {0}")]
    Refused(String),
    /// The call was not made.
    #[error("the call takes {bytes} bytes, and messages of the room at most {most} (`message_size` in its `limits`)")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// An answer came and can't be read.
    #[error("its answer can't be read: {0}")]
    Unreadable(String),
    /// The call can't be said.
    #[error(transparent)]
    Unsaid(Unsaid),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A call is over.
    Answered {
        /// Which.
        call: CallId,
        /// What came of it.
        answer: Answered,
    },
    /// A call is over, and there is no answer.
    Failed {
        /// Which.
        call: CallId,
        /// Why.
        why: Failure,
    },
    /// Whoever is called says something meanwhile: `params` is a raw object.
    Notified {
        /// During which call.
        call: CallId,
        /// The method.
        method: String,
        /// The raw params.
        params: Bytes,
    },
    /// What a participant offers is this from now on: raw definitions of tools.
    Offered {
        /// Who.
        id: String,
        /// All of them; empty: nothing.
        tools: Vec<Bytes>,
    },
    /// Send a message.
    Send(Bytes),
}
