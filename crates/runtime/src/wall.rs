//! The clock on the wall, by which certificates and tokens end. Which of them end is not decided here.

use std::time::{Duration, SystemTime};

#[cfg(feature = "held-clock")]
pub use held::{now, rest};

/// A timer does not know that the clock was set, so that it is looked at again after so long.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// The time on the wall.
#[cfg(not(feature = "held-clock"))]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Ready when it is this time, or later.
pub async fn passed(until: SystemTime) {
    while let Some(left) = until.duration_since(now()).ok().filter(|left| !left.is_zero()) {
        rest(left.min(LOOK_AGAIN) + Duration::from_millis(1)).await;
    }
}

#[cfg(not(feature = "held-clock"))]
async fn rest(length: Duration) {
    tokio::time::sleep(length).await;
}

/// A clock that a test holds in its hand, in its own thread.
#[cfg(feature = "held-clock")]
pub mod held {
    use std::cell::RefCell;
    use std::time::{Duration, SystemTime};

    use tokio::sync::watch;

    thread_local! {
        static HAND: RefCell<Option<watch::Sender<SystemTime>>> = const { RefCell::new(None) };
    }

    /// From now on it is this time, until it is set again.
    pub fn set(time: SystemTime) {
        HAND.with_borrow_mut(|hand| hand.get_or_insert_with(|| watch::channel(time).0).send_replace(time));
    }

    /// The time that is held, or that on the wall.
    pub fn now() -> SystemTime {
        HAND.with_borrow(|hand| hand.as_ref().map_or_else(SystemTime::now, |hand| *hand.borrow()))
    }

    /// Until it is set, where it is held.
    pub async fn rest(length: Duration) {
        match HAND.with_borrow(|hand| hand.as_ref().map(watch::Sender::subscribe)) {
            Some(mut hand) => drop(hand.changed().await),
            None => tokio::time::sleep(length).await,
        }
    }
}
