//! Turns with a configuration: to start its gate, and to edit its file. No two processes have the same turn at once. Starts and edits nothing.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
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

    /// Waits for the turn to edit `file`. The lock is on the directory of the file, equal for every user and every run. Where nothing can
    /// be locked, nobody waits for anybody.
    pub(crate) fn to_edit(file: &Path) -> Result<Option<Self>, Failure> {
        let file = canonical(file);
        let Some(lock) = file.ancestors().skip(1).find_map(|above| File::open(above).ok()) else { return Ok(None) };
        let until = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(Self { _lock: lock })),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if Instant::now() > until => {
                    let file = file.display();
                    return Err(Failure::Refused(format!(
                        "another command edits {file}\n  let it end, then try again; nothing is changed"
                    )));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_file_has_the_same_turn() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("own/banyan.toml"), dir.path().join("link.toml"));
        fs::create_dir(dir.path().join("own")).unwrap();
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let turn = Turn::to_edit(&link).unwrap().unwrap();
        let other = File::open(dir.path().join("own")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(turn);
        other.try_lock().unwrap();
    }
}
