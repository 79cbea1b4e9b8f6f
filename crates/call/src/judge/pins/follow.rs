//! Decisions about definitions made through another gate of the same state directory, or without a gate: they hold here too. Decides
//! nothing itself: fetches and judges the affected lists anew.
//!
//! The writer of a decision tells of it on a bus, so that a gate at rest does not poll.

use std::sync::Arc;
use std::time::Duration;

use store::StoreError;

use crate::judge::approvals::now;
use crate::judge::gate::Gate;
use crate::judge::pins::judged::fetched_with;

/// Interval of polling the store without news, since the decider may have ended before touching the file.
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
        // A read error is logged where lists are judged; here the read is tried again.
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
