//! What somebody looked at by another gate of the same state directory, or by none: it holds here too. Nothing is decided here: lists that it
//! concerns are fetched and judged anew.
//!
//! Whoever writes a look down tells of it on a bus: a gate at rest does not ask.

use std::sync::Arc;
use std::time::Duration;

use store::StoreError;

use crate::judge::approvals::now;
use crate::judge::gate::Gate;
use crate::judge::pins::judged::fetched_with;

/// The store is asked so often though nobody tells of anything: whoever looked may have ended before the file was touched.
const ANYWAY: Duration = Duration::from_secs(60);

/// Runs until the gate ends.
pub async fn follow(gate: Arc<Gate>) {
    let (began, mut open) = (now(), None);
    loop {
        tokio::select! {
            () = gate.rules.looks.heard() => {}
            () = tokio::time::sleep(ANYWAY) => {}
            () = gate.stop.cancelled() => return,
        }
        if !gate.stores.has_any() {
            continue;
        }
        let (stores, before) = (Arc::clone(&gate.stores), open.take());
        let looked = tokio::task::spawn_blocking(move || {
            let (pins, at) = match before {
                Some(before) => before,
                None => {
                    let pins = stores.pins()?;
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
