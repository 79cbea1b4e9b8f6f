//! Contexts shared with other nodes: versions behind a snapshot, and the progress of each peer. Does not know their content.

use std::collections::BTreeMap;

use crate::StoreError;

/// Versions of a peer that came without a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptProgress {
    pub version: u64,
    /// Epoch of the version, 0 where the peer has not told.
    pub epoch: u64,
}

/// Context of one gate, as kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptContext {
    /// Version of the snapshot, 0 without one.
    pub base: u64,
    /// Bytes of the snapshot; empty without one.
    pub snapshot: Vec<u8>,
    /// Versions after the snapshot, in order.
    pub versions: Vec<(u64, Vec<u8>)>,
    /// Last version known of each peer.
    pub known: BTreeMap<String, KeptProgress>,
    /// Epoch of the versions, 0 before one was drawn.
    pub epoch: u64,
}

/// Addition to a context: all of it lasts, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextAddition {
    pub versions: Vec<(u64, Vec<u8>)>,
    pub known: Vec<(String, KeptProgress)>,
    /// Epoch of the versions, where it was drawn just now.
    pub epoch: Option<u64>,
}

/// Contexts of all gates of a store.
pub trait Contexts: Send {
    /// Reads a context; an unknown one is empty.
    ///
    /// # Errors
    /// When it can't be read.
    fn read(&self, gate: &str, context: &str) -> Result<KeptContext, StoreError>;

    /// Adds to a context. An addition that was acknowledged outlives every crash.
    ///
    /// # Errors
    /// When it can't be written.
    fn add(&self, gate: &str, context: &str, addition: &ContextAddition) -> Result<(), StoreError>;

    /// Puts a snapshot of `version` in the place of the older snapshot and of the versions up to there.
    ///
    /// # Errors
    /// When it can't be written.
    fn rebase(&self, gate: &str, context: &str, version: u64, snapshot: &[u8]) -> Result<(), StoreError>;
}
