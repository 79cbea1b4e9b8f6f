//! A timer that is set anew only when it rings.
//!
//! Most waits end long before their limit, and setting a timer costs more than a wake-up by one
//! that now and then rings too early. So a finished wait leaves its timer running for the next.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// A timer for a wait that may be long.
pub struct Alarm(Option<Pin<Box<Sleep>>>, Kind);

/// Kinds of waits. Timers handed between long and short waits would be set anew each time, so they are kept apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Long,
    Short,
}

/// Longest of the short waits.
const SHORT: Duration = Duration::from_secs(1);
/// So many timers of each kind are left running on a thread.
const SPARE: usize = 256;

/// Unused timers of one runtime, of no use in another.
struct Spare {
    /// `None`: the only runtime of the thread.
    of: Option<Id>,
    long: Vec<Pin<Box<Sleep>>>,
    short: Vec<Pin<Box<Sleep>>>,
}

thread_local! {
    static SPARES: RefCell<Option<Spare>> = const { RefCell::new(None) };
    /// The thread has one runtime and will have no other.
    static IS_SOLE: Cell<bool> = const { Cell::new(false) };
}

/// Declares that this thread has no runtime but one, so that nobody wanting a timer need ask for the runtime's id.
pub fn sole(is_sole: bool) {
    IS_SOLE.set(is_sole);
    SPARES.set(None);
}

/// Tells if this thread has one runtime and will have no other.
pub fn is_sole() -> bool {
    IS_SOLE.get()
}

impl Alarm {
    /// Takes or makes a timer for a wait of `longest` from `now` on. Needs a tokio runtime.
    pub fn new(now: Instant, longest: Duration) -> Self {
        let kind = if longest <= SHORT { Kind::Short } else { Kind::Long };
        let sleep = spare(kind, |kept| kept.pop()).flatten();
        Self(Some(sleep.unwrap_or_else(|| Box::pin(tokio::time::sleep_until(now + longest)))), kind)
    }

    /// Tells if the timer has yet to ring, and will by `end`, for a task registered before.
    pub fn rings_by(&self, end: Instant) -> bool {
        self.0.as_ref().is_some_and(|sleep| sleep.deadline() <= end && !sleep.is_elapsed())
    }

    /// Ready at `end`, by the clock, or later.
    pub fn poll(&mut self, end: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let Some(sleep) = &mut self.0 else { return Poll::Ready(()) };
        if sleep.deadline() > end {
            sleep.as_mut().reset(end);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(end);
        }
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let Some(sleep) = self.0.take() else { return };
        // One that has rung stays where it is set, and is set anew by the next who uses it.
        spare(self.1, |kept| {
            if kept.len() < SPARE {
                kept.push(sleep)
            }
        });
    }
}

/// Gives the spare timers of this thread and its runtime; `None` without a runtime.
fn spare<T>(kind: Kind, with: impl FnOnce(&mut Vec<Pin<Box<Sleep>>>) -> T) -> Option<T> {
    let of = if IS_SOLE.get() { None } else { Some(Handle::try_current().ok()?.id()) };
    SPARES
        .try_with(|spares| {
            // What is dropped here may hold the last of a task, and that a timer.
            let mut spares = spares.try_borrow_mut().ok()?;
            if spares.as_ref().is_none_or(|spare| spare.of != of) {
                *spares = Some(Spare { of, long: Vec::new(), short: Vec::new() });
            }
            let spare = spares.as_mut()?;
            Some(with(if kind == Kind::Long { &mut spare.long } else { &mut spare.short }))
        })
        .ok()?
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn kept(kind: Kind) -> usize {
        spare(kind, |kept| kept.len()).unwrap_or_default()
    }

    async fn ring(alarm: &mut Alarm, end: Instant) {
        poll_fn(|cx| alarm.poll(end, cx)).await;
    }

    #[tokio::test]
    async fn it_rings_at_its_end_whoever_had_it_before() {
        for wait in [60, 60, 5, 90, 2, 200, 3].map(Duration::from_millis) {
            let began = Instant::now();
            let mut alarm = Alarm::new(began, wait);
            ring(&mut alarm, began + wait).await;
            assert!(began.elapsed() >= wait, "{:?} of {wait:?}", began.elapsed());
            drop(alarm);
            // Done long before its end, as nearly always.
            drop(Alarm::new(Instant::now(), wait * 2));
        }
        assert_eq!(kept(Kind::Short), 1);
    }

    #[tokio::test]
    async fn short_waits_and_long_ones_do_not_share() {
        let now = Instant::now();
        let (short, long) = (Alarm::new(now, Duration::from_millis(50)), Alarm::new(now, Duration::from_secs(60)));
        drop((short, long));
        assert_eq!((kept(Kind::Short), kept(Kind::Long)), (1, 1));
    }

    #[test]
    fn what_is_left_of_a_runtime_that_is_gone_is_not_used() {
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let now = Instant::now();
                let mut alarm = Alarm::new(now, Duration::from_secs(2));
                ring(&mut alarm, now + Duration::from_millis(1)).await;
            });
        }
    }
}
