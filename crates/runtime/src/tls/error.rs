//! Failures to connect, in words that say what to do. Does not decide on another try.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Target;

/// Failures to connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// TLS needs a name or an address fit for a certificate.
    #[error("`{host}` is no name that a certificate can be checked against: correct the host in the URL")]
    BadName { host: String },
    /// The server's certificate was not accepted.
    #[error(
        "{host}:{port} shows a certificate that is not trusted ({why}): check the host in the URL and this machine's clock; \
         if the server uses a private authority, name its PEM file in SSL_CERT_FILE"
    )]
    Certificate {
        host: String,
        port: u16,
        /// The finding of the check.
        why: String,
    },
    /// The name has no address.
    #[error("the name {host} can't be looked up ({source}): check its spelling and this machine's DNS")]
    Lookup { host: String, source: io::Error },
    /// The name leads to an address that nobody permitted.
    #[error("the name {host} leads to {address}, which is not dialled for whoever registers: add that address to `hosts` in [registry]")]
    OutOfReach {
        host: String,
        /// The first address found.
        address: IpAddr,
    },
    #[error("nothing listens at {host}:{port} (connection refused): start the server, or correct the port in the URL")]
    Refused { host: String, port: u16 },
    /// This machine's certificates can't be used.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// TCP failed in another way.
    #[error("no connection to {host}:{port} ({source}): check the network and any firewall between here and there")]
    Tcp { host: String, port: u16, source: io::Error },
    /// The time was up.
    #[error("{host}:{port} did not answer within {}: check that the host is up and that no firewall drops the packets", Seconds(*.limit))]
    Timeout { host: String, port: u16, limit: Duration },
    /// TCP worked, TLS did not.
    #[error("{host}:{port} does not complete a TLS handshake ({source}): check that the port speaks HTTPS, or use http:// in the URL")]
    Tls { host: String, port: u16, source: io::Error },
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

/// Failures to load the certificates that others are checked against.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RootsError {
    /// The file of extra certificates can't be used.
    #[error("the certificate file {} can't be used ({why}): correct SSL_CERT_FILE or unset it", .file.display())]
    File { file: PathBuf, why: String },
    /// The platform has none.
    #[error(
        "this machine has no usable certificate authorities ({source}): install its CA certificates (on Debian the package \
         `ca-certificates`), or name a PEM file in SSL_CERT_FILE"
    )]
    Platform { source: Arc<rustls::Error> },
}

/// Prints a duration as people say it.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < Duration::from_secs(1) { write!(f, "{} ms", self.0.as_millis()) } else { write!(f, "{} s", self.0.as_secs_f64()) }
    }
}
