//! Why a message goes nowhere, as its sender is told: a code that stays, and a text that says what to do. The envelope that tells it is
//! not written here.

use std::time::Duration;

use json::JsonError;

/// Why a message was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is sent in the name of somebody else (MX-04).
    #[error("`from` is {given:?}, and this connection speaks for {own:?}: put that there")]
    From {
        /// Whose name it was.
        given: String,
        /// Whose it should have been.
        own: String,
    },
    /// A member is missing or wrong.
    #[error("`{member}` {why}")]
    Invalid {
        /// Which.
        member: &'static str,
        /// The rest of the sentence.
        why: &'static str,
    },
    /// No capability covers its kind (4.1).
    #[error("You lack capability for '{kind}'{}", propose(.kind))]
    Lacking {
        /// Its kind.
        kind: String,
    },
    /// Not one JSON object.
    #[error("the message cannot be read: {}; send one JSON object a message, with no key twice", told(.0))]
    NotJson(JsonError),
    /// Another version of the protocol, or another protocol.
    #[error("the protocol {given:?} is not spoken here: send `{wanted}`")]
    Protocol {
        /// What it said.
        given: String,
        /// What is spoken on its way in.
        wanted: &'static str,
    },
    /// More than this participant may send.
    #[error("too much at once: this message was not passed on; send it again in {} ms", .retry_after.as_millis())]
    RateLimited {
        /// After this long it would have gone through.
        retry_after: Duration,
    },
    /// Its kind is the gateway's own (4.1).
    #[error("You lack capability for '{kind}': only the gateway sends kinds that begin with `system` or `presence`")]
    Reserved {
        /// Its kind.
        kind: String,
    },
    /// Whom it would pause looks after the room, and its sender does not.
    #[error(
        "{id:?} looks after this room, and is paused by its admins and whoever runs the gate alone: leave it out of `to`, or ask one of them"
    )]
    Steward {
        /// The kind.
        kind: String,
        /// Whom it would pause.
        id: String,
    },
    /// Its capabilities cover the kind, but whom it names was paused by somebody who looks after the room.
    #[error(
        "{id:?} was paused by {by:?}, who looks after this room, and goes on when {by:?}, another of its admins or whoever runs the gate says \
         so: ask one of them"
    )]
    Held {
        /// The kind.
        kind: String,
        /// Who is paused.
        id: String,
        /// Who has paused it.
        by: String,
    },
    /// It is over the bound.
    #[error("a message has at most {most} bytes here, and this one has {size}: send less, or in parts")]
    TooLarge {
        /// The bound.
        most: usize,
        /// Its size.
        size: usize,
    },
}

impl Refusal {
    /// The word for it that programs go by. `capability_violation` is of the specification (3.5.2), the others are as its reference has them.
    pub fn code(&self) -> &'static str {
        match self {
            Self::From { .. } => "auth_violation",
            Self::Invalid { .. } | Self::NotJson(_) => "invalid_envelope",
            Self::Held { .. } | Self::Lacking { .. } | Self::Reserved { .. } | Self::Steward { .. } => "capability_violation",
            Self::Protocol { .. } => "unsupported_protocol",
            Self::RateLimited { .. } => "rate_limited",
            Self::TooLarge { .. } => "payload_too_large",
        }
    }

    /// The kind that its sender may not send.
    pub fn attempted_kind(&self) -> Option<&str> {
        match self {
            Self::Held { kind, .. } | Self::Lacking { kind } | Self::Reserved { kind } | Self::Steward { kind, .. } => Some(kind),
            Self::From { .. }
            | Self::Invalid { .. }
            | Self::NotJson(_)
            | Self::Protocol { .. }
            | Self::RateLimited { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// When the same message would go through; `None` where waiting does not help.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after } = self { Some(*retry_after) } else { None }
    }
}

/// What to do about a request that may not be made: propose it (3.2).
fn propose(kind: &str) -> String {
    match kind.strip_prefix("mcp/request:") {
        Some(rest) => format!("; propose it as 'mcp/proposal:{rest}', or ask an admin of this room for the capability"),
        None => "; ask an admin of this room for it".to_owned(),
    }
}

/// A key that stands twice can be as long as a message.
fn told(error: &JsonError) -> String {
    let text = error.to_string();
    if text.len() > 200 { text.chars().take(200).chain("...".chars()).collect() } else { text }
}
