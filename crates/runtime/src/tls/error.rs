//! Why a connection could not be made, in words that say what to do. Does not decide whether to try again.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Target;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// TLS needs a name or an address that a certificate can carry.
    #[error("`{host}` is no name that a certificate can be checked against: correct the host in the URL")]
    BadName {
        /// The host as it was given.
        host: String,
    },
    /// The server's certificate was not accepted.
    #[error(
        "{host}:{port} shows a certificate that is not trusted ({why}): check the host in the URL and this machine's clock; \
         if the server uses a private authority, name its PEM file in SSL_CERT_FILE"
    )]
    Certificate {
        /// The host as it was given.
        host: String,
        /// The TCP port.
        port: u16,
        /// What the check found.
        why: String,
    },
    /// The name has no address.
    #[error("the name {host} can't be looked up ({source}): check its spelling and this machine's DNS")]
    Lookup {
        /// The host as it was given.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The name leads where nobody said that it may.
    #[error("the name {host} leads to {address}, which is not dialled for whoever registers: add that address to `hosts` in [registry]")]
    OutOfReach {
        /// The host as it was given.
        host: String,
        /// The first address that was found.
        address: IpAddr,
    },
    /// Nobody listens there.
    #[error("nothing listens at {host}:{port} (connection refused): start the server, or correct the port in the URL")]
    Refused {
        /// The host as it was given.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// This machine's certificates can't be used.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// TCP failed in another way.
    #[error("no connection to {host}:{port} ({source}): check the network and any firewall between here and there")]
    Tcp {
        /// The host as it was given.
        host: String,
        /// The TCP port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The time was up.
    #[error("{host}:{port} did not answer within {}: check that the host is up and that no firewall drops the packets", Seconds(*.limit))]
    Timeout {
        /// The host as it was given.
        host: String,
        /// The TCP port.
        port: u16,
        /// The time that was allowed.
        limit: Duration,
    },
    /// TCP worked, TLS did not.
    #[error("{host}:{port} does not complete a TLS handshake ({source}): check that the port speaks HTTPS, or use http:// in the URL")]
    Tls {
        /// The host as it was given.
        host: String,
        /// The TCP port.
        port: u16,
        /// What the handshake said.
        source: io::Error,
    },
}

impl ConnectError {
    pub(super) fn tcp(to: Target<'_>, source: io::Error) -> Self {
        let (host, port) = (to.host.into(), to.port);
        if source.kind() == io::ErrorKind::ConnectionRefused { Self::Refused { host, port } } else { Self::Tcp { host, port, source } }
    }

    pub(super) fn tls(to: Target<'_>, source: io::Error) -> Self {
        let (host, port) = (to.host.into(), to.port);
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidCertificate(why)) => Self::Certificate { host, port, why: why.to_string() },
            _ => Self::Tls { host, port, source },
        }
    }
}

/// Why no certificates could be loaded to check others against.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RootsError {
    /// The file of extra certificates can't be used.
    #[error("the certificate file {} can't be used ({why}): correct SSL_CERT_FILE or unset it", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The platform has none.
    #[error(
        "this machine has no usable certificate authorities ({source}): install its CA certificates (on Debian the package \
         `ca-certificates`), or name a PEM file in SSL_CERT_FILE"
    )]
    Platform {
        /// What the platform said.
        source: Arc<rustls::Error>,
    },
}

/// A duration as people say it.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < Duration::from_secs(1) { write!(f, "{} ms", self.0.as_millis()) } else { write!(f, "{} s", self.0.as_secs_f64()) }
    }
}
