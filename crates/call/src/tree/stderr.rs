//! Last lines of a child process on its standard error. Bounded, whatever the child writes. Nothing is parsed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::broadcast;

/// Number of lines kept.
pub const KEPT_LINES: usize = 50;
const LONGEST_LINE: usize = 2000;

/// Last lines of a child process.
#[derive(Debug)]
pub struct Stderr {
    lines: Mutex<VecDeque<String>>,
    live: broadcast::Sender<String>,
}

impl Default for Stderr {
    fn default() -> Self {
        Self { lines: Mutex::default(), live: broadcast::channel(256).0 }
    }
}

impl Stderr {
    /// Adds a line, without control characters that could affect a terminal.
    pub fn push(&self, line: &str) {
        let clean: String = line.chars().filter(|c| !c.is_control() || *c == '\t').take(LONGEST_LINE).collect();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(clean.clone());
        // There may be no listener.
        drop(self.live.send(clean));
    }

    /// Lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Lines from now on.
    pub fn follow(&self) -> broadcast::Receiver<String> {
        self.live.subscribe()
    }
}
