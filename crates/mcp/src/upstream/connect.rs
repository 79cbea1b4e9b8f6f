//! Opens a connection to a server: starts the process if any, and finds the era.
//!
//! Does not retry; `supervise.rs` does.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use banyan_model::Era;
use bytes::Bytes;
use config::resolved::{self, ClientTls, Hosts, Process, Remote, Transport};
use futures_util::future::BoxFuture;
use http::HeaderMap;
use mcp_proto::client::{Handshake, HandshakeError, Identity, Negotiated, Pipe, Step};
use mcp_proto::envelope::{Answer, Message};
use mcp_proto::era::STATELESS;
use mcp_proto::json::Duplicates;
use mcp_proto::mcpax::{self, Peer};
use runtime::reach::{Reach, is_loopback};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::upstream::Upstreams;
use crate::upstream::http::{Body, Doubts, Heads, HttpUpstream, HttpWire, Sent, SpokenRevision, excerpt};
use crate::upstream::oauth::OAuthClient;
use crate::upstream::pipe;
use crate::upstream::pipe::OpenError;
use crate::upstream::pool::Pool;
use crate::upstream::{process, sse, standing};
use call::tree::mount::Mount;
use call::tree::port::{Family, Inbox, NewConnection, Opens, OutgoingRequest, Owner, UpstreamError};
use trust::Client;

/// Longest wait for the answer of a child process to the probe for the stateless era.
const PROBE: Duration = Duration::from_secs(3);

/// Longest wait of the first call for the standing stream.
const OPENING: Duration = Duration::from_millis(50);

/// Opens connections to one MCP server.
pub struct Dialer {
    upstreams: Arc<Upstreams>,
    config: Arc<resolved::Mount>,
    oauth: Option<Arc<OAuthClient>>,
    doubts: Arc<Doubts>,
    /// Connections over the link of a server that registered over one; `None` to dial the URL.
    link: Option<Arc<Pool>>,
}

impl Dialer {
    /// Makes the dialer of a configured mount.
    pub fn new(upstreams: &Arc<Upstreams>, config: &Arc<resolved::Mount>) -> Self {
        let oauth = match &config.transport {
            Transport::Http(remote) | Transport::Sse(remote) => remote
                .oauth
                .clone()
                .map(|oauth| Arc::new(OAuthClient::new(config.name.as_str(), remote.url.clone(), oauth, &upstreams.state_dir))),
            Transport::Family(_) | Transport::Stdio(_) => None,
        };
        Self { upstreams: Arc::clone(upstreams), config: Arc::clone(config), oauth, doubts: Arc::default(), link: None }
    }

    /// Makes the dialer of a server that registered itself, over `link` if given.
    pub fn registered(upstreams: &Arc<Upstreams>, config: &Arc<resolved::Mount>, link: Option<Arc<Pool>>) -> Self {
        Self { link, ..Self::new(upstreams, config) }
    }
}

impl Opens for Dialer {
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, owner: Owner, identity: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        let inbox = Inbox { mount: Arc::downgrade(mount), owner };
        Box::pin(async move {
            match &self.config.transport {
                Transport::Stdio(process) => self.open_process(mount, process, inbox, identity).await,
                Transport::Http(remote) => self.open_http(mount, remote, inbox, identity).await,
                Transport::Sse(remote) => self.open_sse(mount, remote, inbox, identity).await,
                Transport::Family(family) => Err(UpstreamError::Unreachable(unknown_family(family.family(), &self.upstreams.families))),
            }
        })
    }

    fn kind(&self) -> &'static str {
        match &self.config.transport {
            Transport::Http(_) if self.link.is_some() => "link",
            Transport::Http(_) => "http",
            Transport::Family(family) => family.family(),
            Transport::Sse(_) => "sse",
            Transport::Stdio(_) => "stdio",
        }
    }

    fn identity(&self) -> String {
        match &self.config.transport {
            Transport::Http(remote) | Transport::Sse(remote) => remote.url.to_string(),
            Transport::Family(family) => family.description(),
            Transport::Stdio(process) => {
                let args: Vec<String> = process.args.iter().map(ToString::to_string).collect();
                format!("{:?} {args:?} {:?}", process.command, process.cwd)
            }
        }
    }
}

/// Explains a mount of a family that no part of this gate brings.
fn unknown_family(family: &str, known: &[Arc<dyn Family>]) -> String {
    let known: Vec<&str> = ["command", "url"].into_iter().chain(known.iter().map(|known| known.name())).collect();
    format!("no part of this gate opens servers of the kind `{family}`: it knows {}", known.join(", "))
}

impl Dialer {
    async fn open_process(
        &self,
        mount: &Arc<Mount>,
        child: &Process,
        inbox: Inbox,
        identity: Identity,
    ) -> Result<NewConnection, UpstreamError> {
        let mut era = mount.config.era;
        loop {
            let limit = mount.gate.limits().response_bytes;
            let (sources, stderr) = (&*self.upstreams.sources, &mount.connections.stderr);
            let carrier = match &child.shared {
                None => process::start(child, sources, stderr, limit, PROBE),
                Some(shared) => self.upstreams.shared.open(child, shared, sources, stderr, (limit, PROBE)).await,
            };
            let carrier = carrier.map_err(UpstreamError::Unreachable)?;
            let (close, ended) = (carrier.close.clone(), carrier.ended.clone());
            let _closes_on_drop = close.clone().drop_guard();
            match pipe::open(Pipe::new(era, identity.clone()), carrier, inbox.clone()).await {
                Ok((handle, negotiated)) => {
                    _closes_on_drop.disarm();
                    return Ok((Box::new(handle), negotiated));
                }
                // Some servers end at any message before `initialize`; the next start goes without the probe.
                Err(OpenError::Ended { probing: true, why }) if era.is_none() => {
                    tracing::debug!(mount = %mount.config.name, why, "it ended on the probe for the stateless era; trying again without");
                    close.cancel();
                    ended.cancelled().await;
                    era = Some(Era::Initialize);
                }
                Err(OpenError::Ended { why, .. }) => return Err(UpstreamError::Unreachable(why)),
                Err(OpenError::Handshake(e)) => {
                    close.cancel();
                    ended.cancelled().await;
                    return Err(UpstreamError::Unreachable(e.to_string()));
                }
            }
        }
    }

    async fn open_http(
        &self,
        mount: &Arc<Mount>,
        remote: &Remote,
        inbox: Inbox,
        identity: Identity,
    ) -> Result<NewConnection, UpstreamError> {
        let shows_something = !remote.headers.is_empty() || self.oauth.is_some();
        if shows_something && remote.url.scheme() == "http" && !remote.insecure && !is_loopback(&remote.url) {
            // A credential for a gate must not be overheard, so a first request without it asks if a gate answers.
            if is_gate(&self.upstreams, &remote.url, Handshake::new(mount.config.era, identity.clone())).await {
                return Err(UpstreamError::Exposed);
            }
        }
        let wire = Arc::new(self.wire(mount, remote, inbox.clone())?);
        match shake(&wire, Handshake::new(mount.config.era, identity.clone())).await {
            Ok(negotiated) if is_exposed(&wire, remote, &negotiated) => Err(UpstreamError::Exposed),
            Ok(negotiated) => {
                if negotiated.era == Era::Initialize {
                    let (opened, open) = oneshot::channel();
                    tokio::spawn(standing::keep_get(Arc::clone(&wire), opened));
                    // Some servers ask on this stream and lose the question without it. Others say nothing until they ask.
                    drop(tokio::time::timeout(OPENING, open).await);
                }
                Ok((Box::new(HttpUpstream(wire)), negotiated))
            }
            // A server that takes no POST may be of revision 2024-11-05 (2025-11-25 "Backwards compatibility").
            Err(UpstreamError::Refused { status: status @ (400 | 404 | 405), body }) => {
                self.open_sse(mount, remote, inbox, identity).await.map_err(|_| UpstreamError::Refused { status, body })
            }
            Err(e) => Err(e),
        }
    }

    async fn open_sse(
        &self,
        mount: &Arc<Mount>,
        remote: &Remote,
        inbox: Inbox,
        identity: Identity,
    ) -> Result<NewConnection, UpstreamError> {
        let carrier = sse::start(self.wire(mount, remote, inbox.clone())?).await?;
        // Servers of revision 2024-11-05 know nothing of the stateless era.
        match pipe::open(Pipe::new(Some(Era::Initialize), identity), carrier, inbox).await {
            Ok((handle, negotiated)) => Ok((Box::new(handle), negotiated)),
            Err(OpenError::Ended { why, .. }) => Err(UpstreamError::Unreachable(why)),
            Err(OpenError::Handshake(e)) => Err(UpstreamError::Unreachable(e.to_string())),
        }
    }

    fn wire(&self, mount: &Arc<Mount>, remote: &Remote, inbox: Inbox) -> Result<HttpWire, UpstreamError> {
        let headers = remote.header_map(&*self.upstreams.sources).map_err(UpstreamError::Unreachable)?;
        let held = self.link.clone();
        let reach = mount.registration.as_ref().map(|_| reach(&self.upstreams, &remote.url));
        let pool = held.unwrap_or_else(|| pool(&self.upstreams, remote, reach));
        Ok(HttpWire {
            oauth: self.oauth.clone(),
            doubts: Arc::clone(&self.doubts),
            ..bare(&self.upstreams, &remote.url, &headers, pool, inbox)
        })
    }
}

/// Checks, without any credential, that a gate answers at `url`. A gate that refuses marks its refusal.
async fn is_gate(upstreams: &Upstreams, url: &url::Url, handshake: Handshake) -> bool {
    let wire = Arc::new(anonymous(upstreams, url, None, None));
    let found = match shake(&wire, handshake).await {
        Ok(negotiated) => matches!(mcpax::peer(&negotiated.capabilities), Peer::Gate(_)),
        Err(UpstreamError::Refused { body, .. }) => body.contains(mcpax::ID),
        Err(_) => false,
    };
    wire.close().await;
    found
}

/// Checks for a gate reached over a connection that others can overhear, without leave in the configuration (AX-42).
fn is_exposed(wire: &HttpWire, remote: &Remote, negotiated: &Negotiated) -> bool {
    let gate = matches!(mcpax::peer(&negotiated.capabilities), Peer::Gate(_));
    gate && wire.pool.is_exposed() && !remote.insecure && !is_loopback(&remote.url)
}

/// Pool for a server. TLS settings of its own keep other servers' calls off its connections.
fn pool(upstreams: &Upstreams, remote: &Remote, reach: Option<Reach>) -> Arc<Pool> {
    match remote.tls.clone() {
        None => upstreams.origins.pool(&remote.url, &upstreams.connector, reach),
        Some(tls) => Pool::new(&remote.url, Arc::clone(&upstreams.connector), Some(Client::new(tls)), reach),
    }
}

/// Addresses to which the host of a registered URL may lead.
fn reach(upstreams: &Upstreams, url: &url::Url) -> Reach {
    let config = upstreams.gate.config.load();
    let none = Hosts::default();
    config.registry.as_ref().map_or(&none, |registry| &registry.hosts).reach(url)
}

/// Wire to a registered server at `url`, for a single request in the stateless era, without handshake or mount.
pub fn registered(upstreams: &Upstreams, url: &url::Url, tls: Option<ClientTls>) -> Arc<HttpWire> {
    let wire = anonymous(upstreams, url, tls, Some(reach(upstreams, url)));
    wire.spoken.set(Some(STATELESS));
    Arc::new(wire)
}

/// Wire to a server at `url` without mount, and without any configured credential.
fn anonymous(upstreams: &Upstreams, url: &url::Url, tls: Option<ClientTls>, reach: Option<Reach>) -> HttpWire {
    let inbox = Inbox { mount: Weak::new(), owner: Owner::Shared };
    let pool = Pool::new(url, Arc::clone(&upstreams.connector), tls.map(Client::new), reach);
    bare(upstreams, url, &HeaderMap::new(), pool, inbox)
}

fn bare(upstreams: &Upstreams, url: &url::Url, headers: &HeaderMap, pool: Arc<Pool>, inbox: Inbox) -> HttpWire {
    HttpWire {
        pool,
        url: url.clone(),
        heads: Heads::new(url, headers),
        oauth: None,
        doubts: Arc::default(),
        spoken: SpokenRevision::default(),
        session: OnceLock::new(),
        inbox,
        limit: upstreams.gate.limits().response_bytes,
        next_id: AtomicU64::new(2),
        calls: Mutex::default(),
        closed: CancellationToken::new(),
    }
}

async fn shake(wire: &Arc<HttpWire>, mut handshake: Handshake) -> Result<Negotiated, UpstreamError> {
    let mut step = handshake.start();
    loop {
        match step {
            Step::Send { message, method, version } => {
                wire.spoken.set(version);
                step = match exchange(wire, message, method).await? {
                    Ok(answer) => handshake.handle_answer(&answer),
                    Err(refused) if handshake.is_probing() => handshake.handle_refusal(refused),
                    Err(HandshakeError::Refused(why)) => return Err(status_of(&why)),
                    Err(other) => return Err(UpstreamError::Malformed(other.to_string())),
                };
            }
            Step::Done(negotiated, last) => {
                wire.spoken.set(Some(&negotiated.version));
                if let Some(message) = last {
                    wire.notify("notifications/initialized", message).await;
                }
                return Ok(negotiated);
            }
            Step::Failed(why) => return Err(UpstreamError::Unreachable(why.to_string())),
        }
    }
}

/// Sends a request of the handshake. The inner error is the HTTP refusal of the server.
async fn exchange(wire: &Arc<HttpWire>, message: Bytes, method: &str) -> Result<Result<Answer, HandshakeError>, UpstreamError> {
    let (status, body) = match wire.post(Sent::whole(&message), &OutgoingRequest::plain(method, Bytes::new())).await? {
        Body::Whole(status, body) => (status, body),
        Body::Events(response) => (200, wire.first_response(*response).await?),
    };
    let asked = if let Ok(Message::Request(request)) = Message::parse(&message, Duplicates::RefuseTop) { request.id } else { Bytes::new() };
    Ok(match Message::parse(&body, Duplicates::RefuseTop) {
        Ok(Message::Response(r)) if matches!(r.answer, Answer::Result(_)) && r.id != asked => {
            return Err(UpstreamError::Malformed("its answer has the id of another request".into()));
        }
        Ok(Message::Response(r)) if (200..300).contains(&status) || (method != "initialize" && matches!(r.answer, Answer::Error(_))) => {
            Ok(r.answer)
        }
        _ if status >= 500 => return Err(UpstreamError::Refused { status, body: excerpt(&body) }),
        _ => Err(HandshakeError::Refused(format!("{status} {}", excerpt(&body)))),
    })
}

fn status_of(why: &str) -> UpstreamError {
    let (status, body) = why.split_once(' ').unwrap_or(("0", why));
    UpstreamError::Refused { status: status.parse().unwrap_or(0), body: body.to_owned() }
}
