//! Who a subserver says it is, and what of that has been proved (MCP-AX 4.2). Does not check tokens or certificates:
//! whoever does hands in the names they prove.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A `dns:` name, without the `dns:`, in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority(Arc<str>);

impl Authority {
    /// Reads `dns:edge01.factory.example.com`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::of_dns_name(text.strip_prefix("dns:")?)
    }

    /// The authority of a DNS name, as a token's subject or a certificate's SAN has it. A wildcard names a zone, nobody in
    /// particular, and so is none.
    pub fn of_dns_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let label = |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(inner) && !l.starts_with('-') && !l.ends_with('-');
        (name.len() <= 253 && name.split('.').all(label)).then(|| Self(name.into()))
    }

    /// The DNS name.
    pub fn dns_name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dns:{}", self.0)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Who is at the other end of a link, as far as it was verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The name by which the configuration, logs and records know the peer.
    pub principal: Arc<str>,
    /// What it has proved to be: the subject of a signed token, the SANs of its certificate.
    pub proven: BTreeSet<Authority>,
}

impl Identity {
    /// A peer that has proved no authority.
    pub fn bare(principal: &str) -> Self {
        Self { principal: principal.into(), proven: BTreeSet::new() }
    }

    /// The same peer, having proved this authority too.
    #[must_use]
    pub fn with(mut self, authority: Authority) -> Self {
        self.proven.insert(authority);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_dns_name() {
        assert_eq!(Authority::parse("dns:Edge01.example.COM").unwrap().to_string(), "dns:edge01.example.com");
        for bad in
            ["edge01", "dns:", "dns:a..b", "dns:*.example.com", "dns:-a", "dns:a b", "uri:x", &format!("dns:{}", "a.".repeat(127) + "aa")]
        {
            assert_eq!(Authority::parse(bad), None, "{bad}");
        }
    }
}
