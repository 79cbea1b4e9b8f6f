//! One approval: what it is about, who has agreed, and how it stands. What moves it is decided by the desk, not here.

use serde::{Deserialize, Serialize};

use super::challenge::Challenge;
use super::mode::Cause;

/// Begins what is said of a vote by the word of a service.
pub(super) const SERVICE: &str = "service ";

/// How an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Not enough people have agreed.
    Pending,
    /// Enough have: the call may go out, once.
    Released,
    /// It is going out.
    Dispatched,
    /// A gate below holds it in its turn, and has not made it; or its server wants input before it goes on.
    Below,
    /// It went out, and its answer came.
    Done,
    /// Somebody said no.
    Denied,
    /// Nobody said anything for too long.
    Expired,
    /// Its caller took it back.
    Withdrawn,
    /// What it is about changed.
    Void,
    /// The gate ended while it was going out: whether it took effect is for a person to find out.
    OutcomeUnknown,
}

impl Standing {
    /// Whether nothing can become of it any more.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Released | Self::Dispatched | Self::Below)
    }

    /// Whether it has not gone out and still may.
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

/// How a call that went out has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its answer came.
    Answered,
    /// Its server wants input before it goes on, and gave a state of this SHA-256: one request may come back with that.
    Asked([u8; 32]),
    /// A gate below holds it, and has not made it.
    HeldBelow,
    /// It certainly never left.
    NotSent,
    /// Whether it took effect is not known.
    Unknown,
}

/// Somebody has agreed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// Who.
    pub person: String,
    /// By which key or service.
    pub by: String,
    /// When: Unix time, in seconds.
    pub at: u64,
    /// The fingerprint of the key of the service, where it is by one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// SHA-256 of the signature, or of the token, in hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proof: String,
}

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// What is agreed to.
    pub challenge: Challenge,
    /// Why somebody has to.
    pub causes: Vec<Cause>,
    /// What is known of the tool, as a raw JSON object, for people.
    pub annotation: String,
    /// How it stands.
    pub standing: Standing,
    /// When it was asked for: Unix time, in seconds.
    pub requested: u64,
    /// When it came to stand like this.
    pub since: u64,
    /// Who has agreed so far.
    pub votes: Vec<Vote>,
    /// Why somebody said no, or what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The room in which it is asked for or proposed, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// The only state with which it may go on, by its SHA-256, where its server asked for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<[u8; 32]>,
    /// Whether its caller waits for it at present.
    #[serde(default)]
    pub attended: bool,
    /// Whether its caller has heard how it ended.
    #[serde(default)]
    pub told: bool,
    /// Whether it was told of shortly before its end.
    #[serde(default)]
    pub escalated: bool,
}

impl Vote {
    /// Whether a service said so, and not a key.
    pub(super) fn is_by_service(&self) -> bool {
        self.by.starts_with(SERVICE)
    }
}

impl Approval {
    /// Whether it may go out now. One whose server wants input goes on only with the state that it gave.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.standing, Standing::Released | Standing::Below) && self.awaits.is_none()
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.challenge.id
    }
}
