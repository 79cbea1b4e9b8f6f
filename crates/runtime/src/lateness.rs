//! Lateness of ready work on a worker, and a bound on calls under way while the lateness is too great.
//!
//! Only a worker's own queue counts. A slow server makes nobody late here, however many calls wait for it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::{together, worker};

/// Time after which a long wait is a standing queue, not a passing burst.
const STANDING: Duration = Duration::from_millis(20);
/// Time without waits and refusals after which the bound is lifted.
const MEMORY: Duration = Duration::from_secs(1);
/// So many calls under way are never too many.
const FEW: usize = 32;
/// Under a bound, this part of the longest wait is too long already: a standing queue must go before the bound rises again.
const PART: u32 = 2;
/// The wait is measured with every request of this many, one measurement at a time.
const EVERY: u32 = 16;

/// The lateness of a running gate.
#[derive(Debug)]
pub struct Lateness(Box<[Arc<Queue>]>);

/// The queue of one worker.
#[derive(Debug)]
struct Queue {
    requests: AtomicU32,
    measuring: AtomicBool,
    /// So many calls may be under way for each worker.
    bound: AtomicUsize,
    /// Somebody was refused since the last measurement.
    refused: AtomicBool,
    found: Mutex<Measurements>,
}

impl Lateness {
    /// Makes a lateness for each worker.
    pub fn of_workers() -> Self {
        let found = Mutex::default;
        let queue =
            || Queue { requests: 0.into(), measuring: false.into(), bound: usize::MAX.into(), refused: false.into(), found: found() };
        Self((0..worker::count()).map(|_| Arc::new(queue())).collect())
    }

    /// Tells if a further request can be taken while the whole gate carries `under_way` calls. Ready work may wait for `longest`.
    pub fn has_time(&self, longest: Duration, under_way: usize) -> bool {
        let Some(queue) = self.0.get(worker::index()) else { return true };
        let (bound, under_way) = (queue.bound.load(Ordering::Relaxed), under_way / self.0.len());
        if bound < usize::MAX || queue.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            queue.measure(longest, under_way);
        }
        together::late(bound < usize::MAX);
        let has_time = under_way < bound;
        if !has_time {
            queue.refused.store(true, Ordering::Relaxed);
        }
        has_time
    }
}

impl Queue {
    /// Measures the wait as any task feels it: by going to the end of the queue.
    fn measure(self: &Arc<Self>, longest: Duration, under_way: usize) {
        if self.measuring.load(Ordering::Relaxed) || self.measuring.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let began = Instant::now();
            turn().await;
            let now = Instant::now();
            let mut found = this.found.lock().unwrap_or_else(PoisonError::into_inner);
            if this.refused.swap(false, Ordering::Relaxed) {
                found.handle_refusal(now);
            }
            let bound = found.handle_wait(now, now - began, longest, under_way);
            this.bound.store(bound.unwrap_or(usize::MAX), Ordering::Relaxed);
            this.measuring.store(false, Ordering::Relaxed);
        });
    }
}

/// Lets all ready tasks run. A task that wakes itself goes behind all others, unlike with tokio's own `yield_now`.
async fn turn() {
    let mut gone = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut gone, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Measurements and the bound. Knows no clock.
///
/// The bound falls by a part and rises step by step, as in congestion control, so that admissions come evenly. All or
/// nothing would come in waves, each needing connections to servers that the next wave finds gone.
#[derive(Debug, Default)]
struct Measurements {
    /// Time since which the wait is too long; `None`: the last wait was short enough.
    since: Option<Instant>,
    /// When the wait was last too long, or somebody was refused.
    last: Option<Instant>,
    bound: Option<usize>,
}

impl Measurements {
    /// Somebody was refused because of the bound.
    fn handle_refusal(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// Something has waited for its turn while so many calls were under way. How many may be from now on.
    fn handle_wait(&mut self, now: Instant, waited: Duration, longest: Duration, under_way: usize) -> Option<usize> {
        if waited <= if self.bound.is_some() { longest / PART } else { longest } {
            self.since = None;
            let forgotten = self.last.is_none_or(|last| now - last >= MEMORY);
            self.bound = self.bound.filter(|_| !forgotten).map(|bound| bound + 1 + bound / 64);
        } else {
            let since = *self.since.get_or_insert(now);
            self.last = Some(now);
            self.bound = match self.bound {
                None if now - since < STANDING => None,
                // What is learnt from a wait comes as late as the wait is long: no time for small steps.
                _ if waited > longest => Some(FEW),
                bound => bound.map(|bound| (bound.min(under_way) * 7 / 8).max(FEW)),
            };
        }
        self.bound
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_millis(10);
    const LATE: Duration = Duration::from_millis(11);

    /// A gate that works in order, and carries a call in two turns of `cost` with a server's time between them. A
    /// refusal costs `refusal`. Gives the longest wait for a turn after the first two fifths of a second, and the number of refusals.
    fn longest_wait(cost: Duration, refusal: Duration, gap: Duration, server: Duration) -> (Duration, u32) {
        let start = Instant::now();
        let (mut found, mut free, mut bound, mut measured) = (Measurements::default(), start, None, start);
        let mut answers = std::collections::VecDeque::new();
        let (mut longest, mut refused, mut next) = (Duration::ZERO, 0, start);
        while next < start + 1000 * MS {
            let answer = answers.front().copied().filter(|answer| *answer <= next);
            let came = answer.unwrap_or(next);
            let turn = free.max(came);
            if turn >= measured {
                bound = found.handle_wait(turn, turn - came, LONGEST, answers.len());
                measured = turn + (turn - came);
            }
            let admitted = bound.is_none_or(|bound| answers.len() < bound);
            if answer.is_some() {
                answers.pop_front();
                free = turn + cost;
                continue;
            }
            next += gap;
            refused += u32::from(!admitted);
            if !admitted {
                found.handle_refusal(turn);
            }
            free = turn + if admitted { cost } else { refusal };
            if admitted {
                answers.push_back(free + server);
                longest = if next > start + 400 * MS { longest.max(turn - came) } else { longest };
            }
        }
        (longest, refused)
    }

    proptest! {
        #[test]
        fn what_is_let_in_waits_little_however_much_comes(cost in 5_u64..20, part in 2_u64..5, over in 11_u64..19, server in 1_u32..5) {
            let cost = Duration::from_micros(cost);
            let gap = cost * 20 / u32::try_from(over).unwrap();
            let (longest, refused) = longest_wait(cost, cost / u32::try_from(part).unwrap(), gap, MS * server);
            prop_assert!(longest <= LONGEST, "{longest:?}");
            prop_assert!(refused > 0);
        }

        #[test]
        fn nobody_is_refused_below_the_capacity(cost in 5_u64..200, over in 4_u64..10, server in 1_u32..5) {
            let cost = Duration::from_micros(cost);
            let gap = cost * 20 / u32::try_from(over).unwrap();
            prop_assert_eq!(longest_wait(cost, cost / 2, gap, MS * server).1, 0);
        }

        #[test]
        fn lone_delays_are_no_reason(pauses in proptest::collection::vec(0_u64..50, 0..200)) {
            let (mut found, mut now) = (Measurements::default(), Instant::now());
            for pause in pauses {
                now += Duration::from_millis(pause);
                // One long wait and then a short one: somebody else had the processor.
                prop_assert_eq!(found.handle_wait(now, LATE, LONGEST, 1000), None);
                prop_assert_eq!(found.handle_wait(now, LONGEST, LONGEST, 1000), None);
            }
        }

        #[test]
        fn few_calls_are_never_too_many(waits in proptest::collection::vec((0_u64..50, 0_u64..100, 0_usize..2000), 0..200)) {
            let (mut found, mut now) = (Measurements::default(), Instant::now());
            for (wait, pause, under_way) in waits {
                now += Duration::from_millis(pause);
                prop_assert!(found.handle_wait(now, Duration::from_millis(wait), LONGEST, under_way).is_none_or(|bound| bound >= FEW));
            }
        }
    }

    #[test]
    fn a_standing_queue_bounds_what_comes_until_it_has_been_gone_for_long() {
        let (mut found, now) = (Measurements::default(), Instant::now());
        assert_eq!(found.handle_wait(now, LATE, LONGEST, 1600), None);
        assert_eq!(found.handle_wait(now + STANDING, LATE, LONGEST, 1600), Some(FEW));
        let in_time = |found: &mut Measurements, at| found.handle_wait(at, LONGEST / PART, LONGEST, 1600);
        for step in 1..=40 {
            assert_eq!(in_time(&mut found, now + STANDING), Some(FEW + step + step.saturating_sub(32)));
        }
        // What would be short enough without a bound is too long as long as there is one.
        assert_eq!(found.handle_wait(now + STANDING, LONGEST, LONGEST, 1600), Some(70));
        assert_eq!(found.handle_wait(now + STANDING, LONGEST, LONGEST, 60), Some(52));
        found.handle_refusal(now + 3 * STANDING);
        assert_eq!(in_time(&mut found, now + STANDING + MEMORY), Some(53));
        assert_eq!(in_time(&mut found, now + 3 * STANDING + MEMORY), None);
    }

    /// Keeps the thread for itself.
    fn work(long: Duration) {
        let began = Instant::now();
        while began.elapsed() < long {}
    }

    #[tokio::test]
    async fn the_wait_is_that_of_a_task_behind_all_others() {
        let lateness = Lateness::of_workers();
        assert!(lateness.has_time(LONGEST, usize::MAX / 2));
        // They are behind the measurement when it begins, and before it when it ends.
        let busy: Vec<_> = (0..20).map(|_| tokio::spawn(async { work(2 * MS) })).collect();
        for task in busy {
            task.await.unwrap();
        }
        while lateness.0[0].measuring.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        assert!(lateness.0[0].found.lock().unwrap().last.is_some());
    }
}
