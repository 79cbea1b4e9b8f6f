//! Settings of a node's way into a tree. Without addresses of parents, which the driver has.

use std::time::Duration;

use crate::message::Register;

/// Settings of a subserver.
#[derive(Debug, Clone)]
pub struct ChildSettings {
    /// RegistrationResult to make. The machine fills in subtree and backup.
    pub register: Register,
    /// Number of parents, the preferred first.
    pub parents: usize,
    /// First pause before another attempt.
    pub backoff_least: Duration,
    /// Longest pause, capped at a heartbeat interval, so that a mended tree is soon whole.
    pub backoff_most: Duration,
    /// Patience for an answer or a connection, capped at half a heartbeat interval.
    pub answer_timeout: Duration,
    /// Stay with a backup before the first try of a preferred parent; doubled after each failure.
    pub return_after: Duration,
}

impl ChildSettings {
    /// Gives the defaults, for one parent.
    pub fn new(register: Register) -> Self {
        Self {
            register,
            parents: 1,
            backoff_least: Duration::from_millis(200),
            backoff_most: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(10),
            return_after: Duration::from_secs(30),
        }
    }

    pub(super) fn backoff_most(&self) -> Duration {
        self.bounded(self.backoff_most, 1)
    }

    pub(super) fn answer_timeout(&self) -> Duration {
        self.bounded(self.answer_timeout, 2)
    }

    fn bounded(&self, time: Duration, part: u32) -> Duration {
        let interval = self.register.heartbeat_interval;
        if interval.is_zero() { time } else { time.min(interval / part) }
    }
}
