//! Durations of a mount's last calls, for people. Nothing is decided by them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Calls kept.
const KEPT: usize = 128;
/// Time for which a call counts.
const COUNTS: Duration = Duration::from_secs(60);

/// Last calls. Noting a call takes two relaxed stores and no lock.
#[derive(Debug)]
pub struct Recent {
    since: Instant,
    next: AtomicUsize,
    /// Second of a call's end, counted from 1, and its microseconds; 0: none yet.
    slots: [AtomicU64; KEPT],
}

impl Default for Recent {
    fn default() -> Self {
        Self::new()
    }
}

impl Recent {
    /// Begins without calls.
    pub fn new() -> Self {
        Self { since: Instant::now(), next: AtomicUsize::new(0), slots: [const { AtomicU64::new(0) }; KEPT] }
    }

    /// Notes a call that began at `began` and took `took`.
    pub fn note(&self, began: Instant, took: Duration) {
        let second = (began + took).saturating_duration_since(self.since).as_secs() + 1;
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let at = self.next.fetch_add(1, Ordering::Relaxed) % KEPT;
        if let Some(slot) = self.slots.get(at) {
            slot.store(second << 32 | u64::from(micros), Ordering::Relaxed);
        }
    }

    /// Median of the calls of the last minute, if any.
    pub fn median(&self, now: Instant) -> Option<Duration> {
        let second = now.saturating_duration_since(self.since).as_secs() + 1;
        let from = second.saturating_sub(COUNTS.as_secs()).max(1);
        let noted = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|noted| noted >> 32 >= from);
        let mut micros: Vec<u64> = noted.map(|noted| noted & u64::from(u32::MAX)).collect();
        micros.sort_unstable();
        micros.get(micros.len() / 2).map(|micros| Duration::from_micros(*micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_last_minute() {
        let recent = Recent::new();
        let at = |second| recent.since + Duration::from_secs(second);
        assert_eq!(recent.median(at(0)), None);
        (0..300).for_each(|_| recent.note(at(0), Duration::from_millis(900)));
        [5, 3, 4].iter().for_each(|ms| recent.note(at(70), Duration::from_millis(*ms)));
        assert_eq!(recent.median(at(59)), Some(Duration::from_millis(900)));
        assert_eq!(recent.median(at(100)), Some(Duration::from_millis(4)));
        assert_eq!(recent.median(at(200)), None);
        recent.note(at(200), Duration::from_secs(100_000));
        assert_eq!(recent.median(at(200)), Some(Duration::from_micros(u64::from(u32::MAX))));
    }
}
