//! State of a mount, for people: phase, time and trouble. Does not decide who sees how much.

use std::time::SystemTime;

/// Phase of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Was ready before; its tools stay listed for a while.
    Degraded,
    /// Not reachable; tried again later.
    Failed,
    /// Answers.
    Ready,
    /// Started for the first time just now.
    Starting,
}

/// A mount's state as people see it.
#[derive(Debug, Clone)]
pub struct State {
    pub phase: Phase,
    /// Beginning of the phase.
    pub since: SystemTime,
    /// Time of the next try.
    pub next_try: Option<SystemTime>,
    /// Trouble, for people.
    pub error: Option<String>,
    /// Last words of the process, for the operator.
    pub words: Option<String>,
}

impl State {
    /// Makes a state that begins now.
    pub fn new(phase: Phase, error: Option<String>, next_try: Option<SystemTime>) -> Self {
        Self { phase, since: SystemTime::now(), next_try, error, words: None }
    }

    /// Trouble, with the last words of the process.
    pub fn explained(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        Some(self.words.as_ref().map_or_else(|| error.clone(), |words| format!("{error}; its last words: {words}")))
    }
}
