//! `/link`: a gate below dials, and the connection turns round (MCP-AX 6, ours). Does not know the registrations of the link.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcp_proto::envelope::{self, Notification};
use mcp_proto::http1::Fields;
use mcp_proto::json::Object;
use mesh_proto::authority::Identity;
use mesh_proto::id::LinkId;
use tokio::sync::mpsc;

use crate::link;
use crate::link::{Link, LinkMessage};
use crate::mesh::Mesh;
use crate::registry::{Ask, LinkEnd};
use call::way::error::answered;
use call::words::entered::AdmittedCaller;
use call::words::party::Party;
use door::entrance::Entrance;
use door::entry::EntryRefusal;
use door::held;
use door::held::HeldEntry;
use door::known::KnownClient;
use door::port::{Door, fields};
use door::reply;
use door::reply::Payload;
use mcp::downstream::endpoint;
use mcp::upstream::pool::{Carrier, Pool};

/// Simultaneous requests of one link; the rest waits on the wire.
const AT_ONCE: usize = 256;

/// The child's MCP endpoint in requests over the child's link.
const ENDPOINT: &str = "http://child/mcp";

/// Answer to a gate on a network without TLS (AX-42).
const EXPOSED: &str = "a gate on the network is taken over TLS 1.3 only: others could read and change every call. Give this gate a \
     certificate (section [tls]) and dial it by https://, or say `insecure = true` in its section [registry]";

/// The endpoint of links at the listener.
pub struct LinkDoor(pub Arc<Mesh>);

impl Door for LinkDoor {
    fn is_here(&self, path: &str) -> bool {
        path == link::PATH
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        std::future::ready(handle(&self.0, request, party)).boxed()
    }
}

/// Takes a link, or answers with the reason of a refusal.
fn handle(mesh: &Arc<Mesh>, mut request: Request<Incoming>, party: Option<Arc<Party>>) -> Response<Payload> {
    let asks = request.headers().get(UPGRADE).is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(link::PROTOCOL.as_bytes()));
    if !asks || request.method() != Method::GET {
        let why = format!("gates below connect here, with `Upgrade: {}`; MCP clients connect to /mcp", link::PROTOCOL);
        let upgrade = HeaderValue::from_static(link::PROTOCOL);
        return reply::refuse(StatusCode::UPGRADE_REQUIRED, None, -32000, &why).with(UPGRADE, upgrade).into_http();
    }
    let beat =
        request.headers().get(link::BEAT).and_then(|ms| ms.to_str().ok()?.parse().ok()).map_or(Duration::ZERO, Duration::from_millis);
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let held = match HeldEntry::enter(&mesh.server.entrance, party, fields(&parts), enter) {
        Ok(held) => held,
        Err(refused) => return endpoint::refuse(&refused).into_http(),
    };
    let mesh = Arc::clone(mesh);
    tokio::spawn(async move {
        let taken = match upgrade.await {
            Ok(io) => link::accept(io, beat).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match taken {
            Ok((link, said)) => {
                let is_here = held.entered.party.as_ref().is_none_or(|party| party.is_here());
                let serving = LinkService { mesh: Arc::clone(&mesh), link, identity: identity(&held.entered), is_here };
                serving.run(said, held.over()).await;
            }
            Err(error) => tracing::warn!(error, principal = %held.entered.principal.name, "a gate below dialled, and no link came of it"),
        }
    });
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS).into_http();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(link::PROTOCOL));
    response
}

/// Admits a dialling gate, or refuses.
fn enter(entrance: &Arc<Entrance>, known: &mut KnownClient, fields: &Fields) -> Result<AdmittedCaller, EntryRefusal> {
    let config = entrance.gate.config.load();
    let entered = held::enter(entrance, known, fields)?;
    let insecure = config.registry.as_ref().is_some_and(|registry| registry.insecure);
    if !insecure && entered.party.as_ref().is_some_and(|party| !party.is_private()) {
        return Err(EntryRefusal { status: StatusCode::FORBIDDEN, why: EXPOSED.into(), challenge: None });
    }
    Ok(entered)
}

fn identity(entered: &AdmittedCaller) -> Identity {
    let proven = entered.party.as_ref().map(|party| party.proven().clone()).unwrap_or_default();
    Identity { principal: Arc::clone(&entered.principal.name), proven }
}

/// A link in service.
struct LinkService {
    mesh: Arc<Mesh>,
    link: Arc<Link>,
    identity: Identity,
    /// The gate below is on this machine.
    is_here: bool,
}

impl LinkService {
    /// Runs until either side gives up, or `over` is ready with a reason.
    async fn run(self, mut said: mpsc::Receiver<LinkMessage>, over: impl Future<Output = String>) {
        let Ok(url) = ENDPOINT.parse() else { return };
        let (asks, mut asked) = mpsc::channel(AT_ONCE);
        let id = self.mesh.registry.open_link(LinkEnd { url, pool: Pool::over(Arc::clone(&self.link) as Arc<dyn Carrier>), asks }).await;
        let mut answering = FuturesUnordered::new();
        let mut over = pin!(over);
        loop {
            tokio::select! {
                // A request is handed on before the next one is read, so that they keep their order.
                biased;
                Some(()) = answering.next() => {}
                () = self.mesh.gate.stop.cancelled() => break,
                () = self.link.gone() => break,
                why = &mut over => {
                    tracing::warn!(why, principal = %self.identity.principal, "a gate below is let go");
                    self.link.cut();
                    break;
                }
                ask = asked.recv() => match ask {
                    Some(ask) => self.ask(ask),
                    None => break,
                },
                said = said.recv(), if answering.len() < AT_ONCE => match said {
                    Some(LinkMessage::Request { id: request, method, params }) => answering.push(self.answer(id, request, method, params)),
                    Some(LinkMessage::Notification { method, params }) => {
                        let whole = envelope::notification(&method, &params);
                        let notification = Notification { method, params: Object::from(params), whole };
                        self.mesh.registry.notified(id, notification).await;
                    }
                    None => break,
                },
            }
        }
        self.link.close();
        self.mesh.registry.link_lost(id).await;
    }

    /// Asks the child.
    fn ask(&self, ask: Ask) {
        let answer = self.link.control().ask(ask.method, ask.params.as_bytes());
        tokio::spawn(async move {
            if let Ok(answer) = answer.await {
                // Whoever asked may have lost patience.
                drop(ask.reply.send(answer));
            }
        });
    }

    /// Answers the child.
    async fn answer(&self, link: LinkId, request: Bytes, method: String, params: Bytes) {
        let answer = self.mesh.registry.request((link, self.is_here), &self.identity, &method, params).await;
        self.link.control().answer(&request, &answered(answer));
    }
}
