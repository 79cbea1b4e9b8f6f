//! Counts of faulty messages by participant, for admins of a room (MCPx v0.1, 8.2). Judges no message.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most participants with counts of their own; later ones have none.
const MOST: usize = 1_000;

/// Faulty messages of a participant since the opening of the room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Messages refused by the room.
    pub refused: u64,
    /// Messages passed on whose kind and payload differ.
    pub mismatched: u64,
}

/// Faulty messages of a room's participants.
#[derive(Debug, Default)]
pub struct Faults(Mutex<BTreeMap<String, FaultCounts>>);

impl Faults {
    /// Counts a refused message.
    pub fn note_refused(&self, from: &str) {
        self.note(from, |counts| counts.refused += 1);
    }

    /// Counts a message with a payload of another kind.
    pub fn note_mismatched(&self, from: &str) {
        self.note(from, |counts| counts.mismatched += 1);
    }

    /// Gives the counts of a participant.
    pub fn counts_of(&self, id: &str) -> FaultCounts {
        self.lock().get(id).copied().unwrap_or_default()
    }

    fn note(&self, from: &str, count: impl FnOnce(&mut FaultCounts)) {
        let mut all = self.lock();
        if let Some(counts) = all.get_mut(from) {
            count(counts);
        } else if all.len() < MOST {
            count(all.entry(from.to_owned()).or_default());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, FaultCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
