//! The addresses that a name may lead to when dialled. Looks up no name.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// The permitted addresses for the host of one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    is_loopback: bool,
    literal: Option<IpAddr>,
    networks: Vec<IpNet>,
}

impl Reach {
    /// Permits the address named by `url`, or the addresses fit for its kind of name and `networks` besides.
    pub fn new(url: &Url, networks: Vec<IpNet>) -> Self {
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => Some(ip.into()),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) | None => None,
        };
        Self { is_loopback: is_loopback(url), literal, networks }
    }

    /// Tells if a connection to `ip` is permitted. A name may lead to any address of its domain's choice, except addresses closer than a
    /// network:
    /// this machine, and the metadata of a cloud.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        if let Some(literal) = self.literal {
            return ip == literal.to_canonical();
        }
        let is_listed = || self.networks.iter().any(|network| network.contains(&ip));
        if self.is_loopback { ip.is_loopback() || is_listed() } else { !is_near(ip) || is_listed() }
    }
}

fn is_near(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || is_link_local
}

/// Tells if the host of a URL is this machine, by name or address.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
