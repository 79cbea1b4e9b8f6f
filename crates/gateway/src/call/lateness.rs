//! How late the gate is: how long what is ready to run waits for its turn, and whether new calls should stand in that queue at all.
//!
//! Only the gate's own queue counts. A server that takes its time makes nobody late here, however many wait for it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Waiting no longer than this is being busy, not late.
const LATE: Duration = Duration::from_millis(4);
/// What waits longer than `LATE` for so long is a queue that stands, not a burst that passes.
const STANDING: Duration = Duration::from_millis(10);
/// For so long after a standing queue the next one is believed at once.
const MEMORY: Duration = Duration::from_secs(1);
/// What was measured says nothing any more after this, and four times what it measured.
const STALE: Duration = Duration::from_millis(20);
/// Fewer calls under way than this are never the reason.
const FEW: usize = 128;
/// So many calls come in while the gate is late, before it refuses the first: a burst ends, an overload does not.
const BURST: u32 = 128;
/// Tasks that the queue of one of tokio's workers holds.
const WORKER_QUEUE: f64 = 256.0;
/// The wait is measured with every call of this many, one measurement at a time.
const EVERY: u32 = 16;

/// The lateness of a running gate.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    calls: AtomicU32,
    measuring: AtomicBool,
    late: AtomicBool,
    queue: Mutex<Queue>,
}

impl Lateness {
    /// Lets a call in that comes while `under_way` others are carried, or says how long the gate makes its calls wait.
    pub(crate) fn admit(self: &Arc<Self>, under_way: usize) -> Result<(), Duration> {
        let late = self.late.load(Ordering::Relaxed);
        if late || self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            self.measure();
        }
        if late { self.lock().admit(Instant::now(), under_way) } else { Ok(()) }
    }

    /// Measures the wait as any task feels it: by going to the end of the queue.
    fn measure(self: &Arc<Self>) {
        if self.measuring.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let began = Instant::now();
            turn().await;
            let now = Instant::now();
            let late = this.lock().handle_wait(now, whole_wait(now - began));
            this.late.store(late, Ordering::Relaxed);
            this.measuring.store(false, Ordering::Relaxed);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `own`, the wait in the queue of one worker, is with what waits outside, where a worker puts what its queue has no room for:
/// the worker hardly looks there before its own queue is empty.
fn whole_wait(own: Duration) -> Duration {
    let metrics = Handle::current().metrics();
    let outside = metrics.global_queue_depth() / metrics.num_workers().max(1);
    own.saturating_add(own.mul_f64(outside as f64 / WORKER_QUEUE))
}

/// Lets everything run that is ready. A task that wakes itself goes behind all others, which tokio's own `yield_now` does not promise.
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

/// What is known of the queue. Knows no clock.
#[derive(Debug)]
struct Queue {
    /// When the wait was first too long; `None`: the last one was not.
    since: Option<Instant>,
    /// Until when a queue counts as standing from its first moment.
    wary_until: Option<Instant>,
    /// The last wait that was too long, and when it was measured.
    last: Option<(Instant, Duration)>,
    standing: bool,
    burst: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { since: None, wary_until: None, last: None, standing: false, burst: BURST }
    }
}

impl Queue {
    /// Something has waited so long for its turn. Whether calls should be refused for it.
    fn handle_wait(&mut self, now: Instant, waited: Duration) -> bool {
        let wary = self.wary_until.is_some_and(|until| now < until);
        if !wary && !self.standing {
            self.burst = BURST;
        }
        if waited <= LATE {
            self.since = None;
            self.standing = false;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        self.last = Some((now, waited));
        self.standing = wary || now - since >= STANDING;
        if self.standing {
            self.wary_until = Some(now + MEMORY);
        }
        self.standing
    }

    /// Lets a call in, or says how long it would wait.
    fn admit(&mut self, now: Instant, under_way: usize) -> Result<(), Duration> {
        let Some((at, waited)) = self.last.filter(|_| self.standing && under_way >= FEW) else { return Ok(()) };
        if now > at + STALE + 4 * waited {
            return Ok(());
        }
        self.burst = self.burst.checked_sub(1).ok_or(waited)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A gate that carries one call in `cost`, without bound on what waits; gives its longest wait after the first tenth of a second.
    fn longest_wait(cost: Duration, shed_cost: Duration, gap: Duration) -> (Duration, u32) {
        let start = Instant::now();
        let (mut queue, mut free, mut next) = (Queue::default(), start, start);
        let (mut longest, mut refused) = (Duration::ZERO, 0);
        while next < start + 1000 * MS {
            let turn = free.max(next);
            let wait = turn - next;
            queue.handle_wait(turn, wait);
            let admitted = queue.admit(turn, 1000).is_ok();
            refused += u32::from(!admitted);
            if admitted && next > start + 100 * MS {
                longest = longest.max(wait);
            }
            free = turn + if admitted { cost } else { shed_cost };
            next += gap;
        }
        (longest, refused)
    }

    proptest! {
        #[test]
        fn what_is_let_in_waits_little_however_much_comes(cost in 10_u64..40, part in 2_u64..5, over in 11_u64..19) {
            let cost = Duration::from_micros(cost);
            let (longest, refused) = longest_wait(cost, cost / u32::try_from(part).unwrap(), cost * 10 / u32::try_from(over).unwrap());
            prop_assert!(longest <= LATE + MS, "{longest:?}");
            prop_assert!(refused > 0);
        }

        #[test]
        fn nobody_is_refused_below_the_capacity(cost in 10_u64..400, over in 4_u64..10) {
            let cost = Duration::from_micros(cost);
            prop_assert_eq!(longest_wait(cost, cost / 2, cost * 10 / u32::try_from(over).unwrap()).1, 0);
        }

        #[test]
        fn few_calls_and_lone_delays_are_no_reason(waits in proptest::collection::vec((0_u64..200, 0_u64..50), 0..200)) {
            let (mut lone, mut few, mut now) = (Queue::default(), Queue::default(), Instant::now());
            for (wait, pause) in waits {
                now += Duration::from_millis(pause);
                // One long wait and then a short one: somebody else had the processor.
                lone.handle_wait(now, Duration::from_millis(wait));
                lone.handle_wait(now, MS);
                prop_assert!((0..1000).all(|_| lone.admit(now, usize::MAX).is_ok()));
                few.handle_wait(now, Duration::from_millis(wait));
                prop_assert!((0..1000).all(|_| few.admit(now, FEW - 1).is_ok()));
            }
        }
    }

    #[test]
    fn a_burst_comes_in_and_an_old_measurement_refuses_nobody() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        assert!(!queue.handle_wait(now, 50 * MS));
        assert!(queue.handle_wait(now + STANDING, 50 * MS));
        let admitted = (0..1000).filter(|_| queue.admit(now + STANDING, FEW).is_ok()).count();
        assert_eq!(admitted, 128);
        assert_eq!(queue.admit(now + STANDING, FEW), Err(50 * MS));
        assert_eq!(queue.admit(now + 300 * MS, FEW), Ok(()));
    }

    /// Keeps the thread for itself.
    fn work(long: Duration) {
        let began = Instant::now();
        while began.elapsed() < long {}
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_wait_is_that_of_a_task_behind_all_others() {
        let inside = tokio::spawn(async {
            let lateness = Arc::new(Lateness::default());
            let busy: Vec<_> = (0..20).map(|_| tokio::spawn(async { work(2 * MS) })).collect();
            assert_eq!(lateness.admit(0), Ok(()));
            for task in busy {
                task.await.unwrap();
            }
            while lateness.measuring.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            lateness.lock().last
        });
        let last = inside.await.unwrap();
        assert!(last.is_some_and(|(_, waited)| waited >= 20 * MS), "{last:?}");
    }
}
