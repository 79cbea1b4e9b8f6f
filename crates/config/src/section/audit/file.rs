//! The section `[audit]`, as people write it. Does not check what the texts say.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of the record.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AuditForm {
    /// The record of what was called and decided.
    pub audit: Audit,
}

/// The record of what was called and decided: signed, and chained so that nothing in it can be changed unseen.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    /// `false` records nothing. Default: `true`.
    pub enabled: Option<bool>,
    /// Directory of the record: absolute, below the home directory (`~/`), or relative to this file. Default: one for this
    /// configuration below `audit` in the state directory.
    #[schemars(example = "/var/lib/banyan/audit")]
    pub path: Option<At<String>>,
    /// What is recorded of arguments. Default: `shape`.
    pub arguments: Option<RecordedArguments>,
    /// About how much is kept: beyond it, the oldest entries are taken away, once they are older than `keep_at_least`. Default: `256MiB`.
    #[schemars(example = "256MiB")]
    pub keep_size: Option<At<String>>,
    /// Entries younger than this are never taken away. Default: a day, or `keep_for` where that is shorter.
    #[schemars(example = "1d")]
    pub keep_at_least: Option<At<String>>,
    /// Beyond this size calls are refused, until something is old enough to be taken away. Default: sixteen times `keep_size`.
    #[schemars(example = "4GiB")]
    pub full_size: Option<At<String>>,
    /// Entries older than this are taken away. Default: however old, as long as they fit.
    #[schemars(example = "90d")]
    pub keep_for: Option<At<String>>,
}

/// What is recorded of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordedArguments {
    /// SHA-256 of their canonical form (RFC 8785).
    Hash,
    /// The hash, and types, lengths and keys without a value.
    #[default]
    Shape,
    /// The hash, the shape and the arguments themselves, secrets in them included.
    Full,
}
