//! Who is at the other end of one connection, as far as the connection itself shows it. Tokens come with requests and are not looked at here.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use mesh_proto::authority::Authority;

use runtime::wall::passed;

/// The URI (SAN) of the gate that holds an authority's key. Nobody else is given it, so that whoever knows the authority knows its gate.
pub const GATE_URI: &str = "urn:banyan:gate";

/// The other end of a connection. Whoever comes without TLS from this machine needs none.
#[derive(Debug, PartialEq, Eq)]
pub struct Party {
    private: bool,
    here: bool,
    certified: Option<Certified>,
    proven: BTreeSet<Authority>,
}

/// What a certificate says of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Its DNS names (SAN), in the order in which they stand there.
    pub dns: Vec<String>,
    /// Its URIs (SAN), in the order in which they stand there.
    pub uris: Vec<String>,
    /// Its IP addresses (SAN).
    pub ips: Vec<IpAddr>,
    /// Its serial number in hexadecimal digits.
    pub serial: String,
    /// When it ends.
    pub until: SystemTime,
}

/// What a verified client certificate says.
#[derive(Debug, PartialEq, Eq)]
pub struct Certified {
    /// `spiffe://…`, else `dns:…`.
    pub principal: Arc<str>,
    pub names: Names,
}

impl Party {
    /// Somebody without TLS; `None`: from this machine, where there is nothing to say.
    pub fn plain(address: SocketAddr) -> Option<Arc<Self>> {
        let local = address.ip().to_canonical().is_loopback();
        (!local).then(|| Arc::new(Self { private: false, here: false, certified: None, proven: BTreeSet::new() }))
    }

    /// Somebody with TLS, `here` on this machine or elsewhere, and the certificate that was verified. One that names nobody is as none.
    pub fn tls(certificate: Option<Names>, here: bool) -> Arc<Self> {
        let certified = certificate.and_then(Certified::new);
        let proven = certified.iter().flat_map(|c| &c.names.dns).filter_map(|name| Authority::of_dns_name(name)).collect();
        Arc::new(Self { private: true, here, certified, proven })
    }

    /// The same as somebody who is not on this machine, whatever its address says: a proxy on this machine has the address of all its clients.
    pub fn elsewhere(party: Option<&Arc<Self>>) -> Arc<Self> {
        match party {
            None => Arc::new(Self { private: false, here: false, certified: None, proven: BTreeSet::new() }),
            Some(party) if !party.here => Arc::clone(party),
            Some(party) => {
                let certified = party.certified.as_ref();
                let certified = certified.map(|one| Certified { principal: Arc::clone(&one.principal), names: one.names.clone() });
                Arc::new(Self { private: party.private, here: false, certified, proven: party.proven.clone() })
            }
        }
    }

    /// Whether nobody in between can listen in.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Whether it is on this machine.
    pub fn is_here(&self) -> bool {
        self.here
    }

    /// The certificate it has shown.
    pub fn certified(&self) -> Option<&Certified> {
        self.certified.as_ref()
    }

    /// The authorities that its certificate proves.
    pub fn proven(&self) -> &BTreeSet<Authority> {
        &self.proven
    }

    /// Ready when its certificate has ended; never where there is none.
    pub async fn ended(&self) {
        match &self.certified {
            Some(certified) => passed(certified.names.until).await,
            None => std::future::pending().await,
        }
    }
}

impl Certified {
    /// `None`: it names nobody.
    fn new(names: Names) -> Option<Self> {
        let spiffe = names.uris.iter().find(|uri| uri.starts_with("spiffe://")).map(|uri| uri.as_str().into());
        let dns = || names.dns.iter().find_map(|name| Authority::of_dns_name(name)).map(|name| name.to_string().into());
        let principal = spiffe.or_else(dns)?;
        Some(Self { principal, names })
    }
}
