//! What many have in common, kept once: what was read on one connection is found by the next that reads the same, so that what all of them
//! touch stays in the processor's cache. When two are the same is not known here, nor is anything kept alive.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Weak};

/// So many are told apart. Whoever finds its own no more keeps one alone.
const MOST: usize = 32;

/// The last that were kept, each for as long as somebody has it, with the hash of what tells it from others. That has a secret key: only
/// what probably is the same is compared, so that how long it takes says nothing about what others have sent.
#[derive(Debug)]
pub struct Recent<T> {
    seed: RandomState,
    list: VecDeque<(u64, Weak<T>)>,
}

impl<T> Recent<T> {
    /// None.
    pub fn new(seed: RandomState) -> Self {
        Self { seed, list: VecDeque::new() }
    }

    /// The one that is told from others `by` this and `is_same` as what is looked for.
    pub fn find(&self, by: &(impl Hash + ?Sized), is_same: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let hash = self.seed.hash_one(by);
        self.list.iter().filter(|(other, _)| *other == hash).filter_map(|(_, one)| one.upgrade()).find(|one| is_same(one))
    }

    /// Lets others find this one.
    pub fn put(&mut self, by: &(impl Hash + ?Sized), one: &Arc<T>) {
        self.list.truncate(MOST - 1);
        self.list.push_front((self.seed.hash_one(by), Arc::downgrade(one)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_found_for_as_long_as_somebody_has_them() {
        let mut recent = Recent::new(RandomState::new());
        let kept: Vec<_> = (0..=MOST).map(Arc::new).collect();
        kept.iter().for_each(|one| recent.put(one, one));
        let found = |recent: &Recent<usize>, one| recent.find(&one, |other| *other == one);
        assert!(found(&recent, 0).is_none() && recent.list.len() == MOST);
        assert!(Arc::ptr_eq(&found(&recent, 1).unwrap(), &kept[1]));
        assert!(recent.find(&1, |_| false).is_none() && recent.find(&0, |_| true).is_none());
        drop(kept);
        assert!(found(&recent, 1).is_none());
    }
}
