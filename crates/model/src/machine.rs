//! The shape that every state machine has, so that one loop drives them all. Input has a method of its own for each kind (`handle_*`) and
//! stands in no trait. Nothing here reads a clock: time is an argument.

use std::time::{Duration, Instant, SystemTime};

/// The time by both clocks, read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Measures durations: never set back.
    pub instant: Instant,
    /// Dates what is written or outlives the process.
    pub wall: SystemTime,
}

impl Now {
    /// Time since 1970, by the clock on the wall; zero before.
    pub fn since_epoch(self) -> Duration {
        self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    /// Full seconds since 1970, by the clock on the wall.
    pub fn unix_seconds(self) -> u64 {
        self.since_epoch().as_secs()
    }
}

/// State that decides and does nothing itself.
///
/// The owner changes the machine by a `handle_*`, takes all outputs, asks for the next timer, and waits: in this order, each time.
pub trait Machine {
    /// Orders and news for the owner.
    type Output;

    /// Lets time pass: everything due by `now` happens. A call before the timer is due changes nothing.
    fn handle_timeout(&mut self, now: Now);

    /// Takes the next output, in the order in which the owner has to carry them out.
    fn poll_output(&mut self) -> Option<Self::Output>;

    /// Tells the next timer and its reason, for the log. The answer holds until the next call of another method.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;
}
