//! Part of the record with the entries of a principal. Does not bound parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Entries of one principal.
#[derive(Debug)]
pub struct Part {
    principal: Arc<str>,
    /// Bytes counted in no file's tally yet.
    fresh: AtomicU64,
    /// End of refused calls, in seconds since 1970; 0: calls are made.
    until: AtomicU64,
}

/// Principal beyond its share of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverShare {
    pub principal: Arc<str>,
    pub bytes: u64,
    /// Time from which calls are made again, in seconds since 1970.
    pub until: u64,
}

impl Part {
    /// Makes the empty part of a principal.
    pub fn empty(principal: &Arc<str>) -> Arc<Self> {
        Arc::new(Self { principal: Arc::clone(principal), fresh: AtomicU64::new(0), until: AtomicU64::new(0) })
    }

    /// Name of the principal.
    pub fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// End of the principal's refused calls, in seconds since 1970; `None`: calls are made.
    pub fn refused_until(&self) -> Option<u64> {
        Some(self.until.load(Relaxed)).filter(|until| *until > 0)
    }

    /// Sets the end of refused calls; gives the previous.
    pub fn refuse_until(&self, until: Option<u64>) -> Option<u64> {
        Some(self.until.swap(until.unwrap_or(0), Relaxed)).filter(|until| *until > 0)
    }

    /// Counts bytes of an entry.
    pub fn add(&self, bytes: u64) {
        self.fresh.fetch_add(bytes, Relaxed);
    }

    /// Bytes counted and not taken.
    pub fn fresh(&self) -> u64 {
        self.fresh.load(Relaxed)
    }

    /// Takes the counted bytes.
    pub fn take_fresh(&self) -> u64 {
        self.fresh.swap(0, Relaxed)
    }
}
