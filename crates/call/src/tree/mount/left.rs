//! Subscriptions at removed mounts, kept for the next mount of the same name: after a reload, or when a registered server returns in time.
//! Subscriptions ended meanwhile end here. Asks servers nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::Segment;

use crate::tree::mount::{Mount, ResourceSubscriptions};

/// Subscriptions of removed mounts.
#[derive(Debug, Default)]
pub struct LeftSubscriptions(Mutex<BTreeMap<Segment, ResourceSubscriptions>>);

impl LeftSubscriptions {
    /// Takes over a change of the tree's mounts.
    pub fn change(&self, old: &[Arc<Mount>], new: &[Arc<Mount>]) {
        // By address, since there may be thousands.
        let [were, are] = [old, new].map(|mounts| mounts.iter().map(Arc::as_ptr).collect::<HashSet<_>>());
        old.iter().filter(|mount| !are.contains(&Arc::as_ptr(mount))).for_each(|gone| self.keep(gone));
        new.iter().filter(|mount| !were.contains(&Arc::as_ptr(mount))).for_each(|next| self.give(next));
    }

    /// Takes the subscriptions of a closed mount, including those made just as it went.
    pub fn leave(&self, gone: &Mount) {
        self.keep(gone);
        if let Some(next) = gone.gate.mounts.all.load().iter().find(|mount| mount.config.name == gone.config.name) {
            self.give(next);
        }
    }

    /// Removes a subscriber from `uri`.
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Segment, ResourceSubscriptions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
