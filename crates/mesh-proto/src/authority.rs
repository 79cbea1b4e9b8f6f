//! Alleged and proved identities of subservers (MCP-AX 4.2). Does not verify tokens or certificates: the driver hands in proved names.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A `dns:` name in lower case, without the `dns:`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority(Arc<str>);

impl Authority {
    /// Reads `dns:edge01.factory.example.com`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::of_dns_name(text.strip_prefix("dns:")?)
    }

    /// Reads a DNS name, as in a token's subject or a certificate's SAN. A wildcard names a zone, not a host, and is refused.
    pub fn of_dns_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let label = |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(inner) && !l.starts_with('-') && !l.ends_with('-');
        (name.len() <= 253 && name.split('.').all(label)).then(|| Self(name.into()))
    }

    /// Gives the DNS name.
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

/// Verified identity at the other end of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The peer's name in configuration, logs and records.
    pub principal: Arc<str>,
    /// Proved authorities: the subject of a signed token, the SANs of a certificate.
    pub proven: BTreeSet<Authority>,
}

impl Identity {
    /// Makes a peer without a proved authority.
    pub fn bare(principal: &str) -> Self {
        Self { principal: principal.into(), proven: BTreeSet::new() }
    }

    /// Adds a proved authority.
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
