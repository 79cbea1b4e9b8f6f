//! Port for everything that answers calls: a live connection, its opener, and its errors. Does not know what carries messages.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use banyan_model::Era;
use bytes::Bytes;
use config::resolved;
use futures_util::future::BoxFuture;
use mcp_proto::catalog::Kind;
use mcp_proto::client::{Identity, Negotiated};
use mcp_proto::envelope::{Answer, Notification};
use mcp_proto::json::Object;
use mcp_proto::mcpax::{self, Peer};
use runtime::clock;
use telemetry::trace_context::TraceContext;

use crate::tree::back::Back;
use crate::tree::mount::Mount;
use crate::tree::silence::Silence;
use crate::words::session::Session;

/// A member of a result: its name and its raw value.
pub type Member = (&'static str, &'static [u8]);

/// A request on its way to a server.
#[derive(Debug)]
pub struct OutgoingRequest<'a> {
    pub method: &'a str,
    /// Params with the names and the `_meta` of this server.
    pub params: Cow<'a, Object>,
    /// Value of `Mcp-Name` (stateless era over HTTP).
    pub name: Option<&'a str>,
    /// `Mcp-Param-*` headers (stateless era over HTTP).
    pub param_headers: Vec<(String, String)>,
    /// W3C trace context for the next hop.
    pub trace: Option<&'a TraceContext>,
    /// Longest silence, if other than the mount's.
    pub limit: Option<Duration>,
    /// Members to add to a result that may be poured; `None` for a result wanted whole.
    pub pour: Option<&'static [Member]>,
    /// Somebody has agreed to the call, which leaves once.
    pub is_agreed: bool,
}

impl<'a> OutgoingRequest<'a> {
    /// Makes a request without headers and tracing.
    pub fn plain(method: &'a str, params: impl Into<Object>) -> Self {
        Self {
            method,
            params: Cow::Owned(params.into()),
            name: None,
            param_headers: Vec::new(),
            trace: None,
            limit: None,
            pour: None,
            is_agreed: false,
        }
    }
}

/// Reasons why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The caller withdrew, so nobody waits.
    #[error("the call was cancelled")]
    Cancelled,
    /// The server is a gate, and others can listen in on the way.
    #[error(
        "it is a gate, and is reached without TLS 1.3, so that others can listen in: give it a certificate (`banyan ca init` there) and \
         write https:// in its `url`, or say `insecure = true` in this mount"
    )]
    Exposed,
    /// The connection or process ended; whether the call took effect is not known.
    #[error("{0}")]
    Lost(String),
    /// The server is a gate with this gate below it.
    #[error(
        "it is, or leads to, this very gate: its tools would be listed within themselves. Take it out of the configuration of one of the gates"
    )]
    Loop,
    /// The answer is no MCP.
    #[error("{0}")]
    Malformed(String),
    #[error("it answered HTTP {status}: {body}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Beginning of the body.
        body: String,
    },
    /// The server has forgotten our session; the call did not take effect.
    #[error("it has forgotten our session")]
    SessionLost,
    /// A person must sign in first.
    #[error("it needs a sign-in: {0}")]
    SignIn(String),
    /// The request took longer than any may, whatever progress was reported.
    #[error("it had not answered after {0:?}, which is the longest that a request may take there")]
    Endless(Duration),
    /// Nothing came for as long as the mount allows.
    #[error("it gave no sign of life for {0:?}")]
    Silent(Duration),
    /// The answer is larger than allowed.
    #[error("its answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The server does not announce changes of a resource.
    #[error("it does not tell when this changes: {0}")]
    Untold(String),
    /// The server can't be reached; the call did not take effect.
    #[error("{0}")]
    Unreachable(String),
}

impl UpstreamError {
    /// Checks for an error that lasts until a person changes a gate's configuration.
    pub fn is_for_people(&self) -> bool {
        matches!(self, Self::Exposed | Self::Loop)
    }
}

/// A live connection to anything that answers calls: an MCP server, rooms, a device.
pub trait Upstream: Any + Debug + Send + Sync {
    /// Sends a request and waits for its answer; earlier messages go to `back`.
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>>;

    /// Sends a whole notification.
    fn notify<'a>(&'a self, method: &'a str, whole: Bytes) -> BoxFuture<'a, ()>;

    /// Waits until the connection is gone by itself.
    fn lost(&self) -> BoxFuture<'_, ()>;

    /// Checks that the connection is gone by itself.
    fn is_lost(&self) -> bool;

    /// Closes the connection: stops a process, deletes a session.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Traits of the connection.
    fn traits(&self) -> UpstreamTraits {
        UpstreamTraits::default()
    }

    /// Reason for the connection's end, in a sentence for people.
    fn last_words(&self) -> String {
        "the connection was closed".into()
    }
}

/// Traits of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamTraits {
    /// Each call has a connection of its own, so that a broken one says nothing about the server.
    pub has_own_connections: bool,
    /// Calls go over the link of a gate below.
    pub is_linked: bool,
    /// The tools have paths as names, like those of a gate.
    pub has_paths: bool,
}

/// A new connection, and the server's description of itself.
pub type NewConnection = (Box<dyn Upstream>, Negotiated);

/// Opens connections of a mount. Each family hands in its own opener.
pub trait Opens: Send + Sync {
    /// Opens a connection for `owner`, with `identity` as the client. Does not retry.
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, owner: Owner, identity: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>>;

    /// Way to reach the server, in a word for people: `stdio`, `http`, `sse`, `link`, or the name of its family.
    fn kind(&self) -> &'static str;

    /// Identity of the server for pins. Leaves out environment and headers, which hold changing things such as tokens.
    fn identity(&self) -> String;

    /// Checks for tools offered by many parts, each with an identity of its own, and none a gate.
    fn has_parts(&self) -> bool {
        false
    }

    /// Part to which a tool belongs.
    fn part_of<'t>(&self, _tool: &'t str) -> &'t str {
        ""
    }
}

/// A kind of upstream other than MCP servers.
pub trait Family: Send + Sync {
    /// Name of the family in the configuration: `FamilySettings::FAMILY`.
    fn name(&self) -> &'static str;

    /// Makes the opener of a mount; `None` for mounts of other kinds.
    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>>;
}

impl Mount {
    /// Opens a connection for `owner`, with `identity` as the client.
    pub async fn open(self: &Arc<Self>, owner: Owner, identity: Identity) -> Result<Arc<Instance>, UpstreamError> {
        let limit = self.config.start_timeout;
        let (upstream, negotiated) = match tokio::time::timeout(limit, self.opens.open(self, owner, identity)).await {
            Ok(opened) => opened?,
            Err(_) => return Err(UpstreamError::Silent(limit)),
        };
        let traits = upstream.traits();
        Ok(Arc::new(Instance { upstream, traits, negotiated, timeout: self.config.timeout, longest: self.config.longest }))
    }
}

/// A live connection to a server, with its limits.
#[derive(Debug)]
pub struct Instance {
    /// Carrier of messages.
    pub upstream: Box<dyn Upstream>,
    pub traits: UpstreamTraits,
    /// Server's description of itself.
    pub negotiated: Negotiated,
    /// Longest silence of a request without a limit of its own.
    pub timeout: Duration,
    /// Longest time of any request, whatever progress is reported.
    pub longest: Duration,
}

impl Instance {
    /// Sends a request and waits for its answer, as long as there are signs of life; earlier messages go to `back`.
    pub async fn request(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        self.request_since(out, back, clock::now()).await
    }

    /// Sends a request that began at `began`, for a caller that has read the clock.
    pub async fn request_since(
        &self,
        out: &OutgoingRequest<'_>,
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
            // The connection cancels at the server by `back`, or without it when the request is dropped.
            drop(Box::pin(tokio::time::timeout(Duration::from_secs(1), &mut request)).await);
        }
        Err(over)
    }

    /// Sends a request that may stay open without limit: a stream of events.
    pub async fn stand(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        self.upstream.call(out, back).await
    }

    /// Sends a whole notification.
    pub async fn notify(&self, method: &str, whole: Bytes) {
        if tokio::time::timeout(self.timeout, self.upstream.notify(method, whole)).await.is_err() {
            tracing::debug!(method, "a notification was not taken in time");
        }
    }

    /// Checks for a connection of its own for each call, so that a broken one says nothing about the server.
    pub fn is_http(&self) -> bool {
        self.traits.has_own_connections
    }

    /// Checks for calls over the link of a gate below.
    pub fn is_linked(&self) -> bool {
        self.traits.is_linked
    }

    /// Id by which the server claims to be a gate.
    pub fn gate_id(&self) -> Option<String> {
        match mcpax::peer(&self.negotiated.capabilities) {
            Peer::Gate(id) => Some(id),
            Peer::Plain | Peer::Reader => None,
        }
    }

    /// Era spoken.
    pub fn era(&self) -> Era {
        self.negotiated.era
    }

    /// Waits until the connection is gone by itself. Over HTTP a server is never seen to go, unless a link carries the connection.
    pub async fn lost(&self) {
        self.upstream.lost().await;
    }

    /// Checks that the connection is gone by itself.
    pub fn is_lost(&self) -> bool {
        self.upstream.is_lost()
    }

    /// Closes the connection: stops a process, deletes a session.
    pub async fn close(&self) {
        self.upstream.close().await;
    }
}

/// Owner of a connection.
#[derive(Debug, Clone)]
pub enum Owner {
    /// A client session.
    Session(Weak<Session>),
    /// Everybody.
    Shared,
}

/// Receiver of a connection's messages outside of its calls.
#[derive(Debug, Clone)]
pub struct Inbox {
    pub mount: Weak<Mount>,
    pub owner: Owner,
}

impl Inbox {
    /// Takes a notification that belongs to none of the calls in flight, `near`.
    pub fn notified(&self, notification: &Notification, near: &[Arc<Back>]) {
        if let Some(mount) = self.mount.upgrade() {
            mount.notified(&self.owner, notification, near);
        }
    }
    /// Notes an answer with the id of another request.
    pub fn misanswered(&self) {
        if let Some(mount) = self.mount.upgrade() {
            mount.misanswered();
        }
    }

    /// Lists may have changed while nobody could be told.
    pub fn missed(&self) {
        if let (Some(mount), Owner::Shared) = (self.mount.upgrade(), &self.owner) {
            mount.connections.dirty(&Kind::ALL);
        }
    }
}
