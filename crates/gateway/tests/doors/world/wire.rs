//! HTTP/1.1 of the smallest client: a connection for each request, closed with the reply. Does not know the meaning of messages.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;

/// An event of a stream, or a whole JSON body.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// Received bytes.
    pub(crate) raw: String,
    pub(crate) value: Value,
}

/// A response whose body may still be coming.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Bytes behind the last whole event.
    rest: Vec<u8>,
    events: VecDeque<Event>,
    _connection: AbortOnDropHandle<()>,
}

/// Sends a request over a new connection.
pub(crate) async fn send(addr: SocketAddr, tls: Option<&Arc<ClientConfig>>, request: Request<Full<Bytes>>) -> Reply {
    send_from(None, addr, tls, request).await
}

/// Sends a request from a given address, if any.
pub(super) async fn send_from(
    from: Option<Ipv4Addr>,
    addr: SocketAddr,
    tls: Option<&Arc<ClientConfig>>,
    request: Request<Full<Bytes>>,
) -> Reply {
    let stream = match from {
        None => TcpStream::connect(addr).await.unwrap(),
        Some(from) => {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            socket.connect(addr).await.unwrap()
        }
    };
    let (mut sender, connection) = match tls {
        None => speak(stream).await,
        Some(tls) => speak(protect(stream, tls).await.unwrap()).await,
    };
    let response = sender.send_request(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Reply { status: parts.status, headers: parts.headers, body, rest: Vec::new(), events: VecDeque::new(), _connection: connection }
}

/// Speaks TLS with a server called `localhost`.
pub(crate) async fn protect(stream: TcpStream, tls: &Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    TlsConnector::from(Arc::clone(tls)).connect("localhost".try_into().unwrap(), stream).await
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> (SendRequest<Full<Bytes>>, AbortOnDropHandle<()>) {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    (sender, AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) })))
}

impl Reply {
    /// Gives a header's text; empty when absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// Reads the whole body as text.
    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// Reads the whole body as text; `None` when broken off.
    pub(crate) async fn text_or_break(self) -> Option<String> {
        Some(String::from_utf8(self.body.collect().await.ok()?.to_bytes().to_vec()).unwrap())
    }

    /// Checks for a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type").starts_with("text/event-stream")
    }

    /// Reads the next event, or the whole body; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            match self.body.frame().await {
                Some(frame) => self.rest.extend_from_slice(&frame.unwrap().into_data().unwrap()),
                None if self.is_stream() || self.rest.is_empty() => return None,
                None => {
                    let raw = String::from_utf8(std::mem::take(&mut self.rest)).unwrap();
                    return Some(Event { id: None, value: serde_json::from_str(&raw).unwrap(), raw });
                }
            }
            self.cut();
        }
    }

    /// Cuts whole events off the received bytes.
    fn cut(&mut self) {
        while self.is_stream()
            && let Some(end) = memchr::memmem::find(&self.rest, b"\n\n")
        {
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            self.events.extend(event(std::str::from_utf8(&block).unwrap()));
        }
    }

    /// Reads the next event; `None` also for a broken body.
    pub(crate) async fn next_or_break(&mut self) -> Option<Event> {
        while self.events.is_empty() {
            let frame = self.body.frame().await?.ok()?;
            self.rest.extend_from_slice(&frame.into_data().unwrap());
            self.cut();
        }
        self.events.pop_front()
    }

    /// Reads up to a message of that method.
    pub(crate) async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before {method}"));
            if event.value["method"] == method {
                return event.value;
            }
        }
    }

    /// Reads up to the response. Gives the messages before, and the response.
    pub(crate) async fn finish(&mut self) -> (Vec<Value>, Event) {
        let mut before = Vec::new();
        loop {
            let event = self.next().await.expect("the stream ended before the response");
            if event.value.get("result").is_some() || event.value.get("error").is_some() {
                return (before, event);
            }
            before.push(event.value);
        }
    }
}

/// Parses an event; `None` for a comment. Priming events have no data, and the value `null`.
fn event(block: &str) -> Option<Event> {
    let fields = |name: &'static str| block.lines().filter_map(move |l| l.strip_prefix(name)).map(|v| v.strip_prefix(' ').unwrap_or(v));
    fields("data:").next()?;
    let raw = fields("data:").collect::<Vec<_>>().join("\n");
    let value = if raw.is_empty() { Value::Null } else { serde_json::from_str(&raw).unwrap() };
    Some(Event { id: fields("id:").next().map(str::to_owned), raw, value })
}
