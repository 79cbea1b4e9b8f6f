//! Doors: places at the HTTP listener where requests come in. Each family of protocols hands in its own; the listener knows none by name.

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

/// A place at the listener. Checks common to all doors, such as unambiguous fields, come first.
pub trait Door: Send + Sync {
    /// Checks that requests to `path` are for this door.
    fn is_here(&self, path: &str) -> bool;

    /// Answers a request.
    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>>;

    /// Closes lasting connections, as the listener ends.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The door with the most and the plainest requests, which reads connections itself until another kind of request comes.
pub trait FirstReader: Send + Sync {
    /// Serves a connection without TLS.
    fn read<'a>(&'a self, stream: Tcp, party: Option<Arc<Party>>, at: &'a Arc<Connection>) -> BoxFuture<'a, ReadEnd<Tcp>>;

    /// Serves a connection with TLS.
    fn read_tls<'a>(
        &'a self,
        stream: Box<TlsStream<TcpStream>>,
        party: Option<Arc<Party>>,
        at: &'a Arc<Connection>,
    ) -> BoxFuture<'a, ReadEnd<Box<TlsStream<TcpStream>>>>;
}

/// End of reading a connection.
pub enum ReadEnd<S> {
    Ended,
    /// A request of another kind came: bytes read ahead, and the stream.
    Unusual(Bytes, S),
}

/// Origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Remote(pub IpAddr);

/// Converts fields to those of this gate's own reader. HTTP/2 names the host elsewhere (RFC 9113, section 8.3.1).
pub fn fields(parts: &Parts) -> Fields {
    let authority = parts.uri.authority().filter(|_| !parts.headers.contains_key(HOST));
    let host = authority.map(|authority| (HOST.as_str(), authority.as_str().as_bytes()));
    Fields::new(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).chain(host))
}

/// Value of a parameter of the query.
pub fn query(parts: &Parts, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
