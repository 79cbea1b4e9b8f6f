//! Proposals that a server has not seen itself, and was asked to carry out all the same: each once. How many are remembered is bounded.

use std::collections::{BTreeSet, VecDeque};

/// So many are remembered; the oldest goes first.
const MOST: usize = 4_000;

/// Ids of proposals that a request has fulfilled.
#[derive(Debug, Default)]
pub(super) struct Taken {
    ids: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Taken {
    /// `false`: a request has named it before.
    pub(super) fn take(&mut self, proposal: &str) -> bool {
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
        let mut taken = Taken::default();
        assert!(taken.take("a") && !taken.take("a"));
        assert!((0..MOST).all(|number| taken.take(&number.to_string())));
        assert!(taken.take("a") && !taken.take("1"));
    }
}
