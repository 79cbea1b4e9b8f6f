//! Connections to an origin, kept open and used again. HTTP/1.1 with `TCP_NODELAY`; no redirects, no proxies, no cookies. Or, in their
//! place, the link dialled by a child. Does not read messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mcp_proto::http1::{Body, Fields, Head};
use runtime::reach::Reach;
use runtime::tls::{Connector, Security, Target};
use runtime::worker;

use crate::upstream::connection::{Connection, ConnectionError, Pieces};
use call::tree::port::UpstreamError;
use trust::Client;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for the end of a response after its answer.
const LINGER: Duration = Duration::from_secs(1);
const KEPT_IDLE: usize = 256;
/// Calls between checks of a kept connection.
const LOOK_EVERY: usize = 4;

/// Carrier of requests in place of connections: a link dialled by a gate below.
pub trait Carrier: std::fmt::Debug + Send + Sync {
    /// Sends a request; returns the response once its head is there.
    fn send<'a>(&'a self, request: &'a Pieces) -> BoxFuture<'a, Result<Response<Incoming>, UpstreamError>>;

    /// Completes when the link is gone.
    fn gone(&self) -> BoxFuture<'_, ()>;

    /// Checks that the link is gone.
    fn is_gone(&self) -> bool;
}

/// Connections to an origin.
pub struct Pool {
    host: String,
    port: u16,
    security: Security,
    connector: Arc<Connector>,
    /// TLS settings of this server; `None` for those of every server.
    tls: Option<Client>,
    /// Addresses to which the host may lead; `None` for all.
    reach: Option<Reach>,
    /// A connection was made that others can overhear.
    exposed: AtomicBool,
    /// Carrier in place of connections.
    link: Option<Arc<dyn Carrier>>,
    /// A list for each worker, since a connection is woken where it was opened.
    idle: Box<[Mutex<Idle>]>,
}

/// Kept connections, the last used at the end.
#[derive(Default)]
struct Idle {
    #[expect(clippy::vec_box, reason = "a connection goes through many hands with each call; its box is made once")]
    kept: Vec<Box<Connection>>,
    /// Connection to check next.
    next: usize,
    /// Connections put here so far.
    put: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({}:{})", self.host, self.port)
    }
}

impl Pool {
    /// Makes a pool for the origin of `url`.
    pub fn new(url: &url::Url, connector: Arc<Connector>, tls: Option<Client>, reach: Option<Reach>) -> Arc<Self> {
        let security = if url.scheme() == "https" { Security::Tls } else { Security::Plain };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let idle = (0..worker::count()).map(|_| Mutex::default()).collect();
        Arc::new(Self { host, port, security, connector, tls, reach, link: None, exposed: AtomicBool::new(false), idle })
    }

    /// Checks for a connection that others could overhear: without TLS, or with TLS before 1.3.
    pub fn is_exposed(&self) -> bool {
        self.exposed.load(Ordering::Relaxed)
    }

    /// Makes a pool over the link that a child has dialled.
    pub fn over(link: Arc<dyn Carrier>) -> Arc<Self> {
        let (host, connector, exposed, idle) = ("child".into(), Arc::default(), AtomicBool::new(false), Box::default());
        Arc::new(Self { host, port: 0, security: Security::Plain, connector, tls: None, reach: None, link: Some(link), exposed, idle })
    }

    /// Checks for a link in place of connections.
    pub fn is_link(&self) -> bool {
        self.link.is_some()
    }

    /// Checks that the link is gone; `false` without a link.
    pub fn is_gone(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_gone())
    }

    /// Completes when the link is gone; never without a link.
    pub async fn gone(&self) {
        match &self.link {
            Some(link) => link.gone().await,
            None => std::future::pending().await,
        }
    }

    /// Sends a request; its connection returns to the pool when the body of the response has been read to its end.
    ///
    /// A request that a kept connection could not take has not left, and is sent again on another connection.
    pub async fn send(self: &Arc<Self>, mut request: Pieces) -> Result<Reply, UpstreamError> {
        while let Some(mut connection) = self.take_idle() {
            match connection.exchange(request).await {
                Ok(head) => return Ok(self.reply(head, connection)),
                Err(ConnectionError::Unsent(_)) => request = connection.unsent(),
                Err(e) => return Err(self.lost(&e)),
            }
        }
        if let Some(link) = &self.link {
            return Box::pin(self.send_over(&**link, request)).await;
        }
        // Boxed, as is everything few calls come to, since every call under way holds room for all it might do.
        let mut connection = Box::pin(self.connect()).await?;
        match connection.exchange(request).await {
            Ok(head) => Ok(self.reply(head, connection)),
            Err(e) => Err(self.lost(&e)),
        }
    }

    async fn connect(&self) -> Result<Box<Connection>, UpstreamError> {
        let unreachable = |why: String| UpstreamError::Unreachable(why);
        let tls = self.tls.as_ref().map(|tls| tls.config(&self.connector)).transpose().map_err(|e| unreachable(e.to_string()))?;
        let to = Target { host: &self.host, port: self.port, security: self.security };
        let io =
            self.connector.connect_within(to, tls, CONNECT_LIMIT, self.reach.as_ref()).await.map_err(|e| unreachable(e.to_string()))?;
        self.exposed.fetch_or(io.is_exposed(), Ordering::Relaxed);
        Ok(Box::new(Connection::new(io)))
    }

    async fn send_over(self: &Arc<Self>, link: &dyn Carrier, request: Pieces) -> Result<Reply, UpstreamError> {
        let (head, body) = link.send(&request).await?.into_parts();
        let fields = Fields::new(head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
        let head = Head::carried(head.status.as_u16(), fields);
        Ok(Reply { body: head.body(), head, connection: None, stream: Some(Box::new(body)), pool: Arc::clone(self) })
    }

    fn take_idle(&self) -> Option<Box<Connection>> {
        loop {
            let mut connection = self.idle()?.kept.pop()?;
            if connection.is_idle() {
                return Some(connection);
            }
        }
    }

    fn reply(self: &Arc<Self>, head: Head, connection: Box<Connection>) -> Reply {
        let mut reply = Reply { body: head.body(), head, connection: Some(connection), stream: None, pool: Arc::clone(self) };
        reply.settle();
        reply
    }

    fn give_back(&self, mut connection: Box<Connection>) {
        connection.rest();
        let closed = self.idle().map(|mut idle| idle.put(connection));
        drop(closed);
    }

    fn idle(&self) -> Option<MutexGuard<'_, Idle>> {
        let own = self.idle.get(worker::index()).or(self.idle.first())?;
        Some(own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn lost(&self, error: &ConnectionError) -> UpstreamError {
        UpstreamError::Lost(format!("the connection to {}:{} broke before the answer was there: {error}", self.host, self.port))
    }
}

impl Idle {
    /// Keeps a connection; returns one that is useless by now, so that connections left by a rush do not stay open for ever.
    fn put(&mut self, connection: Box<Connection>) -> Option<Box<Connection>> {
        if self.kept.len() >= KEPT_IDLE {
            return Some(connection);
        }
        self.put += 1;
        let looked_at = self.put.is_multiple_of(LOOK_EVERY).then(|| {
            self.next = if self.next < self.kept.len() { self.next } else { 0 };
            let closed = self.kept.get_mut(self.next).is_some_and(|oldest| !oldest.is_idle()).then(|| self.kept.remove(self.next));
            self.next += usize::from(closed.is_none());
            closed
        });
        self.kept.push(connection);
        looked_at.flatten()
    }
}

/// A response. Dropped before its end, it closes the connection, which tells a stateless server of the cancellation.
pub struct Reply {
    pub head: Head,
    body: Body,
    connection: Option<Box<Connection>>,
    /// Body, over a link.
    stream: Option<Box<Incoming>>,
    pool: Arc<Pool>,
}

impl Reply {
    /// Reads the next piece of the body; `None` at its end.
    pub async fn piece(&mut self) -> Option<Result<Bytes, ConnectionError>> {
        std::future::poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// Length of the body, where the head names it and no byte has been read.
    pub fn size(&self) -> Option<u64> {
        match &self.stream {
            None => self.body.left(),
            Some(stream) => http_body::Body::size_hint(stream).exact(),
        }
    }

    /// Reads the whole body, `length` bytes.
    pub async fn whole(&mut self, length: usize) -> Result<Bytes, ConnectionError> {
        let Some(mut connection) = self.connection.take() else {
            let Some(stream) = self.stream.take() else { return Ok(Bytes::new()) };
            return Ok(stream.collect().await?.to_bytes());
        };
        let whole = std::future::poll_fn(|cx| connection.poll_whole(&mut self.body, length, cx)).await?;
        self.connection = Some(connection);
        self.settle();
        Ok(whole)
    }

    /// Reads the unwanted rest, so that the connection can be used again.
    pub fn finish(mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        // As a rule the end has come together with the answer.
        while let Poll::Ready(piece) = self.poll_piece(&mut cx) {
            if !matches!(piece, Some(Ok(_))) {
                return;
            }
        }
        tokio::spawn(async move {
            let rest = async { while let Some(Ok(_)) = self.piece().await {} };
            drop(tokio::time::timeout(LINGER, rest).await);
        });
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ConnectionError>>> {
        let Some(connection) = &mut self.connection else { return self.poll_stream(cx) };
        let piece = std::task::ready!(connection.poll_piece(&mut self.body, cx));
        if matches!(piece, Some(Err(_))) {
            self.connection = None;
        }
        self.settle();
        Poll::Ready(piece)
    }

    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ConnectionError>>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        loop {
            let frame = std::task::ready!(http_body::Body::poll_frame(std::pin::Pin::new(stream), cx));
            let data = frame.map(|frame| frame.map(http_body::Frame::into_data));
            match data {
                None => self.stream = None,
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(data))),
                // Trailers.
                Some(Ok(Err(_))) => continue,
                Some(Err(error)) => {
                    self.stream = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
            return Poll::Ready(None);
        }
    }

    /// Returns the connection to the pool once the response is over.
    fn settle(&mut self) {
        if self.body.is_over()
            && let Some(connection) = self.connection.take()
            && connection.is_written()
            && self.body.keeps_connection()
        {
            self.pool.give_back(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    fn request() -> Pieces {
        Pieces { head: REQUEST.into(), ..Pieces::default() }
    }

    async fn pool() -> (Arc<Pool>, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url::Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        (Pool::new(&url, Arc::default(), None, None), listener)
    }

    /// Answers a request with `length` bytes.
    async fn answer(stream: &mut TcpStream, length: usize) {
        let mut seen = [0; REQUEST.len()];
        stream.read_exact(&mut seen).await.unwrap();
        stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; length]).await.unwrap();
    }

    async fn read(mut reply: Reply) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Some(piece) = reply.piece().await {
            pieces.push(piece.unwrap());
        }
        pieces
    }

    #[tokio::test]
    async fn a_connection_drops_the_buffer_of_a_long_answer() {
        let (pool, listener) = pool().await;
        let serving = tokio::spawn(async move {
            let mut stream = listener.accept().await.unwrap().0;
            answer(&mut stream, 2 << 20).await;
            stream
        });
        let pieces = read(pool.send(request()).await.unwrap()).await;
        let last = pieces.last().unwrap().clone();
        drop(pieces);
        let kept = pool.take_idle();
        assert!(last.is_unique());
        assert!(kept.is_some());
        drop(serving.await);
    }

    #[tokio::test]
    async fn connections_that_their_server_has_closed_do_not_stay() {
        let (pool, listener) = pool().await;
        let mut streams = Vec::new();
        let mut replies = Vec::new();
        for _ in 0..8 {
            let (reply, stream) = tokio::join!(pool.send(request()), async {
                let mut stream = listener.accept().await.unwrap().0;
                answer(&mut stream, 1).await;
                stream
            });
            replies.push(reply.unwrap());
            streams.push(stream);
        }
        for reply in replies {
            read(reply).await;
        }
        let kept = || pool.idle().unwrap().kept.len();
        assert_eq!(kept(), 8);
        // All but the next to be used are closed.
        let mut last = streams.pop().unwrap();
        drop(streams);
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..8 * LOOK_EVERY {
            let (reply, ()) = tokio::join!(pool.send(request()), answer(&mut last, 1));
            read(reply.unwrap()).await;
        }
        assert_eq!(kept(), 1);
    }
}
