//! Who subscribes at mounts that are out of the tree: kept for the mount that stands there next under the same name, be it in a moment or when a
//! registered server comes back after its grace. Whoever ends a subscription meanwhile ends it here.
//! Servers are not asked for anything here.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::Segment;

use crate::tree::mount::{Mount, Subscribed};

/// What is left by mounts that are gone.
#[derive(Debug, Default)]
pub struct Left(Mutex<BTreeMap<Segment, Subscribed>>);

impl Left {
    /// These mounts were in the tree, and those are.
    pub fn change(&self, old: &[Arc<Mount>], new: &[Arc<Mount>]) {
        // By address, for there may be thousands.
        let [were, are] = [old, new].map(|mounts| mounts.iter().map(Arc::as_ptr).collect::<HashSet<_>>());
        old.iter().filter(|mount| !are.contains(&Arc::as_ptr(mount))).for_each(|gone| self.keep(gone));
        new.iter().filter(|mount| !were.contains(&Arc::as_ptr(mount))).for_each(|next| self.give(next));
    }

    /// A mount that is out of the tree is closed: whoever was just about to subscribe when it went is not forgotten.
    pub fn leave(&self, gone: &Mount) {
        self.keep(gone);
        if let Some(next) = gone.gate.mounts.all.load().iter().find(|mount| mount.config.name == gone.config.name) {
            self.give(next);
        }
    }

    /// Takes a subscriber from `uri`.
    pub fn remove(&self, mount: &Segment, uri: &str) {
        let mut all = self.lock();
        if let Some(left) = all.get(mount) {
            left.remove(uri);
            if left.is_empty() {
                all.remove(mount);
            }
        }
    }

    fn keep(&self, gone: &Mount) {
        if gone.connections.subscribed.is_empty() {
            return;
        }
        self.lock().entry(gone.config.name.clone()).or_default().take_over(&gone.connections.subscribed);
    }

    fn give(&self, next: &Mount) {
        let left = self.lock().remove(&next.config.name);
        if left.is_some_and(|left| next.connections.subscribed.take_over(&left)) {
            next.connections.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Segment, Subscribed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
