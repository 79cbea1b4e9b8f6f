//! Addresses of peers, as far as they distinguish peers. Counts and decides nothing.

use std::net::{IpAddr, Ipv6Addr};

/// Address that distinguishes a peer: for IPv6 the network, within which a peer has any number of addresses.
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
