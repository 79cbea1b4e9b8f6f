//! What is recorded, with every default filled in. Where that is on the disk is not looked up here.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::file::RecordedArguments;

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
}

/// On, in the state directory, without values, and no larger than a photograph album.
impl Default for Audit {
    fn default() -> Self {
        Self { enabled: true, path: None, arguments: RecordedArguments::default(), keep_bytes: 256 << 20, keep_for: None }
    }
}
