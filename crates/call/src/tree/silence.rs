//! Time limits of a request: on its silence without an answer or a sign of life, and on its whole time, since signs of life are the
//! server's own word. Does not act on a breach.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use runtime::alarm::Alarm;

use crate::tree::back::Back;
use crate::tree::port::UpstreamError;

/// Watches a request for too long a silence, or too long a time in all.
pub struct Silence {
    alarm: Alarm,
    allowed: Duration,
    /// Longest time in all.
    longest: Duration,
    began: Instant,
    end: tokio::time::Instant,
}

impl Silence {
    /// Starts the limits of a call begun at `began`: on silence, and on the whole time.
    pub fn new(allowed: Duration, longest: Duration, began: Instant) -> Self {
        let now = tokio::time::Instant::from_std(began);
        let first = allowed.min(longest);
        Self { alarm: Alarm::new(now, first), allowed, longest, began, end: now + first }
    }

    /// Completes with the reason once the request must end. Silence does not count while a person is asked; the whole time does.
    pub fn poll(&mut self, back: Option<&Arc<Back>>, cx: &mut Context<'_>) -> Poll<UpstreamError> {
        loop {
            ready!(self.alarm.poll(self.end, cx));
            let took = self.began.elapsed();
            if took >= self.longest {
                return Poll::Ready(UpstreamError::Endless(self.longest));
            }
            let stirred = back.and_then(|back| back.stirred());
            let quiet = stirred.map_or(self.began, |stirred| stirred.max(self.began)).elapsed();
            if quiet >= self.allowed && !back.is_some_and(|back| back.is_asking()) {
                return Poll::Ready(UpstreamError::Silent(self.allowed));
            }
            let wait = self.allowed.saturating_sub(quiet).max(Duration::from_millis(5)).min(self.longest.saturating_sub(took));
            self.end = tokio::time::Instant::now() + wait;
        }
    }
}
