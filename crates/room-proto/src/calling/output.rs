//! Results of calls in a room, and work for the driver. Decides nothing.

use bytes::Bytes;

use super::list_kind::ListKind;
use crate::sitting::CallId;
use crate::voice::SpeechError;

/// A participant's answer, as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAnswer {
    /// The raw `error` object.
    Error(Bytes),
    /// The raw `result` object.
    Result(Bytes),
}

/// Reasons for a missing answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The participant is not there; the call was not made.
    #[error("it is not there")]
    Absent,
    /// The call was not made.
    #[error("{most} calls are under way at it, which is the limit: wait for one to end")]
    Busy { most: usize },
    /// The called participant gave up, with a reason, which may be empty.
    #[error("it has given the call up{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    GivenUp(String),
    /// The effect of the call is unknown.
    #[error("it has left while the call was under way")]
    Left,
    /// The room did not pass the call on.
    #[error("the room refused the call: {0}")]
    Refused(String),
    /// The call was not made.
    #[error("the call takes {bytes} bytes, and messages of the room at most {most} (`message_size` in its `limits`)")]
    TooLong { bytes: usize, most: usize },
    #[error("its answer can't be read: {0}")]
    Unreadable(String),
    /// The gate may not say the call.
    #[error(transparent)]
    Unsaid(SpeechError),
}

/// Work for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The end of a call.
    Answered {
        call: CallId,
        answer: CallAnswer,
    },
    /// The end of a call without an answer.
    Failed {
        call: CallId,
        why: Failure,
    },
    /// A notification of the called participant during the call.
    Notified {
        call: CallId,
        method: String,
        /// A raw object.
        params: Bytes,
    },
    /// New list of a participant's tools, prompts, resources or templates: raw definitions.
    Offered {
        id: String,
        kind: ListKind,
        /// Complete list; empty: nothing of the kind.
        entries: Vec<Bytes>,
    },
    Send(Bytes),
}
