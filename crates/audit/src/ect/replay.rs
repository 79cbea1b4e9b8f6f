//! Ids of tokens that were taken, kept until the tokens expire. Does not forget a live id to make room: a full memory refuses.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::EctClaims;
use super::{EctFault, MOST_AGE, SKEW};

/// Memory of taken ids, of a bounded number.
#[derive(Debug)]
pub struct EctReplays {
    most: usize,
    seen: BTreeMap<String, u64>,
    ends: BTreeSet<(u64, String)>,
}

impl EctReplays {
    /// Makes a memory for at most this number of ids, of 36 bytes each.
    pub fn new(most: usize) -> Self {
        Self { most, seen: BTreeMap::new(), ends: BTreeSet::new() }
    }

    /// Takes a verified token, once. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// When the id was taken before, or the memory is full of unexpired ids.
    pub fn admit(&mut self, claims: &EctClaims, now: u64) -> Result<(), EctFault> {
        self.expire(now);
        if self.seen.contains_key(&claims.id) {
            return Err(EctFault::Replayed(claims.id.clone()));
        }
        if self.seen.len() >= self.most {
            return Err(EctFault::Full(self.most));
        }
        // The first second in which the claims are judged as expired, or as too old.
        let end = claims.expires.saturating_add(SKEW).min(claims.issued.saturating_add(MOST_AGE + 1));
        self.seen.insert(claims.id.clone(), end);
        self.ends.insert((end, claims.id.clone()));
        Ok(())
    }

    /// Drops the ids of tokens that have expired.
    pub fn expire(&mut self, now: u64) {
        while let Some((end, id)) = self.ends.pop_first() {
            if end > now {
                self.ends.insert((end, id));
                break;
            }
            self.seen.remove(&id);
        }
    }

    /// Counts the kept ids.
    pub fn count(&self) -> usize {
        self.seen.len()
    }
}
