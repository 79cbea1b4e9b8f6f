//! The turn to start the gate of a configuration: no two processes have it at once, so that no two gates start. Starts nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::{document, places};

/// A process's turn, until dropped.
pub(crate) struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for the turn to start the gate of `file`.
    pub(crate) async fn wait_for(file: &Path) -> Result<Self, Failure> {
        let dir = places::runtime_dir()?;
        let failed = |error: std::io::Error| document::failed(&dir, "written", &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
        let path = dir.join(format!("start-{}.lock", name(file)));
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
        let locked = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let lock = locked.map_err(|error| Failure::Failed(error.to_string()))?.map_err(failed)?;
        Ok(Self { _lock: lock })
    }
}

/// Names the files of the gate of `file`: equal for all spellings of the path.
pub(crate) fn name(file: &Path) -> String {
    let path = canonical(file);
    Sha256::digest(path.as_os_str().as_encoded_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Resolves symbolic links of an existing path, and makes any other path absolute.
pub(crate) fn canonical(file: &Path) -> std::path::PathBuf {
    fs::canonicalize(file).or_else(|_| std::path::absolute(file)).unwrap_or_else(|_| file.to_owned())
}
