//! The time. The work of a worker between two waits takes microseconds, and looking at a clock a good part of one, so a declared
//! turn looks at the clock at most once. Code outside of turns looks each time. Timers are not set here.

use std::cell::Cell;
use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::Now;

/// Interval of looks at the wall clock. The wall clock may be set at any time; in between the monotonic clock measures.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The time, and waiting for it. Tests have clocks of their own.
pub trait Clock {
    /// Reads both clocks.
    fn now(&self) -> Now;

    /// Waits until `at`; no time at all where `at` is past.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()>;
}

/// The clocks of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now { instant: now(), wall: SystemTime::now() }
    }

    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> {
        tokio::time::sleep_until(at.into())
    }
}

#[derive(Clone, Copy)]
enum Turn {
    None,
    Begun,
    At(Instant),
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn::None) };
    /// Both clocks at one moment, the wall clock in microseconds since 1970.
    static BOTH: Cell<Option<(Instant, u64)>> = const { Cell::new(None) };
}

/// Does `work`, all of it at one moment. The work is short and does not wait.
pub fn turn<T>(work: impl FnOnce() -> T) -> T {
    struct Over(Turn);
    impl Drop for Over {
        fn drop(&mut self) {
            TURN.set(self.0);
        }
    }
    let _over = Over(TURN.replace(Turn::Begun));
    work()
}

/// Reads the monotonic clock. Within a turn, gives the time of the first reading.
pub fn now() -> Instant {
    match TURN.get() {
        Turn::At(at) => at,
        Turn::Begun => {
            let now = Instant::now();
            TURN.set(Turn::At(now));
            now
        }
        Turn::None => Instant::now(),
    }
}

/// Microseconds since 1970, by the clock on the wall as it stood a moment ago at most.
pub fn wall() -> u64 {
    let now = now();
    if let Some((at, wall)) = BOTH.get()
        && let Some(since) = now.checked_duration_since(at).filter(|since| *since < LOOK_AGAIN)
    {
        return wall.saturating_add(micros(since));
    }
    let (at, wall) = (Instant::now(), micros(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()));
    // A turn may have begun a while ago.
    let wall = wall.saturating_sub(micros(at.saturating_duration_since(now)));
    BOTH.set(Some((now, wall)));
    wall
}

/// A duration in microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait() {
        let begun = Instant::now();
        while Instant::now() == begun {}
    }

    #[test]
    fn in_a_turn_it_is_one_moment_and_outside_it_is_not() {
        let moments = || {
            let first = (now(), wall());
            wait();
            (first, (now(), wall()))
        };
        let (first, second) = turn(moments);
        assert_eq!(first, second);
        let (first, second) = moments();
        assert!(second.0 > first.0);
        let (outer, inner, again) = turn(|| (now(), turn(|| (wait(), now()).1), now()));
        assert!(inner > outer && again == outer);
    }

    #[test]
    fn the_wall_clock_is_that_of_the_system() {
        let system = || micros(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
        let slack = micros(LOOK_AGAIN);
        for _ in 0..1000 {
            let (before, told, after) = (system(), wall(), system());
            assert!(before <= told + slack && told <= after + slack, "{before} {told} {after}");
        }
    }
}
