//! Sends that leave a worker one behind the other. To send to somebody who sleeps takes most of the time that a send takes, for the kernel has
//! to wake him; what follows while he is awake costs the rest. So where a worker carries many calls, all that is ready is read and worked
//! through first, and then sent. Among few, nobody waits for others: their peers would have nothing to do meanwhile. And nobody does on a
//! worker that is late: each turn through all that is ready makes it later. Whether it is, is not decided here.

use std::cell::Cell;

use crate::alarm;

/// So many calls are few. Measured with 1 to 128 connections on two cores: up to sixteen, waiting costs more than it brings, and from
/// thirty-two on it is the other way round.
const FEW: usize = 24;

thread_local! {
    static CARRIED: Cell<usize> = const { Cell::new(0) };
    static IS_LATE: Cell<bool> = const { Cell::new(false) };
}

/// A call that this worker carries, for as long as this is kept.
pub struct Carried(());

impl Carried {
    /// Counts one more call.
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

/// Whether this worker has more to do than it can.
pub fn late(is_late: bool) {
    IS_LATE.set(is_late);
}

/// Whether this worker carries many calls, and is in time.
pub fn are_many() -> bool {
    CARRIED.get() > FEW && !IS_LATE.get()
}

/// Whether what is to be sent may be left to be sent together with what others send, which takes a thread that is a worker.
pub fn is_worth_it() -> bool {
    are_many() && alarm::is_sole()
}

/// Lets everything else that is ready on this worker come to its own send, before the one that follows this. Twice as dear as to leave it
/// (`tcp.rs`), for the whole task has another turn; for what can't be left, TLS above all.
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
