//! The sections `[[token]]`, as people write them. Checks no hash.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of bearer tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TokenForm {
    /// Bearer tokens of callers. `banyan token add NAME` makes a token.
    pub token: Vec<Token>,
}

/// A bearer token, kept as a hash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Token {
    /// The holder's name in logs and records.
    #[schemars(example = &"ci")]
    pub name: At<String>,
    /// SHA-256 of the token, as 64 hexadecimal digits. The token itself is written nowhere.
    pub sha256: At<String>,
    /// The holder's profile.
    pub profile: Option<At<String>>,
    /// `true`: the holder may read `/metrics`. Default: `false`.
    #[serde(default)]
    pub metrics: bool,
}
