//! Joining by MEW clients: without headers, by a first message with space, participant and token; and the error for a client not in a room.
//! Does not judge tokens.

use std::time::SystemTime;

use bytes::Bytes;
use json::{Duplicates, JsonError, Members};

use super::PROTOCOL;
use crate::draft::{Draft, DraftHead, Ids};
use crate::name::GATEWAY;

/// Content of the first message.
#[derive(Clone, PartialEq, Eq)]
pub struct Join {
    /// The room.
    pub space: Option<String>,
    /// `None`: the token decides.
    pub participant: Option<String>,
    /// A bearer token.
    pub token: Option<String>,
}

/// Reasons for refusing a first message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJoined {
    #[error(
        "the first message asks to join: send {{\"type\":\"join\",\"space\":\"NAME\",\"participantId\":\"YOU\",\"token\":\"TOKEN\"}}, or the \
         token as `Authorization: Bearer TOKEN`"
    )]
    Other,
    #[error("the first message can't be read ({0}): send one JSON object with no key twice")]
    Unreadable(JsonError),
}

impl Join {
    /// Reads a first message.
    ///
    /// # Errors
    /// The message does not ask to join.
    pub fn read(text: &[u8]) -> Result<Self, NotJoined> {
        let members = Members::parse(text, Duplicates::RefuseDeep).map_err(NotJoined::Unreadable)?;
        if !is(&members) {
            return Err(NotJoined::Other);
        }
        // Some write an envelope of it.
        let payload = members.object("payload").unwrap_or_default();
        let of = |name| members.str(name).or_else(|| payload.str(name)).map(std::borrow::Cow::into_owned);
        Ok(Self { space: of("space"), participant: of("participantId").or_else(|| of("participant_id")), token: of("token") })
    }
}

/// Recognises a request to join.
pub(super) fn is(members: &Members<'_>) -> bool {
    members.str("kind").as_deref() == Some("system/join")
        || (!members.has("kind") && !members.has("protocol") && members.str("type").as_deref() == Some("join"))
}

/// Writes an error for a client outside of the room. No two may have one `seed`.
pub fn error_envelope(at: SystemTime, seed: u128, code: &str, message: &str) -> Bytes {
    let id = Ids::new(seed).next();
    let mut draft =
        Draft::begin_in(PROTOCOL, DraftHead { id: &id, at, from: GATEWAY, to: &[], kind: "system/error", correlation_id: None });
    draft.raw("\"error\":").text(code).raw(",\"message\":").text(message);
    draft.finish()
}
