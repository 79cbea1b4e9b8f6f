//! Ids of tokens that were taken, kept until the tokens expire, with a share for each holder. Does not forget a live id to make room: a full
//! share refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::EctClaims;
use super::{EctFault, MOST_AGE, SKEW};
use crate::hash::sha256;

/// Hash of an issuer and an id: issuers choose ids on their own, and no issuer uses up an id of another.
pub type EctMark = [u8; 32];

/// Ids that a holder may have whatever others have, and the part of the free ones that may be more.
const FEW: usize = 16;
const SHARE: usize = 4;

/// Memory of taken ids, of a bounded number. Half of the memory is for the few first ids of each holder.
#[derive(Debug)]
pub struct EctReplays {
    most: usize,
    seen: BTreeSet<EctMark>,
    ends: BTreeMap<(u64, EctMark), Arc<str>>,
    /// Count of the ids of each holder with any.
    held: BTreeMap<Arc<str>, usize>,
}

/// Gives the mark of a token.
pub fn mark(claims: &EctClaims) -> EctMark {
    sha256(format!("{} {}", claims.id, claims.issuer.as_deref().unwrap_or_default()).as_bytes()).0
}

impl EctReplays {
    /// Makes a memory for at most `most` ids.
    pub fn new(most: usize) -> Self {
        Self { most, seen: BTreeSet::new(), ends: BTreeMap::new(), held: BTreeMap::new() }
    }

    /// Takes verified tokens for a holder, each once, and all of them or none. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// When an id was taken before, or the share of the holder is full of unexpired ids.
    pub fn admit(&mut self, holder: &str, tokens: &[EctClaims], now: u64) -> Result<(), EctFault> {
        self.expire(now);
        let mut fresh = BTreeMap::new();
        for claims in tokens {
            let mark = mark(claims);
            if self.seen.contains(&mark) || fresh.insert(mark, expiry_of(claims)).is_some() {
                return Err(EctFault::Replayed(claims.id.clone()));
            }
        }
        let own = self.held.get(holder).copied().unwrap_or_default() + fresh.len();
        let has_few = own <= FEW && self.seen.len() + fresh.len() <= self.most;
        let has_share = own <= (self.most / 2).saturating_sub(self.seen.len()) / SHARE;
        if !has_few && !has_share {
            return Err(EctFault::Crowded(self.ends.first_key_value().map_or(1, |((end, _), _)| end.saturating_sub(now).max(1))));
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let holder: Arc<str> = holder.into();
        self.held.insert(Arc::clone(&holder), own);
        for (mark, end) in fresh {
            self.seen.insert(mark);
            self.ends.insert((end, mark), Arc::clone(&holder));
        }
        Ok(())
    }

    /// Drops the ids of tokens that have expired.
    pub fn expire(&mut self, now: u64) {
        while let Some(first) = self.ends.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, mark), holder) = first.remove_entry();
            self.seen.remove(&mark);
            match self.held.get_mut(&holder) {
                Some(count) if *count > 1 => *count -= 1,
                Some(_) | None => drop(self.held.remove(&holder)),
            }
        }
    }

    /// Counts the kept ids.
    pub fn count(&self) -> usize {
        self.seen.len()
    }
}

/// Finds the first second in which the claims are judged as expired, or as too old.
fn expiry_of(claims: &EctClaims) -> u64 {
    claims.expires.saturating_add(SKEW).min(claims.issued.saturating_add(MOST_AGE + 1))
}
