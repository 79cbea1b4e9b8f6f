//! A token bucket: a rate with a burst. Keeps no queue.

use std::time::{Duration, Instant};

/// Bucket that gains a token each `step`, up to `burst`.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    step: Duration,
    burst: u32,
    /// Time of the next full bucket; `None`: full.
    full_at: Option<Instant>,
}

impl Bucket {
    /// Makes a full bucket. Rate and burst are at least one.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        Self { step: Duration::from_secs(1) / per_second.max(1), burst: burst.max(1), full_at: None }
    }

    /// Gives the time of one token.
    pub(crate) fn step(&self) -> Duration {
        self.step
    }

    /// Takes a token, or gives the time of the next.
    pub(crate) fn take_token(&mut self, now: Instant) -> Result<(), Instant> {
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
    fn a_burst_passes_at_once_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = Bucket::new(100, 10);
        assert_eq!((0..50).filter(|_| bucket.take_token(start).is_ok()).count(), 10);
        assert_eq!(bucket.take_token(start), Err(start + Duration::from_millis(10)));
        let second = (1..=1000).filter(|ms| bucket.take_token(start + Duration::from_millis(*ms)).is_ok()).count();
        assert_eq!(second, 100);
        let later = start + Duration::from_secs(60);
        assert_eq!((0..50).filter(|_| bucket.take_token(later).is_ok()).count(), 10);
    }
}
