//! Sends that leave a worker one behind the other. Most of the cost of a send to a sleeping peer is the kernel's work of waking
//! the peer; further sends to an awake peer cost the rest. So where a worker carries many calls, all ready input is read and worked
//! through first, and then answers are sent. Among few calls nobody waits: peers would have nothing to do meanwhile. Nor does anybody on a
//! late worker: each turn through all ready work makes the worker later. Lateness is not measured here.

use std::cell::Cell;

use crate::alarm;

/// So many calls are few. Measured with 1 to 128 connections on two cores: up to sixteen, waiting costs more than it brings, and from
/// thirty-two on it is the other way round.
const FEW: usize = 24;

thread_local! {
    static CARRIED: Cell<usize> = const { Cell::new(0) };
    static IS_LATE: Cell<bool> = const { Cell::new(false) };
}

/// A call carried by this worker, counted until dropped.
pub struct Carried(());

impl Carried {
    /// Counts another call.
    pub fn count() -> Self {
        CARRIED.set(CARRIED.get() + 1);
        Self(())
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        // A runtime that ends drops what it carried on another thread.
        CARRIED.set(CARRIED.get().saturating_sub(1));
    }
}

/// Notes if this worker has more to do than it can.
pub fn late(is_late: bool) {
    IS_LATE.set(is_late);
}

/// Tells if this worker carries many calls, and is in time.
pub fn are_many() -> bool {
    CARRIED.get() > FEW && !IS_LATE.get()
}

/// Tells if a send may be left to the common turn, which takes a worker's thread.
pub fn is_worth_it() -> bool {
    are_many() && alarm::is_sole()
}

/// Lets all other ready tasks of this worker reach their own sends first. Twice as dear as posting
/// (`tcp.rs`), for the whole task has another turn; for sends that can't be posted, TLS above all.
pub async fn others_first() {
    if are_many() {
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn only_among_many_calls_and_in_time_others_go_first() {
        let is_sent_at_once = || pin!(others_first()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let mut carried: Vec<Carried> = (0..FEW).map(|_| Carried::count()).collect();
        assert!(is_sent_at_once());
        carried.push(Carried::count());
        assert!(!is_sent_at_once());
        late(true);
        assert!(is_sent_at_once());
        late(false);
        assert!(!is_sent_at_once());
        carried.truncate(1);
        assert!(is_sent_at_once());
        drop(carried);
        assert_eq!(CARRIED.get(), 0);
    }
}
