//! Whether somebody still wants an answer. Every call has one of these and hardly any is ever cancelled, so until then it is a flag and, once
//! it is waited for, a waker: a `CancellationToken`, which has parents and children, takes three times as long. What is done when it comes to
//! that is not known here.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_cancelled: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Whoever waits, each task once. One nearly always; it stays after it has stopped waiting, and is woken for nothing then.
#[derive(Debug, Default)]
struct Waiting {
    first: Option<Waker>,
    others: Vec<Waker>,
}

/// Cancels when it is dropped.
#[derive(Debug)]
pub struct Guard(Option<Cancel>);

impl Cancel {
    /// Nobody wants it any more.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        let Waiting { first, others } = std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        first.into_iter().chain(others).for_each(Waker::wake);
    }

    /// Whether nobody wants it.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Ready once nobody wants it.
    pub async fn cancelled(&self) {
        poll_fn(|cx| self.poll_cancelled(cx)).await;
    }

    /// The same, to be asked together with something else.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        {
            let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Waiting { first, others } = &mut *waiting;
            if !first.iter().chain(&*others).any(|known| known.will_wake(cx.waker())) {
                match first {
                    None => *first = Some(cx.waker().clone()),
                    Some(_) => others.push(cx.waker().clone()),
                }
            }
        }
        // Whoever cancelled before the waker was there did not see it.
        if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// What cancels when it is dropped.
    pub fn drop_guard(self) -> Guard {
        Guard(Some(self))
    }
}

impl Guard {
    /// Cancels no more.
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
    async fn all_who_wait_hear_of_it_and_whoever_asks_later_too() {
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
    fn whoever_begins_to_wait_while_it_is_cancelled_misses_nothing() {
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
