//! Connections to upstreams: TCP with an answer in bounded time, TLS against the platform's certificates.
//!
//! Does not speak HTTP, does not pool connections and does not know proxies.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::reach::Reach;

mod error;
mod io_stream;
mod roots;

pub use error::{ConnectError, RootsError};
pub use io_stream::Io;

/// Silence of an address before the next is tried beside it (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// An address to connect to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// A DNS name or an IP address, IPv6 without brackets.
    pub host: &'a str,
    pub port: u16,
    pub security: Security,
}

/// The protection of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Security {
    /// Not at all: `http`.
    Plain,
    /// TLS that offers HTTP/1.1 only.
    Tls,
    /// TLS that names no protocol, for what is not HTTP.
    TlsUnnamed,
    /// TLS that offers HTTP/2 and HTTP/1.1; [`Io::is_http2`] tells the server's choice.
    TlsHttp2,
}

/// Makes connections. All of them share a TLS configuration and so a store of sessions to resume.
#[derive(Default)]
pub struct Connector {
    verifier: OnceLock<Result<Arc<Verifier>, RootsError>>,
    config: OnceLock<Result<Arc<ClientConfig>, RootsError>>,
    extra_roots: Option<PathBuf>,
}

impl Connector {
    /// Trusts the authorities of the platform, and of the PEM file named by `SSL_CERT_FILE`.
    ///
    /// The certificates are read at the first connection that needs them.
    pub fn new() -> Self {
        let named = std::env::var_os("SSL_CERT_FILE").filter(|value| !value.is_empty());
        Self::with_extra_roots(named.map(PathBuf::from))
    }

    /// Trusts the authorities of the platform, and those of `file` (PEM).
    pub fn with_extra_roots(file: Option<PathBuf>) -> Self {
        Self { verifier: OnceLock::new(), config: OnceLock::new(), extra_roots: file }
    }

    /// The shared TLS configuration, without ALPN.
    pub fn tls(&self) -> Result<Arc<ClientConfig>, RootsError> {
        self.config.get_or_init(|| roots::client_config(self.verifier()?)).clone()
    }

    /// Gives the verifier of this machine's trust.
    pub fn verifier(&self) -> Result<Arc<Verifier>, RootsError> {
        self.verifier.get_or_init(|| roots::verifier(self.extra_roots.as_deref())).clone()
    }

    /// Connects within `limit`, name lookup and TLS handshake included, with `TCP_NODELAY` set.
    pub async fn connect(&self, to: Target<'_>, limit: Duration) -> Result<Io, ConnectError> {
        self.connect_as(to, None, limit).await
    }

    /// Connects with another TLS configuration, if given.
    pub async fn connect_as(&self, to: Target<'_>, tls: Option<Arc<ClientConfig>>, limit: Duration) -> Result<Io, ConnectError> {
        self.connect_within(to, tls, limit, None).await
    }

    /// Connects with another TLS configuration, if given, and only to addresses within `reach`.
    pub async fn connect_within(
        &self,
        to: Target<'_>,
        tls: Option<Arc<ClientConfig>>,
        limit: Duration,
        reach: Option<&Reach>,
    ) -> Result<Io, ConnectError> {
        match tokio::time::timeout(limit, self.connect_unhurried(to, tls, reach)).await {
            Ok(done) => done,
            Err(_) => Err(ConnectError::Timeout { host: to.host.into(), port: to.port, limit }),
        }
    }

    async fn connect_unhurried(&self, to: Target<'_>, tls: Option<Arc<ClientConfig>>, reach: Option<&Reach>) -> Result<Io, ConnectError> {
        let tcp = connect_tcp(to.host, to.port, reach).await?;
        tcp.set_nodelay(true).map_err(|source| ConnectError::tcp(to, source))?;
        let alpn = match to.security {
            Security::Plain => return Ok(Io::plain(tcp)),
            Security::Tls => vec![b"http/1.1".to_vec()],
            Security::TlsUnnamed => Vec::new(),
            Security::TlsHttp2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let name = ServerName::try_from(to.host.to_owned()).map_err(|_| ConnectError::BadName { host: to.host.into() })?;
        let connector = TlsConnector::from(tls.map_or_else(|| self.tls(), Ok)?);
        let stream = connector.with_alpn(alpn).connect(name, tcp).await;
        stream.map(Io::tls).map_err(|source| ConnectError::tls(to, source))
    }
}

/// Installs the provider of cryptography for every TLS user of this process. Later calls change nothing.
pub fn install_crypto() {
    let _was_installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

async fn connect_tcp(host: &str, port: u16, reach: Option<&Reach>) -> Result<TcpStream, ConnectError> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = match found {
        Ok(found) => found.collect(),
        Err(source) => return Err(ConnectError::Lookup { host: host.into(), source }),
    };
    let may = |address: &SocketAddr| reach.is_none_or(|reach| reach.allows(address.ip()));
    let (addresses, refused): (Vec<SocketAddr>, Vec<SocketAddr>) = found.into_iter().partition(may);
    if let (true, Some(address)) = (addresses.is_empty(), refused.first()) {
        return Err(ConnectError::OutOfReach { host: host.into(), address: address.ip() });
    }
    let addresses = interleave(addresses);
    race(addresses).await.map_err(|source| ConnectError::tcp(Target { host, port, security: Security::Plain }, source))
}

/// Tries the addresses in order, the next as soon as one fails or stays silent for [`STAGGER`]. The first to answer wins.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut trying = FuturesUnordered::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        match waiting.next() {
            Some(address) => trying.push(TcpStream::connect(address)),
            None if trying.is_empty() => return Err(last),
            None => {}
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(done) = trying.next() => match done {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            },
            () = tokio::time::sleep(STAGGER), if more => {}
        }
    }
}

/// Alternates between the address families, the resolver's first choice first, so that a broken family costs one [`STAGGER`].
fn interleave(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = found.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut second = second.into_iter();
    let mut ordered = Vec::with_capacity(first.len() + second.len());
    for address in first {
        ordered.push(address);
        ordered.extend(second.next());
    }
    ordered.extend(second);
    ordered
}

#[cfg(test)]
mod tests;
