//! Things in common to many connections, kept once: the reading of one connection is found by the next with the same bytes, so that
//! all of them touch the same cache lines. Equality is not decided here, and nothing is kept alive.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Weak};

/// Most things kept. A thing that dropped out is kept by its connection alone.
const MOST: usize = 32;

/// The latest things, each kept while in use, with a hash of its distinguishing text. The hash has a secret key: only
/// probable equals are compared, so that the time of a look-up says nothing about others.
#[derive(Debug)]
pub struct Recent<T> {
    seed: RandomState,
    list: VecDeque<(u64, Weak<T>)>,
}

impl<T> Recent<T> {
    /// Makes an empty collection.
    pub fn new(seed: RandomState) -> Self {
        Self { seed, list: VecDeque::new() }
    }

    /// Finds the thing with the distinguishing text `by` that `is_same`.
    pub fn find(&self, by: &(impl Hash + ?Sized), is_same: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let hash = self.seed.hash_one(by);
        self.list.iter().filter(|(other, _)| *other == hash).filter_map(|(_, one)| one.upgrade()).find(|one| is_same(one))
    }

    /// Lets others find this thing.
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
        assert!(found(&recent, 0).is_none() && recent.list.len() == 32);
        assert!(Arc::ptr_eq(&found(&recent, 1).unwrap(), &kept[1]));
        assert!(recent.find(&1, |_| false).is_none() && recent.find(&0, |_| true).is_none());
        drop(kept);
        assert!(found(&recent, 1).is_none());
    }
}
