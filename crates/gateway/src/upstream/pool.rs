//! Connections to one origin, kept open and used again. HTTP/1.1 with `TCP_NODELAY`; no redirects, no proxies, no cookies.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::UpstreamError;
use crate::tls::{Connector, Security, Target};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const KEPT_IDLE: usize = 64;

type Sender = SendRequest<Full<Bytes>>;

/// The connections to one origin.
pub(crate) struct Pool {
    host: String,
    port: u16,
    security: Security,
    connector: Arc<Connector>,
    idle: Mutex<Vec<Sender>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({}:{})", self.host, self.port)
    }
}

impl Pool {
    /// Connections to the origin of `url`.
    pub(crate) fn new(url: &url::Url, connector: Arc<Connector>) -> Arc<Self> {
        let security = if url.scheme() == "https" { Security::Tls } else { Security::Plain };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        Arc::new(Self { host, port, security, connector, idle: Mutex::default() })
    }

    /// Sends `request`; its connection comes back to the pool when the body has been read to its end.
    ///
    /// A request that a kept connection could not take is sent again on another one: it has not left.
    pub(crate) async fn send(self: &Arc<Self>, mut request: Request<Full<Bytes>>) -> Result<Response<Reply>, UpstreamError> {
        loop {
            let Some(mut sender) = self.take() else { break };
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.reply(response, sender)),
                Err(mut e) => match e.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(self.lost(e.error())),
                },
            }
        }
        let mut sender = self.connect().await?;
        match sender.try_send_request(request).await {
            Ok(response) => Ok(self.reply(response, sender)),
            Err(e) => Err(self.lost(e.error())),
        }
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let sender = idle.pop()?;
            if !sender.is_closed() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<Sender, UpstreamError> {
        let to = Target { host: &self.host, port: self.port, security: self.security };
        let io = self.connector.connect(to, CONNECT_LIMIT).await.map_err(|e| UpstreamError::Unreachable(e.to_string()))?;
        let (sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(|e| UpstreamError::Unreachable(e.to_string()))?;
        tokio::spawn(async move {
            // How a connection ended shows in the request that was on it.
            drop(connection.await);
        });
        Ok(sender)
    }

    fn reply(self: &Arc<Self>, response: Response<Incoming>, sender: Sender) -> Response<Reply> {
        response.map(|body| Reply { body, lease: Some((sender, Arc::clone(self))) })
    }

    fn give_back(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_IDLE && !sender.is_closed() {
            idle.push(sender);
        }
    }

    fn lost(&self, error: &hyper::Error) -> UpstreamError {
        UpstreamError::Lost(format!("the connection to {}:{} broke before the answer was there: {error}", self.host, self.port))
    }
}

/// A response body. Dropped before its end, it closes the connection, which tells a stateless server that the call is cancelled.
pub(crate) struct Reply {
    body: Incoming,
    lease: Option<(Sender, Arc<Pool>)>,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
        let over = frame.is_none() || this.body.is_end_stream();
        if over && let Some((sender, pool)) = this.lease.take() {
            pool.give_back(sender);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
