//! Queue of lists to fetch: a few at a time, without duplicates, in order. Does not fetch.

use std::collections::{BTreeSet, VecDeque};

use crate::id::SessionKey;

#[derive(Debug)]
pub(super) struct Fetches {
    waiting: VecDeque<SessionKey>,
    under_way: BTreeSet<SessionKey>,
    /// Sessions whose list changed during the fetch.
    again: BTreeSet<SessionKey>,
    most: usize,
}

impl Fetches {
    pub(super) fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), under_way: BTreeSet::new(), again: BTreeSet::new(), most: most.max(1) }
    }

    /// Queues a fetch.
    pub(super) fn want(&mut self, session: SessionKey) {
        if self.under_way.contains(&session) {
            self.again.insert(session);
        } else if !self.waiting.contains(&session) {
            self.waiting.push_back(session);
        }
    }

    /// Starts the next fetch, if there is room.
    pub(super) fn start(&mut self) -> Option<SessionKey> {
        if self.under_way.len() >= self.most {
            return None;
        }
        let session = self.waiting.pop_front()?;
        self.under_way.insert(session);
        Some(session)
    }

    /// Ends a fetch, successful or not.
    pub(super) fn done(&mut self, session: SessionKey) {
        self.under_way.remove(&session);
        if self.again.remove(&session) {
            self.want(session);
        }
    }

    /// Drops a session.
    pub(super) fn forget(&mut self, session: SessionKey) {
        self.waiting.retain(|waiting| *waiting != session);
        self.under_way.remove(&session);
        self.again.remove(&session);
    }
}
