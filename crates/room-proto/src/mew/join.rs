//! How clients of MEW come in: by a first message that names the space, who they are and their token, for they send no header; and how they
//! are told that they don't. Whether a token is good is not known here.

use std::time::SystemTime;

use bytes::Bytes;
use json::{Duplicates, JsonError, Members};

use super::PROTOCOL;
use crate::draft::{About, Draft, Ids};
use crate::name::GATEWAY;

/// What the first message says.
#[derive(Clone, PartialEq, Eq)]
pub struct Join {
    /// Which space: a room.
    pub space: Option<String>,
    /// As whom; `None`: the token says.
    pub participant: Option<String>,
    /// A bearer token.
    pub token: Option<String>,
}

/// Why a first message lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJoined {
    /// It is something else.
    #[error(
        "the first message asks to join: send {{\"type\":\"join\",\"space\":\"NAME\",\"participantId\":\"YOU\",\"token\":\"TOKEN\"}}, or the \
         token as `Authorization: Bearer TOKEN`"
    )]
    Other,
    /// It can't be read.
    #[error("the first message can't be read ({0}): send one JSON object with no key twice")]
    Unreadable(JsonError),
}

impl Join {
    /// Reads a first message.
    ///
    /// # Errors
    /// It is none.
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

/// Whether a message asks to join.
pub(super) fn is(members: &Members<'_>) -> bool {
    members.str("kind").as_deref() == Some("system/join")
        || (!members.has("kind") && !members.has("protocol") && members.str("type").as_deref() == Some("join"))
}

/// What somebody is told who is not in a room. `seed`: no two may be the same.
pub fn told(at: SystemTime, seed: u128, code: &str, message: &str) -> Bytes {
    let id = Ids::new(seed).next();
    let mut draft = Draft::begin_in(PROTOCOL, About { id: &id, at, from: GATEWAY, to: &[], kind: "system/error", correlation_id: None });
    draft.raw("\"error\":").text(code).raw(",\"message\":").text(message);
    draft.end()
}
