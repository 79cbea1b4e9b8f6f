//! Limits on failed attempts, counted by subject and address, for doors that ask strangers for no more than a proof. Many people may share
//! an address, so failures at one subject block nobody at another. Does not know the subjects.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use door::port::Remote;

/// Failed attempts of an address at one subject, within [`WITHIN`].
const MOST: u32 = 30;
const WITHIN: Duration = Duration::from_secs(60);
/// Pairs of subject and address counted separately; all further addresses share their attempts, for each subject.
const MOST_PAIRS: usize = 4096;

/// Attempts of all addresses.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<Pair, AttemptCount>>);

/// Digest of the subject, and an address.
type Pair = ([u8; 32], IpAddr);

#[derive(Debug, Clone, Copy)]
struct AttemptCount {
    attempts: u32,
    since: Instant,
}

impl Attempts {
    /// Takes an attempt at `what`; `false` when none is left for now.
    pub(crate) fn take_one(&self, what: &str, remote: Option<&Remote>, now: Instant) -> bool {
        let mut all = self.lock();
        if all.len() >= MOST_PAIRS && !all.contains_key(&own(what, remote)) {
            all.retain(|_, spent| !spent.is_over(now));
        }
        let pair = pair(&all, what, remote);
        let spent = all.entry(pair).or_insert(AttemptCount { attempts: 0, since: now });
        if spent.is_over(now) {
            *spent = AttemptCount { attempts: 0, since: now };
        }
        let has_one = spent.attempts < MOST;
        spent.attempts += u32::from(has_one);
        has_one
    }

    /// Gives back an attempt that succeeded.
    pub(crate) fn give_back(&self, what: &str, remote: Option<&Remote>) {
        let mut all = self.lock();
        let pair = pair(&all, what, remote);
        if let Some(spent) = all.get_mut(&pair) {
            spent.attempts = spent.attempts.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Pair, AttemptCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttemptCount {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= WITHIN
    }
}

fn pair(all: &HashMap<Pair, AttemptCount>, what: &str, remote: Option<&Remote>) -> Pair {
    let own = own(what, remote);
    if all.len() < MOST_PAIRS || all.contains_key(&own) { own } else { (own.0, SHARED) }
}

fn own(what: &str, remote: Option<&Remote>) -> Pair {
    (Sha256::digest(what).into(), masked(remote))
}

/// Stands for all addresses that are not counted separately.
const SHARED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Masks an address: IPv6 to the /64 network, since one customer has all of that.
fn masked(remote: Option<&Remote>) -> IpAddr {
    match remote.map(|remote| remote.0.to_canonical()) {
        Some(IpAddr::V6(address)) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        Some(address) => address,
        None => SHARED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Remote {
        Remote(text.parse().unwrap())
    }

    #[test]
    fn an_address_out_of_attempts_waits_alone() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let tries = |address: &str, now| attempts.take_one("a", Some(&at(address)), now);
        assert_eq!((0..100).filter(|_| tries("192.0.2.1", start)).count(), MOST as usize);
        assert!(tries("192.0.2.2", start) && attempts.take_one("a", None, start));
        attempts.give_back("a", Some(&at("192.0.2.1")));
        assert!(tries("192.0.2.1", start) && !tries("192.0.2.1", start));
        assert!(tries("192.0.2.1", start + WITHIN));
        assert_eq!((0..100).filter(|n| tries(&format!("2001:db8::{n:x}"), start)).count(), MOST as usize, "one network");
    }

    #[test]
    fn e4_attempts_are_counted_for_each_subject() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let tries = |what: &str| attempts.take_one(what, Some(&at("192.0.2.1")), start);
        assert_eq!(((0..100).filter(|_| tries("a")).count(), (0..100).filter(|_| tries("b")).count()), (MOST as usize, MOST as usize));
        attempts.give_back("a", Some(&at("192.0.2.1")));
        assert!(!tries("b") && tries("a"));
    }

    #[test]
    fn what_is_kept_of_addresses_is_bounded() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..MOST_PAIRS as u32 * 2 {
            attempts.take_one("a", Some(&Remote(Ipv4Addr::from_bits(number + 1).into())), start);
        }
        assert!(attempts.lock().len() <= MOST_PAIRS + 1);
        let other = Some(at("203.0.113.1"));
        assert!(!attempts.take_one("a", other.as_ref(), start), "those that are not told apart share what one has");
        assert!(attempts.take_one("b", other.as_ref(), start), "at each thing");
        attempts.give_back("a", other.as_ref());
        assert!(attempts.take_one("a", other.as_ref(), start), "what did not fail is given back to those too");
        assert!(attempts.take_one("a", other.as_ref(), start + WITHIN));
    }
}
