//! Reasons of ended sessions, for late speakers. Not for ever: memory is bounded, and the oldest are forgotten.

use std::collections::{BTreeMap, VecDeque};

use crate::id::SessionId;
use crate::refusal::SessionEnd;

const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    why: BTreeMap<SessionId, SessionEnd>,
    oldest_first: VecDeque<SessionId>,
}

impl EndedSessions {
    pub(super) fn note(&mut self, id: SessionId, why: SessionEnd) {
        if self.why.insert(id.clone(), why).is_none() {
            self.oldest_first.push_back(id);
        }
        if self.oldest_first.len() > MOST
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.why.remove(&oldest);
        }
    }

    pub(super) fn why(&self, id: &SessionId) -> Option<SessionEnd> {
        self.why.get(id).copied()
    }
}
