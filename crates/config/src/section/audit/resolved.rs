//! What is recorded, with every default filled in. Where that is on the disk is not looked up here.

use std::path::PathBuf;
use std::time::Duration;

use super::file::RecordedArguments;

/// What is recorded, where, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Whether anything is.
    pub enabled: bool,
    /// Where; `None`: in a place of the gate's own in the state directory.
    pub path: Option<PathBuf>,
    /// What of arguments.
    pub arguments: RecordedArguments,
    /// About how much is kept, in bytes.
    pub keep_bytes: u64,
    /// How long at most; `None`: however old.
    pub keep_for: Option<Duration>,
    /// Least age at which entries may be taken away.
    pub keep_at_least: Duration,
    /// Size at which calls are refused, in bytes.
    pub full_bytes: u64,
}

/// Factor from the size that is kept to the size of a full record.
pub const FULL: u64 = 16;
/// Default of the least age.
pub const AT_LEAST: Duration = Duration::from_secs(24 * 60 * 60);

/// On, in the state directory, without values, and no larger than a photograph album.
impl Default for Audit {
    fn default() -> Self {
        let keep_bytes = 256 << 20;
        Self {
            enabled: true,
            path: None,
            arguments: RecordedArguments::default(),
            keep_bytes,
            keep_for: None,
            keep_at_least: AT_LEAST,
            full_bytes: keep_bytes * FULL,
        }
    }
}
