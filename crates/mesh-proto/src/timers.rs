//! A set of timers, sorted by time. Reacts to nothing: the owner does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Timers by key, at most one for each.
#[derive(Debug, Clone)]
pub(crate) struct Timers<K> {
    due: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { due: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Timers<K> {
    /// Sets or moves a timer.
    pub(crate) fn set(&mut self, key: K, at: Instant) {
        self.cancel(&key);
        self.order.insert((at, key.clone()));
        self.due.insert(key, at);
    }

    /// Removes a timer.
    pub(crate) fn cancel(&mut self, key: &K) {
        if let Some(at) = self.due.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// Gives the time of a timer.
    pub(crate) fn at(&self, key: &K) -> Option<Instant> {
        self.due.get(key).copied()
    }

    /// Gives the earliest timer.
    pub(crate) fn next(&self) -> Option<(Instant, &K)> {
        self.order.first().map(|(at, key)| (*at, key))
    }

    /// Takes the earliest timer in the past, with its time.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(Instant, K)> {
        let (at, _) = self.next()?;
        if at > now {
            return None;
        }
        let (at, key) = self.order.pop_first()?;
        self.due.remove(&key);
        Some((at, key))
    }
}
