//! `/link`: a gate below dials, and the connection turns round (MCP-AX 6, ours). What it registers is not known here.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
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

use super::door::{Entered, Refused};
use super::http::fields;
use super::known::Known;
use super::reply::{self, Payload};
use crate::Inner;
use crate::call::error::answered;
use crate::link::{self, Link, Said};
use crate::registry::{Ask, LinkEnd};
use crate::upstream::pool::Pool;

/// How many requests of one link are under way at most; the rest waits on the wire.
const AT_ONCE: usize = 256;

/// The child's MCP endpoint, as requests over its link name it.
const ENDPOINT: &str = "http://child/mcp";

/// The answer to whoever comes over a network without TLS (AX-42).
const EXPOSED: &str = "a gate on the network is taken over TLS 1.3 only: others could read and change every call. Give this gate a \
     certificate (section [tls]) and dial it by https://, or say `insecure = true` in its section [registry]";

/// Whether `path` is this endpoint.
pub(crate) fn is_here(path: &str) -> bool {
    path == link::PATH
}

/// Takes a link, or says why not.
pub(crate) fn handle(gateway: &Arc<Inner>, mut request: Request<Incoming>, mut known: Known) -> Response<Payload> {
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
    let fields = fields(&parts);
    let entered = match enter(gateway, &mut known, &fields) {
        Ok(entered) => entered,
        Err(refused) => return super::endpoint::refuse(&refused).into_http(),
    };
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        let taken = match upgrade.await {
            Ok(io) => link::take(io, beat).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match taken {
            Ok((link, said)) => {
                let serving = Serving { gateway: Arc::clone(&gateway), link, identity: identity(&entered) };
                serving.run(said, Pass { gateway, known, fields, entered }.over()).await;
            }
            Err(error) => tracing::warn!(error, principal = %entered.principal.name, "a gate below dialled, and no link came of it"),
        }
    });
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS).into_http();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(link::PROTOCOL));
    response
}

/// Lets a gate in that dials, or not.
fn enter(gateway: &Inner, known: &mut Known, fields: &Fields) -> Result<Entered, Refused> {
    let config = gateway.config.load();
    let entered = known.enter(&config, &gateway.trust, fields)?;
    let insecure = config.registry.as_ref().is_some_and(|registry| registry.insecure);
    if !insecure && entered.party.as_ref().is_some_and(|party| !party.is_private()) {
        return Err(Refused { status: StatusCode::FORBIDDEN, why: EXPOSED.into(), challenge: None });
    }
    Ok(entered)
}

fn identity(entered: &Entered) -> Identity {
    let proven = entered.party.as_ref().map(|party| party.proven().clone()).unwrap_or_default();
    Identity { principal: Arc::clone(&entered.principal.name), proven }
}

/// What a link was taken for. It is asked for once, and has to hold as long as the link does.
struct Pass {
    gateway: Arc<Inner>,
    known: Known,
    fields: Fields,
    entered: Entered,
}

impl Pass {
    /// Ready, with the reason, when whoever dialled would not be let in any more, or as somebody else.
    async fn over(mut self) -> String {
        let mut applied = self.gateway.trust.reapplied();
        loop {
            match enter(&self.gateway, &mut self.known, &self.fields) {
                Ok(now) if now.principal == self.entered.principal => {}
                Ok(_) => return "it is somebody else by the configuration in force".into(),
                // Whether its token is good shows only when the keys are there.
                Err(refused) if refused.status == StatusCode::SERVICE_UNAVAILABLE => {}
                Err(refused) => return refused.why,
            }
            tokio::select! {
                changed = applied.changed() => if changed.is_err() { return "the gate ends".into() },
                () = self.entered.over(&self.gateway.trust) => return "its certificate or token has ended or was taken back".into(),
            }
        }
    }
}

/// One link, for as long as it is there.
struct Serving {
    gateway: Arc<Inner>,
    link: Arc<Link>,
    identity: Identity,
}

impl Serving {
    /// Until either side gives it up, or `over` is ready, with the reason.
    async fn run(self, mut said: mpsc::Receiver<Said>, over: impl Future<Output = String>) {
        let Ok(url) = ENDPOINT.parse() else { return };
        let (asks, mut asked) = mpsc::channel(AT_ONCE);
        let id = self.gateway.registry.open_link(LinkEnd { url, pool: Pool::over(Arc::clone(&self.link)), asks }).await;
        let mut answering = FuturesUnordered::new();
        let mut over = pin!(over);
        loop {
            tokio::select! {
                // A request is handed on before the next one is read, so that they keep their order.
                biased;
                Some(()) = answering.next() => {}
                () = self.gateway.stop.cancelled() => break,
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
                    Some(Said::Request { id: request, method, params }) => answering.push(self.answer(id, request, method, params)),
                    Some(Said::Notification { method, params }) => {
                        let whole = envelope::notification(&method, &params);
                        let notification = Notification { method, params: Object::from(params), whole };
                        self.gateway.registry.notified(id, notification).await;
                    }
                    None => break,
                },
            }
        }
        self.link.close();
        self.gateway.registry.link_lost(id).await;
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
        let answer = self.gateway.registry.request(link, &self.identity, &method, params).await;
        self.link.control().answer(&request, &answered(answer));
    }
}
