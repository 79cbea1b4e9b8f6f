//! The sections `[[token]]`, as people write them. Checks no hash.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of bearer tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TokenForm {
    /// Who may call: one entry for each bearer token. `banyan token add NAME` makes one.
    pub token: Vec<Token>,
}

/// A bearer token, kept as its hash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Token {
    /// The name under which its holder appears in logs and records.
    #[schemars(example = &"ci")]
    pub name: At<String>,
    /// SHA-256 of the token, as 64 hexadecimal digits. The token itself is written nowhere.
    pub sha256: At<String>,
    /// The profile that its holder always gets.
    pub profile: Option<At<String>>,
    /// Whether its holder may read `/metrics`. Default: `false`.
    #[serde(default)]
    pub metrics: bool,
}
