//! A histogram of durations made of atomics. Does not keep single observations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds in seconds: those the conventions name (10 ms to 300 s), with four finer ones in front, because a call
/// to a server on the same machine takes less than the first of them.
pub(crate) const BOUNDS: [f64; 18] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

#[derive(Default, Debug)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Sum in seconds, count, and the count of each bucket beside its upper bound.
    pub(super) fn read(&self) -> (f64, u64, Vec<(f64, u64)>) {
        let bounds = BOUNDS.into_iter().chain([f64::MAX]);
        let buckets: Vec<_> = bounds.zip(&self.buckets).map(|(bound, count)| (bound, count.load(Relaxed))).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        (self.nanoseconds.load(Relaxed) as f64 / 1e9, count, buckets)
    }
}
