//! Addresses of peers, as far as they tell one from another. Counting by them is done elsewhere, and nothing is decided here.

use std::net::{IpAddr, Ipv6Addr};

/// An address as far as it tells one peer from another: of IPv6 the network, of which a peer has as many addresses as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) & !u128::from(u64::MAX)).into(),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}
