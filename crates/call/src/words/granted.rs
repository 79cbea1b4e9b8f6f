//! Rights granted to the holder of a verified token. Does not verify.

use std::collections::BTreeSet;

use serde::Deserialize;

/// Rights granted by a token. Groups and roles bear the name of the issuer, so that no issuer can grant another's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRights {
    pub groups: BTreeSet<String>,
    pub roles: BTreeSet<String>,
    pub scopes: BTreeSet<String>,
    /// Place in rooms.
    pub place: Place,
}

/// Place in rooms by a token, in the spelling of the reference implementation of MCPx; not interpreted here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// Participant.
    #[serde(rename = "participantId")]
    pub participant: Option<serde_json::Value>,
    /// Rooms.
    pub topic: Option<serde_json::Value>,
    /// Messages that may be sent.
    pub capabilities: Option<serde_json::Value>,
    /// Routing of messages to the participant.
    pub routing: Option<serde_json::Value>,
    /// Return of the participant's own messages.
    pub echo: Option<serde_json::Value>,
}
