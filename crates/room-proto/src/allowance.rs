//! How much of something may be done in a time, when each costs differently. Whoever is over is told for how long; nothing waits here.

use std::time::{Duration, Instant};

/// Fills up with time, and is emptied by what is done. Costs and depth are times: what costs 10 ms can be done 100 times a second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance {
    /// When it would be full again; `None`: it is.
    full_at: Option<Instant>,
}

impl Allowance {
    /// Takes `cost`, or says after what time it could be taken. A full one of `depth` has room for any single cost.
    pub(crate) fn take(&mut self, now: Instant, cost: Duration, depth: Duration) -> Result<(), Duration> {
        let owed = self.full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let over = (owed + cost).saturating_sub(depth.max(cost));
        if over > Duration::ZERO {
            return Err(over);
        }
        self.full_at = now.checked_add(owed + cost);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let (start, cost, depth) = (Instant::now(), Duration::from_millis(10), Duration::from_millis(100));
        let mut allowance = Allowance::default();
        assert_eq!((0..50).filter(|_| allowance.take(start, cost, depth).is_ok()).count(), 10);
        assert_eq!(allowance.take(start, cost, depth), Err(cost));
        let second = (1..=1000).filter(|ms| allowance.take(start + Duration::from_millis(*ms), cost, depth).is_ok()).count();
        assert_eq!(second, 100);
        assert!(allowance.take(start + Duration::from_secs(9), depth * 5, depth).is_ok());
        assert_eq!(allowance.take(start + Duration::from_secs(9), cost, depth), Err(depth * 4 + cost));
    }
}
