//! Limits on attempts that fail, by the address they come from: for doors that ask strangers for no more than a proof. Knows nothing of what
//! is attempted.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failed attempts that an address has within the time below.
const MOST: u32 = 30;
const WITHIN: Duration = Duration::from_secs(60);
/// Addresses that are counted separately; all others share the attempts of one.
const MOST_ADDRESSES: usize = 4096;

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote(pub(crate) IpAddr);

/// Attempts of all addresses.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<IpAddr, Spent>>);

#[derive(Debug, Clone, Copy)]
struct Spent {
    attempts: u32,
    since: Instant,
}

impl Attempts {
    /// Takes one attempt; `false`: there is none left for now.
    pub(crate) fn take(&self, remote: Option<&Remote>, now: Instant) -> bool {
        let mut all = self.lock();
        let address = told_apart(remote);
        if all.len() >= MOST_ADDRESSES && !all.contains_key(&address) {
            all.retain(|_, spent| !spent.is_over(now));
        }
        let address = if all.len() < MOST_ADDRESSES || all.contains_key(&address) { address } else { SHARED };
        let spent = all.entry(address).or_insert(Spent { attempts: 0, since: now });
        if spent.is_over(now) {
            *spent = Spent { attempts: 0, since: now };
        }
        let has_one = spent.attempts < MOST;
        spent.attempts += u32::from(has_one);
        has_one
    }

    /// Gives an attempt back that did not fail.
    pub(crate) fn give_back(&self, remote: Option<&Remote>) {
        if let Some(spent) = self.lock().get_mut(&told_apart(remote)) {
            spent.attempts = spent.attempts.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Spent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spent {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= WITHIN
    }
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
        let tries = |address: &str, now| attempts.take(Some(&at(address)), now);
        assert_eq!((0..100).filter(|_| tries("192.0.2.1", start)).count(), MOST as usize);
        assert!(tries("192.0.2.2", start) && attempts.take(None, start));
        attempts.give_back(Some(&at("192.0.2.1")));
        assert!(tries("192.0.2.1", start) && !tries("192.0.2.1", start));
        assert!(tries("192.0.2.1", start + WITHIN));
        assert_eq!((0..100).filter(|n| tries(&format!("2001:db8::{n:x}"), start)).count(), MOST as usize, "one network");
    }

    #[test]
    fn what_is_kept_of_addresses_is_bounded() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..MOST_ADDRESSES as u32 * 2 {
            attempts.take(Some(&Remote(Ipv4Addr::from_bits(number + 1).into())), start);
        }
        assert!(attempts.lock().len() <= MOST_ADDRESSES + 1);
        assert!(!attempts.take(Some(&at("203.0.113.1")), start), "those that are not told apart share what one has");
        assert!(attempts.take(Some(&at("203.0.113.1")), start + WITHIN));
    }
}
