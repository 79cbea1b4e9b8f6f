//! The port of whatever answers calls: one live connection, what opens it, and why it gave no answer. What carries messages is not known here.

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
pub struct Outgoing<'a> {
    /// The method.
    pub method: &'a str,
    /// The params, names and `_meta` already those of this server.
    pub params: Cow<'a, Object>,
    /// What goes into `Mcp-Name` (stateless era over HTTP).
    pub name: Option<&'a str>,
    /// `Mcp-Param-*` headers (stateless era over HTTP).
    pub param_headers: Vec<(String, String)>,
    /// W3C trace context for the next hop.
    pub trace: Option<&'a TraceContext>,
    /// Longest silence, where that is another time than the mount's.
    pub limit: Option<Duration>,
    /// The result may be poured, with these members where it lacks them; `None`: it is wanted as a whole.
    pub pour: Option<&'static [Member]>,
}

impl<'a> Outgoing<'a> {
    /// A request that needs neither headers nor tracing.
    pub fn plain(method: &'a str, params: impl Into<Object>) -> Self {
        Self { method, params: Cow::Owned(params.into()), name: None, param_headers: Vec::new(), trace: None, limit: None, pour: None }
    }
}

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
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
    pub fn is_for_people(&self) -> bool {
        matches!(self, Self::Exposed | Self::Loop)
    }
}

/// One live connection to whatever answers calls: an MCP server, rooms, a device.
pub trait Upstream: Any + Debug + Send + Sync {
    /// Sends one request and waits for its answer; what comes before goes to `back`.
    fn call<'a>(&'a self, out: &'a Outgoing<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>>;

    /// Sends a whole notification.
    fn notify<'a>(&'a self, method: &'a str, whole: Bytes) -> BoxFuture<'a, ()>;

    /// Waits until the connection is gone by itself.
    fn lost(&self) -> BoxFuture<'_, ()>;

    /// Checks that it is gone by itself.
    fn is_lost(&self) -> bool;

    /// Ends it: a process is asked to stop, a session is deleted.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Traits that callers and lists go by.
    fn traits(&self) -> UpstreamTraits {
        UpstreamTraits::default()
    }

    /// Why it is gone, in a sentence for people.
    fn last_words(&self) -> String {
        "the connection was closed".into()
    }
}

/// Traits of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamTraits {
    /// Each call has a connection of its own, so that one that breaks says nothing of the server.
    pub has_own_connections: bool,
    /// Calls go over the link of a gate below.
    pub is_linked: bool,
    /// Its tools have paths for names, as those of a gate.
    pub has_paths: bool,
}

/// A new connection, and what its server said about itself.
pub type Opened = (Box<dyn Upstream>, Negotiated);

/// Opens connections of one mount. Each family hands in its own.
pub trait Opens: Send + Sync {
    /// Opens one for `owner`, which says `identity` about itself. Nothing is tried twice.
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, owner: Owner, identity: Identity) -> BoxFuture<'a, Result<Opened, UpstreamError>>;

    /// How the server is reached, in a word for people: `stdio`, `http`, `sse`, `link`, or the name of its family.
    fn kind(&self) -> &'static str;

    /// By what the server is known again. Its environment and headers hold what changes, such as tokens, and say little of who it is.
    fn identity(&self) -> String;

    /// Checks that its tools are offered by many, each of them known by itself, of whom none is a gate.
    fn has_parts(&self) -> bool {
        false
    }

    /// Whose a tool is among those.
    fn part_of<'t>(&self, _tool: &'t str) -> &'t str {
        ""
    }
}

/// A kind of upstream that is no MCP server.
pub trait Family: Send + Sync {
    /// The name that mounts of this kind have in the configuration: `FamilySettings::FAMILY`.
    fn name(&self) -> &'static str;

    /// Opens connections of a mount; `None`: that is not of this kind.
    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>>;
}

impl Mount {
    /// Opens a connection for `owner`, which says `identity` about itself.
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

/// One live connection to a server.
#[derive(Debug)]
pub struct Instance {
    /// Carries its messages.
    pub upstream: Box<dyn Upstream>,
    pub traits: UpstreamTraits,
    /// What it said about itself.
    pub negotiated: Negotiated,
    /// Longest silence of a request that says nothing of that itself.
    pub timeout: Duration,
    /// Longest time of any request, whatever the server says of its progress.
    pub longest: Duration,
}

impl Instance {
    /// Sends one request and waits for its answer, as long as it gives signs of life; what comes before goes to `back`.
    pub async fn request(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        self.request_since(out, back, clock::now()).await
    }

    /// The same for a caller that has looked at the clock.
    pub async fn request_since(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>, began: Instant) -> Result<Answer, UpstreamError> {
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
    pub async fn stand(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        self.upstream.call(out, back).await
    }

    /// Sends a whole notification.
    pub async fn notify(&self, method: &str, whole: Bytes) {
        if tokio::time::timeout(self.timeout, self.upstream.notify(method, whole)).await.is_err() {
            tracing::debug!(method, "a notification was not taken in time");
        }
    }

    /// Whether each call has a connection of its own, so that one that breaks says nothing of the server.
    pub fn is_http(&self) -> bool {
        self.traits.has_own_connections
    }

    /// Whether it goes over the link of a gate below.
    pub fn is_linked(&self) -> bool {
        self.traits.is_linked
    }

    /// The id under which it says that it is a gate.
    pub fn gate_id(&self) -> Option<String> {
        match mcpax::peer(&self.negotiated.capabilities) {
            Peer::Gate(id) => Some(id),
            Peer::Plain | Peer::Reader => None,
        }
    }

    /// The era it speaks.
    pub fn era(&self) -> Era {
        self.negotiated.era
    }

    /// Waits until the connection is gone by itself. One over HTTP is never seen to go, unless a link carries it.
    pub async fn lost(&self) {
        self.upstream.lost().await;
    }

    /// Whether it is gone by itself.
    pub fn is_lost(&self) -> bool {
        self.upstream.is_lost()
    }

    /// Ends it: a process is asked to stop, a session is deleted.
    pub async fn close(&self) {
        self.upstream.close().await;
    }
}

/// Whose connection it is.
#[derive(Debug, Clone)]
pub enum Owner {
    /// One client session's own.
    Session(Weak<Session>),
    /// Everybody's.
    Shared,
}

/// Where a connection hands what no call of its own explains.
#[derive(Debug, Clone)]
pub struct Inbox {
    pub mount: Weak<Mount>,
    pub owner: Owner,
}

impl Inbox {
    /// A notification that belongs to none of the calls in flight (`near`: those there are).
    pub fn notified(&self, notification: &Notification, near: &[Arc<Back>]) {
        if let Some(mount) = self.mount.upgrade() {
            mount.notified(&self.owner, notification, near);
        }
    }
    /// An answer came that has the id of another request.
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
