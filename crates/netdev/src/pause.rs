//! Pauses between tries of the same work, longer after each failure. Does no work.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// First pause, and the longest after many failures.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(3600);

/// Moment of the next try, for all who would try.
#[derive(Debug)]
pub(crate) struct NextTry(Mutex<(Instant, Duration)>);

impl NextTry {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new((after(now, FIRST), FIRST)))
    }

    /// Takes the next try where it is due, so that nobody else does.
    pub(crate) fn begin(&self, now: Instant) -> bool {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = next.0 <= now;
        if is_due {
            next.0 = after(now, next.1);
        }
        is_due
    }

    /// Hears how a try went.
    pub(crate) fn hear(&self, is_well: bool, now: Instant) {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = if is_well { FIRST } else { next.1.saturating_mul(2).min(LONGEST) };
        *next = (after(now, pause), pause);
    }
}

fn after(now: Instant, pause: Duration) -> Instant {
    now.checked_add(pause).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_that_fail_come_less_often() {
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let next = NextTry::new(began);
        assert!(!next.begin(began), "who comes back at once waits as well");
        let mut tries = 0;
        for second in 0..3600 {
            if next.begin(at(second)) {
                tries += 1;
                assert!(!next.begin(at(second)), "for all who would try");
                next.hear(false, at(second));
            }
        }
        assert!((5..=11).contains(&tries), "{tries}");
        assert!(next.begin(at(3 * 3600)));
        next.hear(true, at(3 * 3600));
        assert!(next.begin(at(3 * 3600 + FIRST.as_secs())));
    }
}
