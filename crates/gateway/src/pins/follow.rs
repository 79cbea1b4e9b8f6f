//! What somebody looked at by another gate of the same state directory, or by none: it holds here too. Nothing is decided here: lists that it
//! concerns are fetched and judged anew.
//!
//! Whoever writes a look down touches a file, and the system tells of that (`trust/watched.rs` has the watch): a gate at rest does not ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::judged::fetched_with;
use crate::approvals::now;
use crate::gate::Gate;
use crate::store::{self, Pins, StoreError};

/// The store is asked so often though nobody tells of anything: whoever looked may have ended before the file was touched.
const ANYWAY: Duration = Duration::from_secs(60);

/// Runs until the gate ends.
pub(crate) async fn follow(gate: Arc<Gate>) {
    let (began, mut open) = (now(), None);
    loop {
        tokio::select! {
            () = gate.rules.looks.notified() => {}
            () = tokio::time::sleep(ANYWAY) => {}
            () = gate.stop.cancelled() => return,
        }
        if !store::exists(&gate.rules.pinning.state_dir) {
            continue;
        }
        let (dir, before) = (gate.rules.pinning.state_dir.clone(), open.take());
        let looked = tokio::task::spawn_blocking(move || {
            let (pins, at) = match before {
                Some(before) => before,
                None => {
                    let pins = Pins::open(&dir)?;
                    let at = pins.looked(began)?;
                    (pins, at)
                }
            };
            let (at, looks) = pins.looks_after(at)?;
            Ok::<_, StoreError>(((pins, at), looks))
        });
        // What can't be read is said where lists are judged; here it is tried again.
        let Ok(Ok((next, looks))) = looked.await else { continue };
        open = Some(next);
        for mount in gate.mounts.all.load().iter() {
            let of_mount = looks.iter().filter(|(name, _)| name == mount.config.name.as_str());
            let kinds: Vec<_> = of_mount.map(|(_, kind)| fetched_with(*kind)).collect();
            if !kinds.is_empty() {
                mount.connections.dirty(&kinds);
            }
        }
    }
}

/// The file to watch, where there is a place for it.
pub(crate) fn file(state_dir: &Path) -> Option<PathBuf> {
    let file = store::looks(state_dir);
    std::fs::create_dir_all(file.parent()?).ok()?;
    Some(file)
}

/// Tells all gates of the state directory `dir` that something was looked at.
pub(super) fn tell(dir: &Path) {
    let file = store::looks(dir);
    let told = file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
        // Another length each time: some file systems know the time of a change to the second only.
        use std::io::Write;
        let mut touched = std::fs::OpenOptions::new().append(true).create(true).open(&file)?;
        if touched.metadata()?.len() >= 4096 {
            touched.set_len(0)?;
        }
        touched.write_all(b".")
    });
    if let Err(error) = told {
        tracing::debug!(%error, "other gates hear within a minute of what was looked at");
    }
}
