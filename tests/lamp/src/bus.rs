//! The made-up bus: lines that are lit or dark, within this process.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lines of a bus. All are dark at first.
#[derive(Debug, Default)]
pub struct Bus(Mutex<BTreeSet<String>>);

impl Bus {
    /// Lights a line, or darkens it.
    pub fn switch_line(&self, line: &str, on: bool) {
        if on {
            self.lit().insert(line.to_owned());
        } else {
            self.lit().remove(line);
        }
    }

    pub fn is_lit(&self, line: &str) -> bool {
        self.lit().contains(line)
    }

    fn lit(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
