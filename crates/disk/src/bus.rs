//! News among gates, carried by a file that every teller touches. Does not watch the file, since one watch for all files of a gate is
//! enough.

use std::io::Write;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use store::Bus;
use tokio::sync::Notify;

/// Length at which the file begins anew, in bytes.
const LONGEST: u64 = 4096;

/// News of decisions about definitions.
#[derive(Debug)]
pub struct DiskBus {
    file: PathBuf,
    rings: Notify,
}

impl DiskBus {
    /// News of the gates of a state directory. The file has a directory of its own, since a watch reports every write in its directory.
    pub(crate) fn of_looks(state_dir: &Path) -> Self {
        Self { file: state_dir.join("looks").join("last"), rings: Notify::new() }
    }

    /// File to watch, if its directory can be made.
    pub fn watched_file(&self) -> Option<PathBuf> {
        std::fs::create_dir_all(self.file.parent()?).ok()?;
        Some(self.file.clone())
    }

    /// Notes a change of the file.
    pub fn file_changed(&self) {
        self.rings.notify_one();
    }

    fn touch(&self) -> std::io::Result<()> {
        self.file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        // The length changes each time, since some file systems keep the time of a change to the second only.
        let mut touched = std::fs::OpenOptions::new().append(true).create(true).open(&self.file)?;
        if touched.metadata()?.len() >= LONGEST {
            touched.set_len(0)?;
        }
        touched.write_all(b".")
    }
}

impl Bus for DiskBus {
    fn tell(&self) {
        self.rings.notify_one();
        if let Err(error) = self.touch() {
            tracing::debug!(%error, "other gates hear within a minute of what was looked at");
        }
    }

    fn heard(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.rings.notified())
    }
}
