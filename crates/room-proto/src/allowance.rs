//! Rate limit over actions of different costs. Names the time to wait; waits for nothing.

use std::time::{Duration, Instant};

/// Bucket that refills with time and is emptied by actions. Costs and depth are times: an action that costs 10 ms can be done 100 times a
/// second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance {
    /// Time of the next full bucket; `None`: full.
    full_at: Option<Instant>,
}

impl Allowance {
    /// Takes `cost`, or gives the time until `cost` could be taken. A full bucket of `depth` has room for any single cost.
    pub(crate) fn spend(&mut self, now: Instant, cost: Duration, depth: Duration) -> Result<(), Duration> {
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
    fn a_burst_passes_at_once_then_the_rate_holds() {
        let (start, cost, depth) = (Instant::now(), Duration::from_millis(10), Duration::from_millis(100));
        let mut allowance = Allowance::default();
        assert_eq!((0..50).filter(|_| allowance.spend(start, cost, depth).is_ok()).count(), 10);
        assert_eq!(allowance.spend(start, cost, depth), Err(cost));
        let second = (1..=1000).filter(|ms| allowance.spend(start + Duration::from_millis(*ms), cost, depth).is_ok()).count();
        assert_eq!(second, 100);
        assert!(allowance.spend(start + Duration::from_secs(9), depth * 5, depth).is_ok());
        assert_eq!(allowance.spend(start + Duration::from_secs(9), cost, depth), Err(depth * 4 + cost));
    }
}
