//! Connections of clients, counted in all and by address, before any credential is known. Closes the longest idle when nearly all places
//! are taken. Reads nothing from them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::resolved::Limits;
use rustix::process::{Resource, getrlimit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use call::words::address::Address;
use call::words::shares::{Bound, Full};

/// Longest idle time between two requests.
pub const IDLE: Duration = Duration::from_secs(600);
/// Part of all places kept free by closing idle connections: 1 in `SPARE`.
const SPARE: usize = 16;
/// Pause after a search that found no idle connection.
const PAUSE: Duration = Duration::from_millis(10);

/// Connections of one listener.
#[derive(Debug)]
pub struct Connections {
    /// Fires when the gate shuts.
    stop: CancellationToken,
    began: Instant,
    /// The listener is for this machine only, so that all connections come from equal addresses.
    is_local: bool,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    count: u64,
    /// Time of the last search without any idle connection.
    looked: Option<Instant>,
    all: BTreeMap<u64, Arc<Connection>>,
    by_address: HashMap<Address, usize>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    pub ip: IpAddr,
    pub address: Address,
    /// Fires when the connection takes no more requests.
    pub stop: CancellationToken,
    began: Instant,
    /// Milliseconds from `began` to the beginning of idleness; 0 while busy.
    idle: AtomicU64,
    /// Requests under way, where several are possible.
    requests: AtomicU32,
}

/// Place of a connection, freed on drop.
#[derive(Debug)]
pub struct Place {
    of: Arc<Connections>,
    number: u64,
}

/// A request under way, until dropped.
pub struct Busy(Arc<Connection>);

impl Connections {
    /// Begins to count at a listener bound to `here`.
    pub fn new(here: Option<IpAddr>, stop: CancellationToken) -> Arc<Self> {
        let is_local = here.is_some_and(|ip| ip.to_canonical().is_loopback());
        Arc::new(Self { stop, began: Instant::now(), is_local, open: Mutex::default() })
    }

    /// Gives a connection from `ip` its place, unless there are too many.
    pub fn admit(self: &Arc<Self>, ip: IpAddr, limits: &Limits) -> Result<(Place, Arc<Connection>), Full> {
        let (address, most) = (Address::from(ip), limits.connections.min(openable()));
        let mut open = self.lock();
        if open.all.len() >= most - most / SPARE {
            open.close_idle(most.div_ceil(SPARE), Instant::now());
        }
        let own = open.by_address.get(&address).copied().unwrap_or_default() + 1;
        let bound = Bound { most, percent: if self.is_local { 100 } else { limits.share } };
        match limits.connections_per_address {
            Some(share) if own > share => return Err(Full::Share(share)),
            Some(_) => Bound { percent: 100, ..bound }.holds(own, open.all.len() + 1)?,
            None => bound.holds(own, open.all.len() + 1)?,
        }
        open.count += 1;
        let number = open.count;
        let (stop, began, idle) = (self.stop.child_token(), self.began, AtomicU64::new(0));
        let connection = Arc::new(Connection { ip, address, stop, began, idle, requests: AtomicU32::new(0) });
        connection.rest(Instant::now());
        open.all.insert(number, Arc::clone(&connection));
        *open.by_address.entry(address).or_default() += 1;
        Ok((Place { of: Arc::clone(self), number }, connection))
    }

    /// Closes some of the longest idle connections when the system has no more files.
    pub fn make_room(&self) {
        let mut open = self.lock();
        let some = open.all.len().div_ceil(SPARE);
        open.close_idle(some, Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most connections for which the system has files; a quarter is left to servers and the gate itself.
fn openable() -> usize {
    let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
    files.map_or(usize::MAX, |files| files - files / 4).max(1)
}

impl Open {
    /// Closes up to `most` of the longest idle connections. After a search in vain, the next waits for [`PAUSE`].
    fn close_idle(&mut self, most: usize, now: Instant) {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < PAUSE) {
            return;
        }
        let since = |(number, connection): (&u64, &Arc<Connection>)| Some((connection.idle_since()?, *number));
        let mut idle: Vec<_> = self.all.iter().filter_map(since).collect();
        if idle.len() > most {
            idle.select_nth_unstable(most);
            idle.truncate(most);
        }
        self.looked = idle.is_empty().then_some(now);
        for (_, number) in idle {
            if let Some(connection) = self.remove(number) {
                connection.stop.cancel();
            }
        }
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.all.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&connection.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&connection.address);
            }
        }
        Some(connection)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.of.lock().remove(self.number));
    }
}

impl Connection {
    /// Notes idleness from `now` on.
    pub fn rest(&self, now: Instant) {
        let since = now.saturating_duration_since(self.began).as_millis();
        self.idle.store(u64::try_from(since).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    fn idle_since(&self) -> Option<u64> {
        Some(self.idle.load(Ordering::Relaxed)).filter(|since| *since > 0)
    }

    /// Notes a request.
    pub fn stir(&self) {
        self.idle.store(0, Ordering::Relaxed);
    }

    /// Notes a request that may not be the only one.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.stir();
        Busy(Arc::clone(self))
    }

    /// Completes after `longest` without a request.
    pub async fn idle_for(&self, longest: Duration) {
        loop {
            let since = self.idle_since().and_then(|since| self.began.checked_add(Duration::from_millis(since)));
            let since = since.unwrap_or_else(Instant::now);
            let left = longest.saturating_sub(since.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

impl Busy {
    /// Keeps the connection busy for good, once upgraded from HTTP.
    pub fn stay(self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.rest(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections: usize, connections_per_address: Option<usize>) -> Limits {
        Limits { connections, connections_per_address, ..Limits::default() }
    }

    fn open(all: &Arc<Connections>, from: [u8; 4], limits: &Limits) -> Vec<(Place, Arc<Connection>)> {
        // All are busy.
        std::iter::from_fn(|| all.admit(from.into(), limits).ok().inspect(|(_, connection)| connection.stir())).collect()
    }

    fn listener(here: [u8; 4]) -> Arc<Connections> {
        Connections::new(Some(here.into()), CancellationToken::new())
    }

    #[test]
    fn m8_one_address_gets_its_share_and_no_more() {
        let all = listener([0, 0, 0, 0]);
        let (first, second) = (open(&all, [10, 0, 0, 1], &limits(32, None)), open(&all, [10, 0, 0, 2], &limits(32, None)));
        assert_eq!((first.len(), second.len()), (16, 8));
        drop(first);
        assert_eq!(open(&all, [10, 0, 0, 3], &limits(32, Some(5))).len(), 5);
        assert_eq!(open(&listener([127, 0, 0, 1]), [127, 0, 0, 1], &limits(32, None)).len(), 32, "nobody else can come");
        let networks = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"].map(|ip| Address::from(ip.parse::<IpAddr>().unwrap()));
        assert!(networks[0] == networks[1] && networks[0] != networks[2]);
    }

    #[test]
    fn m8_those_that_lie_idle_longest_make_room() {
        let (all, limits) = (listener([127, 0, 0, 1]), limits(32, None));
        let mut held: Vec<_> = (0..30).map(|_| all.admit([127, 0, 0, 1].into(), &limits).unwrap()).collect();
        held.iter().for_each(|(_, connection)| connection.stir());
        for (since, (_, connection)) in held.iter().enumerate().skip(10) {
            connection.rest(all.began + Duration::from_millis(1000 - since as u64));
        }
        held.extend(all.admit([127, 0, 0, 1].into(), &limits));
        let closed: Vec<_> = held.iter().enumerate().filter(|(_, (_, c))| c.stop.is_cancelled()).map(|(at, _)| at).collect();
        assert_eq!((closed, all.lock().all.len()), (vec![28, 29], 29));
        drop(held);
        assert!(all.lock().all.is_empty() && all.lock().by_address.is_empty());
    }

    #[test]
    fn a_connection_is_idle_after_its_last_request() {
        let (_place, connection) = listener([127, 0, 0, 1]).admit([127, 0, 0, 1].into(), &limits(2, None)).unwrap();
        let (first, second) = (connection.busy(), connection.busy());
        drop(first);
        assert_eq!(connection.idle_since(), None);
        drop(second);
        assert!(connection.idle_since().is_some());
    }
}
