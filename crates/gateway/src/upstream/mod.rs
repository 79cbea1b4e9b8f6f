//! Whom we call: one live connection to one server, whatever carries it.
//!
//! Policy, names and the pipeline are not known here; a call comes in ready to send.

pub(crate) mod asks;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod http;
pub(crate) mod listening;
pub(crate) mod mount;
mod mounting;
pub(crate) mod oauth;
pub(crate) mod origins;
mod pages;
pub(crate) mod pipe;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod role;
mod silence;
pub(crate) mod sse;
pub(crate) mod standing;
pub(crate) mod stderr;
pub(crate) mod supervise;

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::client::Negotiated;
use mcp_proto::envelope::{Answer, Notification};
use mcp_proto::json::Object;
use mcp_proto::mcpax::{self, Peer};
use runtime::clock;
use telemetry::trace_context::TraceContext;

use crate::call::adapt;
use crate::call::back::Back;
use crate::downstream::session::Session;
use crate::rooms::Mounted;
use mount::Mount;
pub(crate) use mounting::Upstreams;
use silence::Silence;

/// A request on its way to a server.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// The params, names and `_meta` already those of this server.
    pub(crate) params: Cow<'a, Object>,
    /// What goes into `Mcp-Name` (stateless era over HTTP).
    pub(crate) name: Option<&'a str>,
    /// `Mcp-Param-*` headers (stateless era over HTTP).
    pub(crate) param_headers: Vec<(String, String)>,
    /// W3C trace context for the next hop.
    pub(crate) trace: Option<&'a TraceContext>,
    /// Longest silence, where that is another time than the mount's.
    pub(crate) limit: Option<Duration>,
    /// The result may be poured, with these members where it lacks them; `None`: it is wanted as a whole.
    pub(crate) pour: Option<&'static [adapt::Member]>,
}

impl<'a> Outgoing<'a> {
    /// A request that needs neither headers nor tracing.
    pub(crate) fn plain(method: &'a str, params: impl Into<Object>) -> Self {
        Self { method, params: Cow::Owned(params.into()), name: None, param_headers: Vec::new(), trace: None, limit: None, pour: None }
    }
}

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The caller withdrew, so nobody waits.
    #[error("the call was cancelled")]
    Cancelled,
    /// It is a gate, and others can listen in on the way to it.
    #[error(
        "it is a gate, and is reached without TLS 1.3, so that others can listen in: give it a certificate (`banyan ca init` there) and \
         write https:// in its `url`, or say `insecure = true` in this mount"
    )]
    Exposed,
    /// The connection or process ended; whether the call took effect is not known.
    #[error("{0}")]
    Lost(String),
    /// It is a gate that has this one below it.
    #[error(
        "it is, or leads to, this very gate: its tools would be listed within themselves. Take it out of the configuration of one of the gates"
    )]
    Loop,
    /// It answered what is no MCP.
    #[error("{0}")]
    Malformed(String),
    /// It refused at the level of HTTP.
    #[error("it answered HTTP {status}: {body}")]
    Refused {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// It has forgotten our session; the call did not take effect.
    #[error("it has forgotten our session")]
    SessionLost,
    /// Somebody must sign in first.
    #[error("it needs a sign-in: {0}")]
    SignIn(String),
    /// It went on for longer than any request may, whatever it said of its progress.
    #[error("it had not answered after {0:?}, which is the longest that a request may take there")]
    Endless(Duration),
    /// Nothing came for as long as the mount allows.
    #[error("it gave no sign of life for {0:?}")]
    Silent(Duration),
    /// The answer is larger than allowed.
    #[error("its answer is larger than {0} bytes")]
    TooLarge(usize),
    /// It does not tell when a resource changes.
    #[error("it does not tell when this changes: {0}")]
    Untold(String),
    /// It can't be reached; the call did not take effect.
    #[error("{0}")]
    Unreachable(String),
}

impl UpstreamError {
    /// Whether it stays as it is until somebody changes the configuration of a gate.
    pub(crate) fn is_for_people(&self) -> bool {
        matches!(self, Self::Exposed | Self::Loop)
    }
}

/// What carries messages to a server.
#[derive(Debug)]
pub(crate) enum Wire {
    /// A pipe of whole messages: stdio or HTTP+SSE.
    Pipe(pipe::PipeHandle),
    /// Streamable HTTP.
    Http(Arc<http::HttpWire>),
    /// Rooms, in which participants are called.
    Rooms(Arc<Mounted>),
}

/// One live connection to a server.
#[derive(Debug)]
pub(crate) struct Instance {
    /// What carries it.
    pub(crate) wire: Wire,
    /// What it said about itself.
    pub(crate) negotiated: Negotiated,
    /// Longest silence of a request that says nothing of that itself.
    pub(crate) timeout: Duration,
    /// Longest time of any request, whatever the server says of its progress.
    pub(crate) longest: Duration,
}

impl Instance {
    /// Sends one request and waits for its answer, as long as it gives signs of life; what comes before goes to `back`.
    pub(crate) async fn request(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        self.request_since(out, back, clock::now()).await
    }

    /// The same for a caller that has looked at the clock.
    pub(crate) async fn request_since(
        &self,
        out: &Outgoing<'_>,
        back: Option<&Arc<Back>>,
        began: Instant,
    ) -> Result<Answer, UpstreamError> {
        let mut silence = Silence::new(out.limit.unwrap_or(self.timeout), self.longest, began);
        let mut request = pin!(self.stand(out, back));
        let answer = poll_fn(|cx| match request.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => silence.poll(back, cx).map(Err),
        });
        let over = match answer.await {
            Ok(answer) => return answer,
            Err(over) => over,
        };
        if let Some(back) = back {
            back.cancel.cancel();
            // The connection tells the server that nobody waits any more. Without a way back it does when the request is let go of.
            drop(Box::pin(tokio::time::timeout(Duration::from_secs(1), &mut request)).await);
        }
        Err(over)
    }

    /// Sends a request that may stand open for as long as somebody wants: a stream of what happens.
    pub(crate) async fn stand(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        match &self.wire {
            Wire::Http(wire) => wire.request(out, back).await,
            Wire::Pipe(pipe) => Box::pin(pipe.request(out, back)).await,
            Wire::Rooms(rooms) => Box::pin(rooms.request(out, back)).await,
        }
    }

    /// Sends a whole notification.
    pub(crate) async fn notify(&self, method: &str, whole: Bytes) {
        let told = async {
            match &self.wire {
                Wire::Http(wire) => wire.notify(method, whole).await,
                Wire::Pipe(pipe) => pipe.notify(whole).await,
                // There is no server that would hear it.
                Wire::Rooms(_) => {}
            }
        };
        if tokio::time::timeout(self.timeout, told).await.is_err() {
            tracing::debug!(method, "a notification was not taken in time");
        }
    }

    /// Whether each call has a connection of its own, so that one that breaks says nothing of the server.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.wire, Wire::Http(_))
    }

    /// Whether it goes over the link of a gate below.
    pub(crate) fn is_linked(&self) -> bool {
        matches!(&self.wire, Wire::Http(wire) if wire.pool.is_link())
    }

    /// The id under which it says that it is a gate.
    pub(crate) fn gate_id(&self) -> Option<String> {
        match mcpax::peer(&self.negotiated.capabilities) {
            Peer::Gate(id) => Some(id),
            Peer::Plain | Peer::Reader => None,
        }
    }

    /// The era it speaks.
    pub(crate) fn era(&self) -> Era {
        self.negotiated.era
    }

    /// Waits until the connection is gone by itself. One over HTTP is never seen to go, unless a link carries it.
    pub(crate) async fn lost(&self) {
        match &self.wire {
            Wire::Http(wire) => tokio::select! {
                () = wire.closed.cancelled() => {}
                () = wire.pool.gone() => {}
            },
            Wire::Pipe(pipe) => pipe.gone.cancelled().await,
            Wire::Rooms(_) => std::future::pending().await,
        }
    }

    /// Whether it is gone by itself.
    pub(crate) fn is_lost(&self) -> bool {
        match &self.wire {
            Wire::Http(wire) => wire.closed.is_cancelled() || wire.pool.is_gone(),
            Wire::Pipe(pipe) => pipe.gone.is_cancelled(),
            Wire::Rooms(_) => false,
        }
    }

    /// Ends it: a process is asked to stop, a session is deleted.
    pub(crate) async fn close(&self) {
        match &self.wire {
            Wire::Http(wire) => wire.close().await,
            Wire::Pipe(pipe) => pipe.close().await,
            Wire::Rooms(_) => {}
        }
    }
}

/// Whose connection it is.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// One client session's own.
    Session(Weak<Session>),
    /// Everybody's.
    Shared,
}

/// Where a connection hands what no call of its own explains.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    pub(crate) mount: Weak<Mount>,
    pub(crate) owner: Owner,
}

impl Inbox {
    /// A notification that belongs to none of the calls in flight (`near`: those there are).
    pub(crate) fn notified(&self, notification: &Notification, near: &[Arc<Back>]) {
        if let Some(mount) = self.mount.upgrade() {
            mount.notified(&self.owner, notification, near);
        }
    }
    /// An answer came that has the id of another request.
    pub(crate) fn misanswered(&self) {
        if let Some(mount) = self.mount.upgrade() {
            mount.misanswered();
        }
    }

    /// Lists may have changed while nobody could be told.
    pub(crate) fn missed(&self) {
        if let (Some(mount), Owner::Shared) = (self.mount.upgrade(), &self.owner) {
            mount.dirty(&Kind::ALL);
        }
    }
}
