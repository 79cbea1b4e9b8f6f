//! State of a mount, for people to see: in a word, since when, and what is wrong. Who sees how much of that is not decided here.

use std::time::SystemTime;

/// Where a mount stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Ready before, and not now; its tools stay listed for a while.
    Degraded,
    /// Not reachable; it is tried again.
    Failed,
    /// Answers.
    Ready,
    /// Started for the first time just now.
    Starting,
}

/// A mount's state as people see it.
#[derive(Debug, Clone)]
pub struct State {
    /// Where it stands.
    pub phase: Phase,
    /// Since when.
    pub since: SystemTime,
    /// When it is tried next.
    pub next_try: Option<SystemTime>,
    /// Trouble, for people.
    pub error: Option<String>,
    /// The last words of its process, for whoever runs the gate.
    pub words: Option<String>,
}

impl State {
    /// From now on.
    pub fn new(phase: Phase, error: Option<String>, next_try: Option<SystemTime>) -> Self {
        Self { phase, since: SystemTime::now(), next_try, error, words: None }
    }

    /// Trouble, with the last words of the process.
    pub fn explained(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        Some(self.words.as_ref().map_or_else(|| error.clone(), |words| format!("{error}; its last words: {words}")))
    }
}
