//! Turns with a configuration: to start its gate, and to edit its file. No two processes have the same turn at once. Starts and edits nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::{document, places};

/// Longest wait for a command that edits the same file, and time between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// A process's turn, until dropped.
pub(crate) struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for the turn to start the gate of `file`.
    pub(crate) async fn wait_for(file: &Path) -> Result<Self, Failure> {
        let dir = places::runtime_dir()?;
        let failed = |error: std::io::Error| document::failed(&dir, "written", &error);
        let lock = opened(&dir, "start", file).map_err(failed)?;
        let locked = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let lock = locked.map_err(|error| Failure::Failed(error.to_string()))?.map_err(failed)?;
        Ok(Self { _lock: lock })
    }

    /// Waits for the turn to edit `file`. Where no lock can be made, nobody waits for anybody.
    pub(crate) fn to_edit(file: &Path) -> Result<Option<Self>, Failure> {
        let Ok(lock) = opened(&places::runtime_dir()?, "edit", file) else { return Ok(None) };
        let until = Instant::now() + PATIENCE;
        while lock.try_lock().is_err() {
            if Instant::now() > until {
                let file = file.display();
                return Err(Failure::Refused(format!("another command edits {file}\n  let it end, then try again; nothing is changed")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(Some(Self { _lock: lock }))
    }
}

fn opened(dir: &Path, what: &str, file: &Path) -> std::io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(format!("{what}-{}.lock", name(file)));
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
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
