//! Aggregators below, counted, because a moving one shows in two places for a while (AX-24). Does not react to cycles.

use std::collections::BTreeMap;

use crate::id::NodeId;

/// Ids with the number of sessions that brought them.
#[derive(Debug, Default)]
pub(super) struct Below(BTreeMap<NodeId, usize>);

impl Below {
    /// Adds ids; tells whether the set changed.
    pub(super) fn add<'a>(&mut self, ids: impl IntoIterator<Item = &'a NodeId>) -> bool {
        let before = self.0.len();
        for id in ids {
            *self.0.entry(*id).or_default() += 1;
        }
        self.0.len() != before
    }

    /// Removes ids; tells whether the set changed.
    pub(super) fn remove<'a>(&mut self, ids: impl IntoIterator<Item = &'a NodeId>) -> bool {
        let before = self.0.len();
        for id in ids {
            if let Some(count) = self.0.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(id);
                }
            }
        }
        self.0.len() != before
    }

    /// Counts the ids together with these.
    pub(super) fn len_with<'a>(&self, ids: impl IntoIterator<Item = &'a NodeId>) -> usize {
        self.0.len() + ids.into_iter().filter(|id| !self.0.contains_key(id)).count()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> {
        self.0.keys().copied()
    }
}
