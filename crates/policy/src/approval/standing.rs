//! An approval: subject, votes and standing. Moves are decided by the desk, not here.

use serde::{Deserialize, Serialize};

use super::challenge::Challenge;
use super::mode::Cause;

/// Prefix of a vote by a service.
pub(super) const SERVICE: &str = "service ";

/// The standing of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Not enough people have agreed.
    Pending,
    /// Enough have: the call may go out, once.
    Released,
    /// On its way out.
    Dispatched,
    /// Held in turn by a gate below, which has not made the call; or waiting for input that the server wants.
    Below,
    /// Went out and was answered.
    Done,
    Denied,
    /// Nobody said anything for too long.
    Expired,
    /// Withdrawn by the caller.
    Withdrawn,
    /// The subject changed.
    Void,
    /// The gate ended while the call was on its way: a person has to find out if the call took effect.
    OutcomeUnknown,
}

impl Standing {
    /// Tells if the approval can't move any more.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Released | Self::Dispatched | Self::Below)
    }

    /// Tells if the call has not gone out and still may.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Pending | Self::Released | Self::Below)
    }

    /// The word in records and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Released => "released",
            Self::Dispatched => "dispatched",
            Self::Below => "below",
            Self::Done => "done",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Void => "void",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

/// The end of a call that went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Answered,
    /// The server wants input before it goes on, and gave a state with this SHA-256: one request may come back with that state.
    Asked([u8; 32]),
    /// A gate below holds the call, and has not made it.
    HeldBelow,
    /// The call certainly never left.
    NotSent,
    /// The effect is not known.
    Unknown,
}

/// Somebody's agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub person: String,
    /// The key or service.
    pub by: String,
    /// When: Unix time, in seconds.
    pub at: u64,
    /// Fingerprint of the service's key, for a vote by a service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// SHA-256 of the signature, or of the token, in hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proof: String,
}

/// An approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The subject.
    pub challenge: Challenge,
    /// Causes for asking.
    pub causes: Vec<Cause>,
    /// The tool's annotation, as a raw JSON object, for people.
    pub annotation: String,
    pub standing: Standing,
    /// Time of the request: Unix time, in seconds.
    pub requested: u64,
    /// Time of the last move.
    pub since: u64,
    pub votes: Vec<Vote>,
    /// Reason of the denial, or the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The room of the request or proposal, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// SHA-256 of the only state with which the call may go on, after its server asked for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<[u8; 32]>,
    /// The caller waits for the outcome.
    #[serde(default)]
    pub attended: bool,
    /// The caller has heard the outcome.
    #[serde(default)]
    pub told: bool,
    /// Announced again shortly before its end.
    #[serde(default)]
    pub escalated: bool,
}

impl Vote {
    /// Tells if a service voted, not a key.
    pub(super) fn is_by_service(&self) -> bool {
        self.by.starts_with(SERVICE)
    }
}

impl Approval {
    /// Tells if the call may go out now. After its server asked for input, a call goes on only with the server's state.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.standing, Standing::Released | Standing::Below) && self.awaits.is_none()
    }

    /// Gives the id.
    pub fn id(&self) -> &str {
        &self.challenge.id
    }
}
