//! What somebody looked at by another gate of the same state directory, or by none: it holds here too. Nothing is decided here: lists that it
//! concerns are fetched and judged anew.

use std::sync::Arc;
use std::time::Duration;

use super::judged::fetched_with;
use crate::Inner;
use crate::approvals::now;
use crate::store::{self, Pins, StoreError};

/// How long it takes to hear of it, at most.
const EVERY: Duration = Duration::from_secs(1);

/// Runs until the gate ends.
pub(crate) async fn follow(gateway: Arc<Inner>) {
    let (began, mut open) = (now(), None);
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = gateway.stop.cancelled() => return,
        }
        if !store::exists(&gateway.state_dir) {
            continue;
        }
        let (dir, before) = (gateway.state_dir.clone(), open.take());
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
        for mount in gateway.mounts.load().iter() {
            let of_mount = looks.iter().filter(|(name, _)| name == mount.config.name.as_str());
            let kinds: Vec<_> = of_mount.map(|(_, kind)| fetched_with(*kind)).collect();
            if !kinds.is_empty() {
                mount.dirty(&kinds);
            }
        }
    }
}
