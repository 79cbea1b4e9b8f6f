//! The record's settings, every default filled in. Does not look at the disk.

use std::path::PathBuf;
use std::time::Duration;

use super::file::RecordedArguments;

/// Contents, place and age of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    pub enabled: bool,
    /// `None`: the gate's own place in the state directory.
    pub path: Option<PathBuf>,
    pub arguments: RecordedArguments,
    /// About how much is kept, in bytes.
    pub keep_bytes: u64,
    /// Greatest age of entries; `None`: any.
    pub keep_for: Option<Duration>,
    /// Least age of entries before removal.
    pub keep_at_least: Duration,
    /// Size at which calls are refused, in bytes; `None`: a part of the disk.
    pub full_bytes: Option<u64>,
}

/// Default of the least age.
pub const AT_LEAST: Duration = Duration::from_secs(24 * 60 * 60);

/// On, in the state directory, without values, and no larger than a photograph album.
impl Default for Audit {
    fn default() -> Self {
        Self {
            enabled: true,
            path: None,
            arguments: RecordedArguments::default(),
            keep_bytes: 256 << 20,
            keep_for: None,
            keep_at_least: AT_LEAST,
            full_bytes: None,
        }
    }
}
