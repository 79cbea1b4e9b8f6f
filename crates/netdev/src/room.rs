//! Room for sessions of all devices of a process together: so many connections at a time, and so many logins. Where all are taken, a kept
//! session without a user gives way. Whoever confirms or restores has places beside. Devices with a failure at the last try share a part of the logins, and hinder no others. Opens none.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use equipment::DeviceLimits;
use net_proto::fault::{Code, Fault};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Longest wait for room, and of a device with a failure at the last try.
const PATIENCE: Duration = Duration::from_secs(30);
const SHORT_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks for a kept session without a user.
const AGAIN: Duration = Duration::from_millis(250);
/// Part of the logins for devices with a failure at the last try: a fourth.
const DOUBTFUL: usize = 4;
/// Shortest time between two signs of life, which no device has to answer at the same time as the others.
const ALIVE: Duration = Duration::from_secs(10);

/// Connections and logins beside all others, for confirmations and restores.
const SPARE: usize = 8;

tokio::task_local! {
    static SETTLING: ();
}

static ROOM: OnceLock<SessionRoom> = OnceLock::new();

/// Room of a process.
struct SessionRoom {
    limits: DeviceLimits,
    connections: Semaphore,
    receivers: Semaphore,
    logins: Semaphore,
    spare_connections: Semaphore,
    spare_logins: Semaphore,
    doubtful: Semaphore,
    kept: Mutex<VecDeque<Weak<dyn KeptSession>>>,
    patience: Duration,
}

/// Sets the bounds of this process. Later ones, and those after the first session, change nothing.
pub(crate) fn limit(limits: DeviceLimits) {
    ROOM.get_or_init(|| SessionRoom::new(limits, PATIENCE));
}

fn room() -> &'static SessionRoom {
    ROOM.get_or_init(|| SessionRoom::new(DeviceLimits::default(), PATIENCE))
}

/// A session kept for the next caller.
pub(crate) trait KeptSession: Send + Sync {
    /// Ends the session, unless somebody uses it; false: somebody does, or there is none.
    fn give_way(&self) -> bool;
}

/// A place among the connections, until dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'static>);

/// A place among the sessions for events, until dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'static>);

/// A turn to log in, until dropped.
#[derive(Debug)]
pub(crate) struct LoginTurn {
    _turn: SemaphorePermit<'static>,
    _doubtful: Option<SemaphorePermit<'static>>,
}

/// Does the work of a confirmation or a restore, held up by no caller.
pub(crate) async fn settling<T>(work: impl Future<Output = T>) -> T {
    // On the heap: the work of a device is long, and each layer around would have a copy on the stack.
    SETTLING.scope((), Box::pin(work)).await
}

/// Checks if the present work confirms or restores.
pub(crate) fn is_settling() -> bool {
    SETTLING.try_with(|()| ()).is_ok()
}

/// Enters a session that may give way.
pub(crate) fn enter(kept: Weak<dyn KeptSession>) {
    room().enter(kept);
}

/// Takes a place among the sessions for events, which never give way: half of all connections.
pub(crate) fn stream() -> Result<StreamPermit, Fault> {
    let full = || Fault::new(Code::Unreachable, "this process receives the events of as many devices as it may already").retryable();
    room().receivers.try_acquire().map(StreamPermit).map_err(|_| full())
}

/// Waits for a place among the connections and a turn to log in. `is_doubtful`: after a failure.
pub(crate) async fn login(is_doubtful: bool) -> Result<(LoginTurn, ConnectionPermit), Fault> {
    room().entry(is_doubtful).await
}

/// Time between two signs of life of a device: the same for a device, and spread over devices.
pub(crate) fn alive_every(name: &str) -> Duration {
    let spread = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 1000;
    ALIVE + ALIVE * spread / 1000
}

impl SessionRoom {
    fn new(limits: DeviceLimits, patience: Duration) -> Self {
        let DeviceLimits { connections, logins } = limits;
        let bounds = [connections, connections / 2, logins, logins / DOUBTFUL];
        let [all, receivers, turns, doubtful] = bounds.map(|most| Semaphore::new(most.max(1)));
        let [spare_connections, spare_logins] = [SPARE; 2].map(Semaphore::new);
        let kept = Mutex::default();
        Self { limits, connections: all, receivers, logins: turns, spare_connections, spare_logins, doubtful, kept, patience }
    }

    /// A connection first: whoever waits for one holds no turn that others could use.
    async fn entry(&'static self, is_doubtful: bool) -> Result<(LoginTurn, ConnectionPermit), Fault> {
        let doubtful = if is_doubtful && !is_settling() { Some(self.doubtful().await?) } else { None };
        let place = self.connection().await?;
        Ok((LoginTurn { _turn: self.login().await?, _doubtful: doubtful }, ConnectionPermit(place)))
    }

    fn enter(&self, kept: Weak<dyn KeptSession>) {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push_back(kept);
    }

    async fn connection(&self) -> Result<SemaphorePermit<'_>, Fault> {
        if let Ok(permit) = self.connections.try_acquire() {
            return Ok(permit);
        }
        if let Some(permit) = spare(&self.spare_connections) {
            return Ok(permit);
        }
        let making_way = async {
            loop {
                self.make_way();
                tokio::time::sleep(AGAIN).await;
            }
        };
        let waited = async {
            tokio::select! {
                permit = self.connections.acquire() => permit.ok(),
                () = making_way => None,
            }
        };
        let most = self.limits.connections;
        within(self.patience, waited).await.ok_or_else(|| full(&format!("all {most} connections to devices are in use (`connections`")))
    }

    async fn login(&self) -> Result<SemaphorePermit<'_>, Fault> {
        let most = self.limits.logins;
        if let Some(permit) = self.logins.try_acquire().ok().or_else(|| spare(&self.spare_logins)) {
            return Ok(permit);
        }
        let waited = async { self.logins.acquire().await.ok() };
        within(self.patience, waited).await.ok_or_else(|| full(&format!("{most} logins are under way (`logins`")))
    }

    async fn doubtful(&self) -> Result<SemaphorePermit<'_>, Fault> {
        let waited = async { self.doubtful.acquire().await.ok() };
        within(self.patience.min(SHORT_PATIENCE), waited).await.ok_or_else(|| {
            let detail = "this device did not answer the last time, and others that did not either are being tried";
            Fault::new(Code::Unreachable, detail).retryable()
        })
    }

    /// Lets the session that gave way longest ago, or never, give way.
    fn make_way(&self) {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..all.len() {
            let Some(one) = all.pop_front() else { return };
            let Some(kept) = one.upgrade() else { continue };
            all.push_back(one);
            if kept.give_way() {
                return;
            }
        }
    }
}

/// A place beside all others, for a confirmation or a restore.
fn spare(places: &Semaphore) -> Option<SemaphorePermit<'_>> {
    is_settling().then(|| places.try_acquire().ok()).flatten()
}

async fn within<T>(time: Duration, waited: impl Future<Output = Option<T>>) -> Option<T> {
    tokio::time::timeout(time, waited).await.ok().flatten()
}

fn full(what: &str) -> Fault {
    Fault::new(Code::Unreachable, format!("{what} in [device_limits]): try again, or raise the bound")).retryable()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A kept session that is busy for some looks, and frees its place then.
    struct BusySession(AtomicUsize, Mutex<Option<SemaphorePermit<'static>>>);

    impl KeptSession for BusySession {
        fn give_way(&self) -> bool {
            let is_busy = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |looks| looks.checked_sub(1)).is_ok();
            !is_busy && self.1.lock().unwrap().take().is_some()
        }
    }

    fn small(patience: Duration) -> &'static SessionRoom {
        Box::leak(Box::new(SessionRoom::new(DeviceLimits { connections: 2, logins: 1 }, patience)))
    }

    #[tokio::test]
    async fn who_finds_all_connections_taken_is_told_the_bound() {
        let room = small(Duration::from_millis(1));
        let (one, _two) = (room.connection().await.unwrap(), room.connection().await.unwrap());
        let refused = room.connection().await.unwrap_err();
        assert!(
            refused.may_retry && refused.detail.contains("all 2 connections") && refused.detail.contains("[device_limits]"),
            "{refused:?}"
        );
        drop(one);
        assert!(room.connection().await.is_ok());
        let _turn = room.login().await.unwrap();
        assert!(room.login().await.unwrap_err().detail.contains("1 logins"));
    }

    #[tokio::test]
    async fn a_kept_session_gives_way_after_it_was_busy() {
        let room = small(PATIENCE);
        let kept = Arc::new(BusySession(AtomicUsize::new(1), Mutex::new(Some(room.connection().await.unwrap()))));
        let weak: Weak<BusySession> = Arc::downgrade(&kept);
        room.enter(weak);
        let _other = room.connection().await.unwrap();
        assert!(room.connection().await.is_ok());
    }

    #[tokio::test]
    async fn devices_that_failed_hinder_no_others() {
        let room = Box::leak(Box::new(SessionRoom::new(DeviceLimits { connections: 8, logins: 4 }, Duration::from_millis(1))));
        let _doubtful = (room.doubtful().await.unwrap(), room.login().await.unwrap());
        assert!(room.doubtful().await.unwrap_err().detail.contains("the last time"));
        assert!(room.login().await.is_ok());
    }

    #[tokio::test]
    async fn whoever_waits_for_a_connection_holds_no_turn() {
        let room = small(PATIENCE);
        let _all = (room.connection().await.unwrap(), room.connection().await.unwrap());
        let waiting = tokio::spawn(room.entry(false));
        tokio::task::yield_now().await;
        let turn = tokio::time::timeout(Duration::from_secs(5), room.login()).await;
        assert!(turn.is_ok_and(|turn| turn.is_ok()) && !waiting.is_finished());
        waiting.abort();
    }

    #[tokio::test]
    async fn nm_09_no_reader_holds_up_whoever_restores() {
        let room = small(Duration::from_millis(1));
        let _readers = (room.connection().await.unwrap(), room.connection().await.unwrap(), room.login().await.unwrap());
        assert!(room.entry(false).await.is_err(), "readers have all places");
        assert!(settling(room.entry(true)).await.is_ok());
    }

    #[test]
    fn signs_of_life_are_spread_over_devices() {
        let times: std::collections::BTreeSet<Duration> = (0..100).map(|number| alive_every(&format!("r{number}"))).collect();
        assert!(times.len() > 50 && times.iter().all(|time| (ALIVE..2 * ALIVE).contains(time)));
        assert_eq!(alive_every("r1"), alive_every("r1"));
    }
}
