//! Times and authors of writes, which order all writes. Reads no clock: wall time comes in as microseconds.

use std::sync::Arc;

use crate::error::AxcpError;

/// Microseconds by which the clock of an author may be ahead: a clock further ahead would win for ever.
pub const MOST_AHEAD: u64 = 60_000_000;
/// Microseconds by which a write may be further ahead than what it follows: a peer at the bound keeps nobody from writing. Other nodes take
/// such a write once that time has passed.
const LEEWAY: u64 = 1_000_000;

/// Refusal of an operation from the future.
pub(super) const FROM_FUTURE: AxcpError = AxcpError::BadDelta("an operation is from the future: set the clock of its author");

/// Tells if a time is further ahead of wall time than any clock may be.
pub(super) fn is_from_future(ts: u64, wall: u64) -> bool {
    ts > wall.saturating_add(MOST_AHEAD)
}

/// Time and author of a write, in the order that decides who wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteStamp {
    pub ts: u64,
    /// Compared byte by byte.
    pub node: Arc<str>,
}

/// Clock that follows wall time and is ahead of everything seen: wall time may go back, the clock never does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HybridClock {
    last: u64,
}

impl HybridClock {
    /// Gives the time of a write of the node itself.
    ///
    /// # Errors
    /// When the clock is so far ahead of wall time that other nodes would refuse the write.
    pub fn tick(&mut self, wall: u64) -> Result<u64, AxcpError> {
        let next = self.last.saturating_add(1).max(wall);
        if next > wall.saturating_add(MOST_AHEAD + LEEWAY) {
            return Err(AxcpError::BadDelta("the clock of this node is behind the times of the context: set it, or wait"));
        }
        self.last = next;
        Ok(next)
    }

    /// Follows the time of another node's write.
    ///
    /// # Errors
    /// When the time is 0, which no clock shows, or too far ahead of wall time.
    pub fn follow(&mut self, ts: u64, wall: u64) -> Result<(), AxcpError> {
        if ts == 0 {
            return Err(AxcpError::BadDelta("an operation has no time: send `ts` in microseconds"));
        }
        if is_from_future(ts, wall) {
            return Err(FROM_FUTURE);
        }
        self.advance(ts);
        Ok(())
    }

    /// Goes on from a time that was checked before.
    pub fn advance(&mut self, ts: u64) {
        self.last = self.last.max(ts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_11_a_clock_is_ahead_of_all_it_saw() {
        let mut clock = HybridClock::default();
        assert_eq!((clock.tick(100), clock.tick(100), clock.tick(90)), (Ok(100), Ok(101), Ok(102)));
        clock.follow(5000, 100).unwrap();
        assert_eq!((clock.tick(100), clock.tick(9000)), (Ok(5001), Ok(9000)));
    }

    #[test]
    fn xc_11_no_write_is_far_ahead_of_wall_time() {
        let hour = 3_600_000_000;
        let mut clock = HybridClock::default();
        assert_eq!(clock.tick(hour), Ok(hour));
        // The wall clock was an hour ahead, and was set right.
        assert_eq!(clock.tick(100).unwrap_err().code().number(), 6);
        assert_eq!(clock.tick(hour), Ok(hour + 1), "a refused tick does not count");
    }

    #[test]
    fn xc_11_a_peer_at_the_bound_stops_no_writer() {
        let mut clock = HybridClock::default();
        clock.follow(100 + MOST_AHEAD, 100).unwrap();
        assert_eq!(clock.tick(100), Ok(101 + MOST_AHEAD));
    }

    #[test]
    fn xc_11_a_time_from_the_future_is_refused() {
        let mut clock = HybridClock::default();
        assert_eq!(clock.follow(100 + MOST_AHEAD, 100), Ok(()));
        for bad in [0, 101 + MOST_AHEAD, 3_600_000_000, u64::MAX] {
            assert_eq!(clock.follow(bad, 100).unwrap_err().code().number(), 6);
        }
        assert_eq!(clock.last, 100 + MOST_AHEAD, "a refused time does not count");
    }

    #[test]
    fn xc_11_the_author_decides_between_equal_times() {
        let stamp = |ts, node: &str| WriteStamp { ts, node: node.into() };
        assert!(stamp(2, "a") > stamp(1, "b") && stamp(2, "b") > stamp(2, "a") && stamp(2, "ab") > stamp(2, "a"));
    }
}
