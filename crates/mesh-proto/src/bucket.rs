//! A token bucket: so many in a second, and a few at once. What waits for a token is not kept here.

use std::time::{Duration, Instant};

/// Gives one token each `step`, and keeps up to `burst` of them.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    step: Duration,
    burst: u32,
    /// When the bucket would be full again; `None`: it is.
    full_at: Option<Instant>,
}

impl Bucket {
    /// A full bucket. No rate below one in a second, no burst below one.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        Self { step: Duration::from_secs(1) / per_second.max(1), burst: burst.max(1), full_at: None }
    }

    /// How long one token takes.
    pub(crate) fn step(&self) -> Duration {
        self.step
    }

    /// Takes a token, or says when there will be one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let ready = full_at.checked_sub(self.step * (self.burst - 1));
        if let Some(ready) = ready.filter(|ready| *ready > now) {
            return Err(ready);
        }
        self.full_at = Some(full_at + self.step);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(100, 10);
        assert_eq!((0..50).filter(|_| bucket.take(start).is_ok()).count(), 10);
        assert_eq!(bucket.take(start), Err(start + Duration::from_millis(10)));
        let second = (1..=1000).filter(|ms| bucket.take(start + Duration::from_millis(*ms)).is_ok()).count();
        assert_eq!(second, 100);
        let later = start + Duration::from_secs(60);
        assert_eq!((0..50).filter(|_| bucket.take(later).is_ok()).count(), 10);
    }
}
