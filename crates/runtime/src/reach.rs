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
    /// Only addresses of the internet are permitted, however the host is written.
    is_public: bool,
}

impl Reach {
    /// Permits the address named by `url`, or the addresses fit for its kind of name and `networks` besides.
    pub fn new(url: &Url, networks: Vec<IpNet>) -> Self {
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => Some(ip.into()),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) | None => None,
        };
        Self { is_loopback: is_loopback(url), literal, networks, is_public: false }
    }

    /// Permits addresses of the internet alone, for a URL of a stranger's choice.
    pub fn public() -> Self {
        Self { is_loopback: false, literal: None, networks: Vec::new(), is_public: true }
    }

    /// Tells if a connection to `ip` is permitted. A name may lead to any address of its domain's choice, except addresses closer than a
    /// network:
    /// this machine, and the metadata of a cloud.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        if self.is_public {
            return is_public(ip);
        }
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

/// Tells if an address is one of the internet (RFC 6890): no network of an organisation, of a carrier, of examples or of experiments, and
/// none with another address within.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            let is_shared = a == 100 && b & 0xc0 == 64;
            let is_special = a == 192 && b == 0 && c == 0 || a == 192 && b == 88 && c == 99 || a == 198 && b & 0xfe == 18;
            let is_elsewhere = a == 0 || a >= 224 || is_shared || is_special;
            !(is_elsewhere || is_near(ip.into()) || ip.is_private() || ip.is_documentation())
        }
        IpAddr::V6(ip) => {
            let [a, b, ..] = ip.segments();
            let is_special = a == 0x2001 && (b < 0x200 || b == 0xdb8) || a == 0x2002 || a == 0x3fff;
            a & 0xe000 == 0x2000 && !is_special
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_url_leads_to_the_internet_alone() {
        let reach = Reach::public();
        let allows = |ip: &&str| reach.allows(ip.parse().unwrap());
        let public = [
            "1.1.1.1",
            "100.63.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "2a00::1",
            "::ffff:1.1.1.1",
        ];
        assert_eq!(public.iter().filter(|ip| !allows(ip)).collect::<Vec<_>>(), Vec::<&&str>::new());
        let others = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ];
        assert_eq!(others.iter().filter(|ip| allows(ip)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
