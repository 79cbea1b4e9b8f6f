//! Room for handshakes of peers whose names are not known yet, shared by their addresses. Shakes no hand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handshakes at a time.
pub(crate) const MOST_SLOTS: usize = 64;
/// Handshakes at a time of one address.
pub(crate) const MOST_OF_ADDRESS: usize = 8;
/// Slots for handshakes.
#[derive(Debug, Default)]
pub(crate) struct HandshakeSlots(Mutex<BTreeMap<IpAddr, usize>>);

/// A slot, free again at the end of the value.
#[derive(Debug)]
pub(crate) struct HandshakeSlot {
    slots: Arc<HandshakeSlots>,
    network: IpAddr,
}

impl HandshakeSlots {
    /// Takes a slot for an address that its sender has proved; `None`: there is no room.
    pub(crate) fn take_slot(self: &Arc<Self>, address: IpAddr) -> Option<HandshakeSlot> {
        let network = network(address);
        let mut taken = self.lock();
        let (all, own) = (taken.values().sum::<usize>(), taken.get(&network).copied().unwrap_or(0));
        if all >= MOST_SLOTS || own >= MOST_OF_ADDRESS {
            return None;
        }
        *taken.entry(network).or_default() += 1;
        Some(HandshakeSlot { slots: Arc::clone(self), network })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        let left = taken.get(&self.network).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            taken.remove(&self.network);
        } else {
            taken.insert(self.network, left);
        }
    }
}

/// Gives what stands for an address: of IPv6, the 64 bits that one customer has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(slots: &Arc<HandshakeSlots>, address: &str, tries: usize) -> Vec<HandshakeSlot> {
        (0..tries).filter_map(|_| slots.take_slot(address.parse().unwrap())).collect()
    }

    #[test]
    fn an_address_has_its_share_of_the_slots() {
        let all = Arc::<HandshakeSlots>::default();
        let one = slots(&all, "10.0.0.1", 100);
        assert_eq!(one.len(), MOST_OF_ADDRESS);
        assert_eq!(slots(&all, "10.0.0.2", 1).len(), 1, "another address is let in");
        drop(one);
        assert!(all.lock().is_empty());
        // The addresses of one network of IPv6 are one, and an address of IPv4 stays the same in IPv6.
        for same in [["2001:db8::1", "2001:db8::ffff:2"], ["10.0.0.1", "::ffff:10.0.0.1"]] {
            let taken: Vec<_> = same.into_iter().flat_map(|address| slots(&all, address, 5)).collect();
            assert_eq!(taken.len(), MOST_OF_ADDRESS);
        }
    }

    #[test]
    fn all_addresses_have_the_slots_together() {
        let all = Arc::<HandshakeSlots>::default();
        let taken: Vec<_> = (0..200).flat_map(|at| slots(&all, &format!("10.3.0.{at}"), 1)).collect();
        assert_eq!(taken.len(), MOST_SLOTS);
    }
}
