//! How a node joins its tree. Where its parents are is the driver's to know, not kept here.

use std::time::Duration;

use crate::message::Register;

/// The settings of one subserver.
#[derive(Debug, Clone)]
pub struct ChildSettings {
    /// What it registers with. The machine fills in the subtree and whether the parent is a backup.
    pub register: Register,
    /// How many parents it may have, the preferred one first.
    pub parents: usize,
    /// How long it waits at first before it tries again.
    pub backoff_least: Duration,
    /// How long at most. Never more than a heartbeat interval, so that the tree is whole again soon after what broke it is.
    pub backoff_most: Duration,
    /// How long an answer or a connection is waited for. Never more than half a heartbeat interval.
    pub answer_timeout: Duration,
    /// How long it stays with a backup before it tries a parent that it prefers; longer each time that fails.
    pub return_after: Duration,
}

impl ChildSettings {
    /// The defaults, for one parent.
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
