//! The form of `[audit]`. Checks no text.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of the record.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AuditForm {
    /// The record of calls and decisions.
    pub audit: Audit,
}

/// The record of calls and decisions: signed, and chained against unseen changes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    /// `false` records nothing. Default: `true`.
    pub enabled: Option<bool>,
    /// Directory of the record: absolute, below the home directory (`~/`), or relative to this file. Default: one for this
    /// configuration below `audit` in the state directory.
    #[schemars(example = "/var/lib/banyan/audit")]
    pub path: Option<At<String>>,
    /// The recorded part of arguments. Default: `shape`.
    pub arguments: Option<RecordedArguments>,
    /// Approximate size of the record: beyond, the oldest entries are taken away, once older than `keep_at_least`. Default: `256MiB`.
    #[schemars(example = "256MiB")]
    pub keep_size: Option<At<String>>,
    /// Least age of entries before removal. Default: a day, or a shorter `keep_for`.
    #[schemars(example = "1d")]
    pub keep_at_least: Option<At<String>>,
    /// Size at which calls are refused, until some entry is old enough to be taken away. Default: half of the disk's room for the record,
    /// `keep_size` at least and 256 times `keep_size` at most.
    #[schemars(example = "4GiB")]
    pub full_size: Option<At<String>>,
    /// Greatest age of entries. Default: any age, as long as there is room.
    #[schemars(example = "90d")]
    pub keep_for: Option<At<String>>,
}

/// The recorded part of arguments.
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
