//! Cancellation of a call. Every call has one and hardly any is used, so it is a flag and, once awaited, a waker: a `CancellationToken`,
//! with parents and children, takes three times as long. Does not act on cancellation.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Signal that an answer is no longer wanted. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_cancelled: AtomicBool,
    waiting: Mutex<Wakers>,
}

/// Waiting tasks, each once. Nearly always a single task, which stays after it has stopped waiting and is then woken in vain.
#[derive(Debug, Default)]
struct Wakers {
    first: Option<Waker>,
    others: Vec<Waker>,
}

/// Cancels on drop.
#[derive(Debug)]
pub struct Guard(Option<Cancel>);

impl Cancel {
    /// Signals that the answer is no longer wanted.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        let Wakers { first, others } = std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        first.into_iter().chain(others).for_each(Waker::wake);
    }

    /// Checks for cancellation.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Completes on cancellation.
    pub async fn cancelled(&self) {
        poll_fn(|cx| self.poll_cancelled(cx)).await;
    }

    /// Polls for cancellation, together with something else.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        {
            let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Wakers { first, others } = &mut *waiting;
            if !first.iter().chain(&*others).any(|known| known.will_wake(cx.waker())) {
                match first {
                    None => *first = Some(cx.waker().clone()),
                    Some(_) => others.push(cx.waker().clone()),
                }
            }
        }
        // A cancellation before the waker was stored did not wake it.
        if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Makes a guard that cancels on drop.
    pub fn drop_guard(self) -> Guard {
        Guard(Some(self))
    }
}

impl Guard {
    /// Disarms the guard.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::task::Wake;

    use super::*;

    #[tokio::test]
    async fn all_waiters_and_later_askers_see_the_cancellation() {
        let cancel = Cancel::default();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let cancel = cancel.clone();
                    async move { cancel.cancelled().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(!cancel.is_cancelled() && waiting.iter().all(|task| !task.is_finished()));
        cancel.cancel();
        for task in waiting {
            task.await.unwrap();
        }
        assert!(cancel.is_cancelled());
        cancel.cancelled().await;
    }

    #[test]
    fn a_task_is_noted_once_however_often_it_asks() {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(self: Arc<Self>) {}
        }
        let (cancel, task) = (Cancel::default(), Waker::from(Arc::new(Nobody)));
        (0..9).for_each(|_| assert!(cancel.poll_cancelled(&mut Context::from_waker(&task)).is_pending()));
        assert!(cancel.0.waiting.lock().unwrap().others.is_empty());
    }

    #[test]
    fn a_waiter_during_the_cancellation_misses_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..500 {
            let (cancel, start) = (Cancel::default(), Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    cancel.cancel();
                });
                start.wait();
                runtime.block_on(cancel.cancelled());
            });
        }
    }

    #[test]
    fn a_guard_cancels_unless_it_is_disarmed() {
        let cancel = Cancel::default();
        cancel.clone().drop_guard().disarm();
        assert!(!cancel.is_cancelled());
        drop(cancel.clone().drop_guard());
        assert!(cancel.is_cancelled());
    }
}
