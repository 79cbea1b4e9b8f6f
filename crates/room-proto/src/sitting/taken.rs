//! Proposals unseen by a server and carried out nevertheless: each only once. Memory is bounded.

use std::collections::{BTreeSet, VecDeque};

/// Ids remembered; the oldest goes first.
const MOST: usize = 4_000;

/// Ids of fulfilled proposals.
#[derive(Debug, Default)]
pub(super) struct FulfilledProposals {
    ids: BTreeSet<String>,
    order: VecDeque<String>,
}

impl FulfilledProposals {
    /// Notes a proposal; `false`: already noted.
    pub(super) fn insert(&mut self, proposal: &str) -> bool {
        if !self.ids.insert(proposal.to_owned()) {
            return false;
        }
        self.order.push_back(proposal.to_owned());
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_and_the_oldest_is_forgotten() {
        let mut taken = FulfilledProposals::default();
        assert!(taken.insert("a") && !taken.insert("a"));
        assert!((0..MOST).all(|number| taken.insert(&number.to_string())));
        assert!(taken.insert("a") && !taken.insert("1"));
    }
}
