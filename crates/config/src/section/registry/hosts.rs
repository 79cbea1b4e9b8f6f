//! Hosts in addresses of registered servers, and the addresses behind them. Looks up no name.

use std::net::IpAddr;

use ipnet::IpNet;
use mcp_proto::glob::Glob;
use runtime::reach::Reach;
use url::{Host, Url};

/// Hosts to dial, besides loopback hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Globs over names.
    names: Vec<String>,
    /// Addresses and networks.
    networks: Vec<IpNet>,
    /// Globs over written addresses: networks in earlier versions.
    written: Vec<String>,
}

impl Hosts {
    /// Reads a list of names, addresses and networks (`10.1.0.0/16`).
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hosts = Self::default();
        for entry in entries {
            let bare = entry.trim_matches(['[', ']']);
            if let Some(network) = bare.parse().ok().or_else(|| bare.parse::<IpAddr>().ok().map(IpNet::from)) {
                hosts.networks.push(network);
            } else if entry == "*" {
                hosts.names.push(entry.into());
                hosts.written.push(entry.into());
            } else if is_like_an_address(entry) {
                hosts.written.push(entry.into());
            } else {
                hosts.names.push(entry.to_ascii_lowercase());
            }
        }
        hosts
    }

    /// Lists entries for written addresses, for people.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.written.iter().map(String::as_str).filter(|entry| *entry != "*")
    }

    /// Checks whether an address with a host may be dialled.
    pub fn allow(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Domain(name)) => self.names.iter().any(|glob| is_named(glob, &name.to_ascii_lowercase())),
            Some(Host::Ipv4(ip)) => self.allow_address(ip.into()),
            Some(Host::Ipv6(ip)) => self.allow_address(ip.into()),
            None => false,
        }
    }

    /// Finds the allowed addresses behind the host of an allowed URL.
    pub fn reach(&self, url: &Url) -> Reach {
        Reach::new(url, self.networks.clone())
    }

    fn allow_address(&self, ip: IpAddr) -> bool {
        let text = ip.to_string();
        self.networks.iter().any(|network| network.contains(&ip)) || self.written.iter().any(|glob| Glob::new(glob).matches(&text))
    }
}

/// Digits, dots, colons and stars alone are no name.
fn is_like_an_address(entry: &str) -> bool {
    entry.contains(':') || entry.chars().all(|c| c.is_ascii_digit() || ".*".contains(c))
}

/// Checks a name against a glob. A star in the last label stays in the label: `edge*` is no name of another domain.
fn is_named(glob: &str, name: &str) -> bool {
    let is_open = glob != "*" && glob.rsplit('.').next().is_some_and(|last| last.contains('*'));
    let is_as_deep = || glob.split('.').count() == name.split('.').count();
    if is_open {
        is_as_deep() && glob.split('.').zip(name.split('.')).all(|(glob, label)| Glob::new(glob).matches(label))
    } else {
        Glob::new(glob).matches(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn m16_a_name_is_no_address_however_it_begins() {
        let hosts = Hosts::of(["*.plant.example", "10.1.*", "192.168.7.0/24", "2001:db8::/32", "edge*", "172.16.0.9"]);
        for good in [
            "https://a.plant.example/",
            "http://10.1.2.3/",
            "http://192.168.7.250/",
            "http://[2001:db8::7]/",
            "http://edge7/",
            "http://172.16.0.9/",
        ] {
            assert!(hosts.allow(&url(good)), "{good}");
        }
        for bad in [
            "http://10.1.attacker.example/",
            "http://10.1.attacker/",
            "http://192.168.8.1/",
            "http://edge.attacker.example/",
            "http://edge7.plant.example.attacker.example/",
            "http://[2001:db9::7]/",
            "http://172.16.0.90/",
        ] {
            assert!(!hosts.allow(&url(bad)), "{bad}");
        }
        assert_eq!(hosts.written().collect::<Vec<_>>(), ["10.1.*"]);
        let all = Hosts::of(["*"]);
        assert!(all.allow(&url("http://x.y.example/")) && all.allow(&url("http://10.1.2.3/")) && all.written().next().is_none());
    }

    #[test]
    fn m16_a_name_that_leads_to_this_machine_or_its_cloud_is_not_followed() {
        let hosts = Hosts::of(["*.plant.example", "169.254.7.0/24"]);
        let of = |text: &str| hosts.reach(&url(text));
        let named = of("http://a.plant.example/");
        for (ip, may) in [
            ("10.1.2.3", true),
            ("203.0.113.7", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("0.0.0.0", false),
            ("169.254.169.254", false),
            ("169.254.7.9", true),
            ("fe80::1", false),
        ] {
            assert_eq!(named.allows(ip.parse().unwrap()), may, "{ip}");
        }
        let here = of("http://localhost/");
        assert!(here.allows("127.0.0.1".parse().unwrap()) && !here.allows("203.0.113.7".parse().unwrap()));
        let literal = of("http://10.1.2.3/");
        assert!(literal.allows("10.1.2.3".parse().unwrap()) && !literal.allows("10.1.2.4".parse().unwrap()));
    }
}
