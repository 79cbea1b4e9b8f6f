//! Limit on the time that a request may be without an answer or a sign of life. What is done with one that is silent for longer is not known here.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use crate::alarm::Alarm;
use crate::call::back::Back;

/// Watches for a request that gives no sign of life for too long.
pub(super) struct Silence {
    alarm: Alarm,
    allowed: Duration,
    began: Instant,
    end: tokio::time::Instant,
}

impl Silence {
    pub(super) fn new(allowed: Duration, began: Instant) -> Self {
        let now = tokio::time::Instant::from_std(began);
        Self { alarm: Alarm::new(now, allowed), allowed, began, end: now + allowed }
    }

    /// Ready once it was silent for too long. Nobody is silent while a person is asked something.
    pub(super) fn poll(&mut self, back: Option<&Arc<Back>>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.poll(self.end, cx));
            let stirred = back.and_then(|back| back.stirred());
            let quiet = stirred.map_or(self.began, |stirred| stirred.max(self.began)).elapsed();
            if quiet >= self.allowed && !back.is_some_and(|back| back.is_asking()) {
                return Poll::Ready(());
            }
            let wait = self.allowed.saturating_sub(quiet);
            self.end = tokio::time::Instant::now() + wait.max(Duration::from_millis(5));
        }
    }
}
