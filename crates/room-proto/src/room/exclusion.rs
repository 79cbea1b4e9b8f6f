//! Participants who were put out by an admin, until they may come again. Does not close connections.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::name::ParticipantId;

/// Names with the time of their return.
#[derive(Debug, Default)]
pub(super) struct ExclusionList {
    until: BTreeMap<ParticipantId, Instant>,
    order: BTreeSet<(Instant, ParticipantId)>,
}

impl ExclusionList {
    pub(super) fn add(&mut self, id: &ParticipantId, until: Instant) {
        if let Some(before) = self.until.insert(id.clone(), until) {
            self.order.remove(&(before, id.clone()));
        }
        self.order.insert((until, id.clone()));
    }

    /// Gives the time until a participant may come again; `None`: now.
    pub(super) fn left(&self, id: &ParticipantId, now: Instant) -> Option<Duration> {
        self.until.get(id).map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// Forgets participants who may come again.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((_, id)) = self.order.first().filter(|(at, _)| *at <= now).cloned() {
            self.order.pop_first();
            self.until.remove(&id);
        }
    }

    /// Gives the time of the next return.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    pub(super) fn len(&self) -> usize {
        self.until.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}
