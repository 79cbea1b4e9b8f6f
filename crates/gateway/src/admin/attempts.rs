//! Limits on attempts that fail, by what they are about and the address they come from: for doors that ask strangers for no more than a proof.
//! Many people may share an address, so nobody is kept from one thing by what somebody else tries at another. Knows nothing of what is
//! attempted.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use door::port::Remote;

/// Failed attempts at one thing that an address has within the time below.
const MOST: u32 = 30;
const WITHIN: Duration = Duration::from_secs(60);
/// Pairs of a thing and an address that are counted separately; all other addresses share the attempts of one, at each thing.
const MOST_PAIRS: usize = 4096;

/// Attempts of all addresses.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<Pair, Spent>>);

/// The digest of what is attempted, and an address.
type Pair = ([u8; 32], IpAddr);

#[derive(Debug, Clone, Copy)]
struct Spent {
    attempts: u32,
    since: Instant,
}

impl Attempts {
    /// Takes one attempt at `what`; `false`: there is none left for now.
    pub(crate) fn take(&self, what: &str, remote: Option<&Remote>, now: Instant) -> bool {
        let mut all = self.lock();
        if all.len() >= MOST_PAIRS && !all.contains_key(&own(what, remote)) {
            all.retain(|_, spent| !spent.is_over(now));
        }
        let pair = pair(&all, what, remote);
        let spent = all.entry(pair).or_insert(Spent { attempts: 0, since: now });
        if spent.is_over(now) {
            *spent = Spent { attempts: 0, since: now };
        }
        let has_one = spent.attempts < MOST;
        spent.attempts += u32::from(has_one);
        has_one
    }

    /// Gives an attempt back that did not fail.
    pub(crate) fn give_back(&self, what: &str, remote: Option<&Remote>) {
        let mut all = self.lock();
        let pair = pair(&all, what, remote);
        if let Some(spent) = all.get_mut(&pair) {
            spent.attempts = spent.attempts.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Pair, Spent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spent {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= WITHIN
    }
}

/// The pair under which an attempt counts.
fn pair(all: &HashMap<Pair, Spent>, what: &str, remote: Option<&Remote>) -> Pair {
    let own = own(what, remote);
    if all.len() < MOST_PAIRS || all.contains_key(&own) { own } else { (own.0, SHARED) }
}

fn own(what: &str, remote: Option<&Remote>) -> Pair {
    (Sha256::digest(what).into(), told_apart(remote))
}

/// Stands for all addresses that are not counted separately.
const SHARED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Maps an address to the one that is counted: of IPv6 the /64 network, which one customer has.
fn told_apart(remote: Option<&Remote>) -> IpAddr {
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
    fn an_address_that_tries_in_vain_waits_and_keeps_no_other_from_trying() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let tries = |address: &str, now| attempts.take("a", Some(&at(address)), now);
        assert_eq!((0..100).filter(|_| tries("192.0.2.1", start)).count(), MOST as usize);
        assert!(tries("192.0.2.2", start) && attempts.take("a", None, start));
        attempts.give_back("a", Some(&at("192.0.2.1")));
        assert!(tries("192.0.2.1", start) && !tries("192.0.2.1", start));
        assert!(tries("192.0.2.1", start + WITHIN));
        assert_eq!((0..100).filter(|n| tries(&format!("2001:db8::{n:x}"), start)).count(), MOST as usize, "one network");
    }

    #[test]
    fn e4_an_address_that_tries_one_thing_in_vain_has_its_attempts_at_another() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let tries = |what: &str| attempts.take(what, Some(&at("192.0.2.1")), start);
        assert_eq!(((0..100).filter(|_| tries("a")).count(), (0..100).filter(|_| tries("b")).count()), (MOST as usize, MOST as usize));
        attempts.give_back("a", Some(&at("192.0.2.1")));
        assert!(!tries("b") && tries("a"));
    }

    #[test]
    fn what_is_kept_of_addresses_is_bounded() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..MOST_PAIRS as u32 * 2 {
            attempts.take("a", Some(&Remote(Ipv4Addr::from_bits(number + 1).into())), start);
        }
        assert!(attempts.lock().len() <= MOST_PAIRS + 1);
        let other = Some(at("203.0.113.1"));
        assert!(!attempts.take("a", other.as_ref(), start), "those that are not told apart share what one has");
        assert!(attempts.take("b", other.as_ref(), start), "at each thing");
        attempts.give_back("a", other.as_ref());
        assert!(attempts.take("a", other.as_ref(), start), "what did not fail is given back to those too");
        assert!(attempts.take("a", other.as_ref(), start + WITHIN));
    }
}
