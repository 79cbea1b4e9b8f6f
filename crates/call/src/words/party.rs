//! Other end of a connection, as far as the connection proves it. Does not look at tokens, which come with requests.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use mesh_proto::authority::Authority;

use runtime::wall::passed;

/// URI (SAN) of the gate that holds an authority's key. No other certificate has it, so that knowing the authority means knowing its gate.
pub const GATE_URI: &str = "urn:banyan:gate";

/// Other end of a connection. Connections without TLS from this machine have none.
#[derive(Debug, PartialEq, Eq)]
pub struct Party {
    private: bool,
    here: bool,
    certified: Option<VerifiedCertificate>,
    proven: BTreeSet<Authority>,
}

/// Names in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// DNS names (SAN), in order.
    pub dns: Vec<String>,
    /// URIs (SAN), in order.
    pub uris: Vec<String>,
    /// IP addresses (SAN).
    pub ips: Vec<IpAddr>,
    /// Serial number in hexadecimal digits.
    pub serial: String,
    /// End of the certificate.
    pub until: SystemTime,
}

/// Content of a verified client certificate.
#[derive(Debug, PartialEq, Eq)]
pub struct VerifiedCertificate {
    /// `spiffe://…`, else `dns:…`.
    pub principal: Arc<str>,
    pub names: Names,
}

impl Party {
    /// Makes a peer without TLS; `None` for one on this machine, of which there is nothing to say.
    pub fn plain(address: SocketAddr) -> Option<Arc<Self>> {
        let local = address.ip().to_canonical().is_loopback();
        (!local).then(|| Arc::new(Self { private: false, here: false, certified: None, proven: BTreeSet::new() }))
    }

    /// Makes a peer with TLS, `here` on this machine or elsewhere, and its verified certificate. A certificate without a usable name counts
    /// as none.
    pub fn tls(certificate: Option<Names>, here: bool) -> Arc<Self> {
        let certified = certificate.and_then(VerifiedCertificate::new);
        let proven = certified.iter().flat_map(|c| &c.names.dns).filter_map(|name| Authority::of_dns_name(name)).collect();
        Arc::new(Self { private: true, here, certified, proven })
    }

    /// Makes a peer count as elsewhere, whatever its address: a proxy on this machine has the address of all its clients.
    pub fn elsewhere(party: Option<&Arc<Self>>) -> Arc<Self> {
        match party {
            None => Arc::new(Self { private: false, here: false, certified: None, proven: BTreeSet::new() }),
            Some(party) if !party.here => Arc::clone(party),
            Some(party) => {
                let certified = party.certified.as_ref();
                let certified =
                    certified.map(|one| VerifiedCertificate { principal: Arc::clone(&one.principal), names: one.names.clone() });
                Arc::new(Self { private: party.private, here: false, certified, proven: party.proven.clone() })
            }
        }
    }

    /// Checks that nobody in between can listen in.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Checks for a peer on this machine.
    pub fn is_here(&self) -> bool {
        self.here
    }

    /// Certificate shown.
    pub fn certified(&self) -> Option<&VerifiedCertificate> {
        self.certified.as_ref()
    }

    /// Authorities proved by the certificate.
    pub fn proven(&self) -> &BTreeSet<Authority> {
        &self.proven
    }

    /// Completes at the end of the certificate; never without one.
    pub async fn ended(&self) {
        match &self.certified {
            Some(certified) => passed(certified.names.until).await,
            None => std::future::pending().await,
        }
    }
}

impl VerifiedCertificate {
    /// Reads the names; `None` without a usable one.
    fn new(names: Names) -> Option<Self> {
        let spiffe = names.uris.iter().find(|uri| is_spiffe_id(uri)).map(|uri| uri.as_str().into());
        let dns = || names.dns.iter().find_map(|name| Authority::of_dns_name(name)).map(|name| name.to_string().into());
        let principal = spiffe.or_else(dns)?;
        Some(Self { principal, names })
    }
}

/// Checks for a SPIFFE ID (SPIFFE-ID section 2): a trust domain and a path of few characters, 2,048 bytes at most. Names stand in texts for
/// people and models.
fn is_spiffe_id(uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix("spiffe://") else { return false };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'/');
    uri.len() <= 2048 && !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(is_plain)
}
