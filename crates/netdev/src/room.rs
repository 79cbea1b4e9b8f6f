//! Room for sessions of all devices of a process together: so many connections at a time, and so many logins. Where all are taken, a kept
//! session that nobody uses gives way. Opens none.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use net_proto::fault::{Fault, Trouble};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Connections of a process to devices.
const CONNECTIONS: usize = 256;
/// Logins under way at a time.
const LOGINS: usize = 64;
/// Longest wait for room.
const PATIENCE: Duration = Duration::from_secs(30);
/// Shortest time between two signs of life, which no device has to answer at the same time as the others.
const ALIVE: Duration = Duration::from_secs(10);

static ROOM: Semaphore = Semaphore::const_new(CONNECTIONS);
static DOOR: Semaphore = Semaphore::const_new(LOGINS);
static KEPT: Mutex<VecDeque<Weak<dyn KeptSession>>> = Mutex::new(VecDeque::new());

/// A session that is kept for the next caller.
pub(crate) trait KeptSession: Send + Sync {
    /// Ends the session, unless somebody uses it; false: somebody does, or there is none.
    fn give_way(&self) -> bool;
}

/// A place among the connections, until dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'static>);

/// A turn to log in, until dropped.
#[derive(Debug)]
pub(crate) struct LoginTurn(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'static>);

/// Enters a session that may give way.
pub(crate) fn enter(kept: Weak<dyn KeptSession>) {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.strong_count() > 0);
    all.push_back(kept);
}

/// Waits for a place among the connections.
pub(crate) async fn connection() -> Result<ConnectionPermit, Fault> {
    if let Ok(permit) = ROOM.try_acquire() {
        return Ok(ConnectionPermit(permit));
    }
    make_way();
    waited(&ROOM).await.map(ConnectionPermit)
}

/// Waits for a turn to log in.
pub(crate) async fn login() -> Result<LoginTurn, Fault> {
    waited(&DOOR).await.map(LoginTurn)
}

/// Time between two signs of life of a device: the same for a device, and spread over devices.
pub(crate) fn alive_every(name: &str) -> Duration {
    let spread = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 1000;
    ALIVE + ALIVE * spread / 1000
}

async fn waited(semaphore: &'static Semaphore) -> Result<SemaphorePermit<'static>, Fault> {
    let waited = tokio::time::timeout(PATIENCE, semaphore.acquire()).await;
    waited.ok().and_then(Result::ok).ok_or_else(|| Trouble::Busy.into())
}

/// Lets the session that gave way longest ago, or never, give way.
fn make_way() {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..all.len() {
        let Some(one) = all.pop_front() else { return };
        let Some(kept) = one.upgrade() else { continue };
        all.push_back(one);
        if kept.give_way() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_are_spread_over_devices() {
        let times: std::collections::BTreeSet<Duration> = (0..100).map(|number| alive_every(&format!("r{number}"))).collect();
        assert!(times.len() > 50 && times.iter().all(|time| (ALIVE..2 * ALIVE).contains(time)));
        assert_eq!(alive_every("r1"), alive_every("r1"));
    }
}
