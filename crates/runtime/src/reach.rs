//! To which addresses a name may lead when it is dialled. Looks up no name.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// To which addresses the host of one URL may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    is_loopback: bool,
    literal: Option<IpAddr>,
    networks: Vec<IpNet>,
}

impl Reach {
    /// The addresses to which `url` may lead: as it says itself where it names an address, else as its kind of name does, and `networks` besides.
    pub fn new(url: &Url, networks: Vec<IpNet>) -> Self {
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => Some(ip.into()),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) | None => None,
        };
        Self { is_loopback: is_loopback(url), literal, networks }
    }

    /// Whether a connection may be made there. A name may lead to whatever its domain says, but to none of what is nearer than a network:
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

/// Tells a URL whose host is this machine by its name or address.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
