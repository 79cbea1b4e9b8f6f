//! Doors: places at the HTTP listener where somebody comes in. Each family hands in its own; the listener knows none by name.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use mcp_proto::http1::Fields;
use runtime::tcp::Tcp;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::connections::Connection;
use crate::reply::Payload;
use call::words::party::Party;

/// A place at the listener. What is not private to a door (whether its fields are unambiguous, for example) is looked at before.
pub trait Door: Send + Sync {
    /// Checks that requests to `path` are for this door.
    fn is_here(&self, path: &str) -> bool;

    /// Answers a request.
    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>>;

    /// Sends everybody away who stays for long: the listener ends.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The door whose requests are so plain and so many that it reads connections itself, until something else comes.
pub trait FirstReader: Send + Sync {
    /// Serves a connection without TLS.
    fn read<'a>(&'a self, stream: Tcp, party: Option<Arc<Party>>, at: &'a Arc<Connection>) -> BoxFuture<'a, Left<Tcp>>;

    /// Serves a connection with TLS.
    fn read_tls<'a>(
        &'a self,
        stream: Box<TlsStream<TcpStream>>,
        party: Option<Arc<Party>>,
        at: &'a Arc<Connection>,
    ) -> BoxFuture<'a, Left<Box<TlsStream<TcpStream>>>>;
}

/// The end of reading a connection.
pub enum Left<S> {
    /// The connection is over.
    Ended,
    /// Something else came on it: the bytes that were read, and the stream.
    Unusual(Bytes, S),
}

/// Origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Remote(pub IpAddr);

/// The same fields as this gate's own reader gives them. HTTP/2 names the host elsewhere (RFC 9113, section 8.3.1).
pub fn fields(parts: &Parts) -> Fields {
    let authority = parts.uri.authority().filter(|_| !parts.headers.contains_key(HOST));
    let host = authority.map(|authority| (HOST.as_str(), authority.as_str().as_bytes()));
    Fields::new(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).chain(host))
}

/// The value of a parameter of the query.
pub fn query(parts: &Parts, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
