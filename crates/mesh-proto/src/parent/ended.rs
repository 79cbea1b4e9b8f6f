//! Why sessions ended, so that who still speaks for one can be told. Not for ever: the oldest are forgotten.

use std::collections::{BTreeMap, VecDeque};

use crate::id::SessionId;
use crate::refusal::Ended;

const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    why: BTreeMap<SessionId, Ended>,
    oldest_first: VecDeque<SessionId>,
}

impl EndedSessions {
    pub(super) fn note(&mut self, id: SessionId, why: Ended) {
        if self.why.insert(id.clone(), why).is_none() {
            self.oldest_first.push_back(id);
        }
        if self.oldest_first.len() > MOST
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.why.remove(&oldest);
        }
    }

    pub(super) fn why(&self, id: &SessionId) -> Option<Ended> {
        self.why.get(id).copied()
    }
}
