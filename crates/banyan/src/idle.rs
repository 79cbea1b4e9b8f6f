//! When a gate that a client had started is needed no more. Ends nothing.

use std::time::{Duration, Instant};

/// Time for which an unused gate stays: a restarted client finds its servers running.
const PATIENCE: Duration = Duration::from_secs(4);

/// Time without any use of a gate.
pub(crate) struct Idle {
    since: Instant,
}

impl Idle {
    /// Begins counting at `now`.
    pub(crate) fn since(now: Instant) -> Self {
        Self { since: now }
    }

    /// Checks whether the gate is needed no more. To be asked again and again.
    pub(crate) fn is_over(&mut self, is_used: bool, now: Instant) -> bool {
        if is_used {
            self.since = now;
        }
        now.saturating_duration_since(self.since) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_over_when_nobody_has_used_it_for_long_enough() {
        let begin = Instant::now();
        let mut idle = Idle::since(begin);
        assert!(!idle.is_over(false, begin + PATIENCE / 2));
        assert!(!idle.is_over(true, begin + PATIENCE * 2));
        assert!(!idle.is_over(false, begin + PATIENCE * 3 - Duration::from_millis(1)));
        assert!(idle.is_over(false, begin + PATIENCE * 3));
    }
}
