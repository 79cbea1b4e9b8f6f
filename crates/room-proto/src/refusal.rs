//! Refusals of messages, as their senders see them: a stable code, and a text with advice. Does not write the envelope.

use std::time::Duration;

use json::JsonError;

/// Reasons for refusing a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The message bears another sender's name (MX-04).
    #[error("`from` is {given:?}, and this connection speaks for {own:?}: put that there")]
    From {
        given: String,
        /// The name of the connection.
        own: String,
    },
    /// A member is missing or wrong.
    #[error("`{member}` {why}")]
    Invalid {
        member: &'static str,
        /// The rest of the sentence.
        why: &'static str,
    },
    /// No capability covers the kind (4.1).
    #[error("You lack capability for '{kind}'{}", propose(.kind))]
    Lacking { kind: String },
    /// The text is not one JSON object.
    #[error("the message cannot be read: {}; send one JSON object a message, with no key twice", shortened(.0))]
    NotJson(JsonError),
    /// Another version of the protocol, or another protocol.
    #[error("the protocol {given:?} is not spoken here: send `{wanted}`")]
    Protocol { given: String, wanted: &'static str },
    /// The participant sends too much.
    #[error("too much at once: this message was not passed on; send it again in {} ms", .retry_after.as_millis())]
    RateLimited {
        /// Time until the message would pass.
        retry_after: Duration,
    },
    /// The kind is the gateway's own (4.1).
    #[error("You lack capability for '{kind}': only the gateway sends kinds that begin with `system` or `presence`")]
    Reserved { kind: String },
    /// The sender would pause a steward of the room without being one.
    #[error(
        "{id:?} looks after this room, and is paused by its admins and whoever runs the gate alone: leave it out of `to`, or ask one of them"
    )]
    Steward {
        kind: String,
        /// Id of the steward.
        id: String,
    },
    /// The sender has the capability, but a steward paused the addressee.
    #[error(
        "{id:?} was paused by {by:?}, who looks after this room, and goes on when {by:?}, another of its admins or whoever runs the gate says \
         so: ask one of them"
    )]
    Held {
        kind: String,
        /// Id of the paused participant.
        id: String,
        /// Id of the pausing steward.
        by: String,
    },
    #[error("a message has at most {most} bytes here, and this one has {size}: send less, or in parts")]
    TooLarge { most: usize, size: usize },
}

impl Refusal {
    /// Gives the word for programs. `capability_violation` comes from the specification (3.5.2), the others from its reference
    /// implementation.
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

    /// Gives the forbidden kind.
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

    /// Gives the time until the same message would pass; `None`: waiting does not help.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after } = self { Some(*retry_after) } else { None }
    }
}

/// Advises to propose a forbidden request (3.2).
fn propose(kind: &str) -> String {
    match kind.strip_prefix("mcp/request:") {
        Some(rest) => format!("; propose it as 'mcp/proposal:{rest}', or ask an admin of this room for the capability"),
        None => "; ask an admin of this room for it".to_owned(),
    }
}

/// Cuts the text of an error: a duplicate key can be as long as a message.
fn shortened(error: &JsonError) -> String {
    let text = error.to_string();
    if text.len() > 200 { text.chars().take(200).chain("...".chars()).collect() } else { text }
}
