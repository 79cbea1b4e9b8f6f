//! Everything that a signed token grants to its holder, once it was verified. Verifying is not done here.

use std::collections::BTreeSet;

use serde::Deserialize;

/// What a token says that its holder has. Groups and roles bear the name of the issuer, so that none can speak of another's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    pub groups: BTreeSet<String>,
    pub roles: BTreeSet<String>,
    pub scopes: BTreeSet<String>,
    /// Its place in rooms.
    pub place: Place,
}

/// What a token says of its holder's place in rooms, as the reference implementation of MCPx spells it: not looked at here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// As whom it is there.
    #[serde(rename = "participantId")]
    pub participant: Option<serde_json::Value>,
    /// In which rooms.
    pub topic: Option<serde_json::Value>,
    /// What it may send.
    pub capabilities: Option<serde_json::Value>,
}
