//! A server behind streamable HTTP, in either era. Each request is a POST; its answer is JSON or a stream of events.
//!
//! `standing.rs` has the standing stream for notifications, `connect.rs` finds the era. Reads no more of messages than the transport needs.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

pub mod doubt;
pub mod exchange;
pub mod heads;
pub mod pour;

use banyan_model::Era;
use bytes::{Bytes, BytesMut};
use foldhash::fast::RandomState;
use futures_util::future::BoxFuture;
use mcp_proto::client::own_token;
use mcp_proto::envelope::{self, Answer, Message};
use mcp_proto::era::{INITIALIZE, STATELESS};
use mcp_proto::header;
use mcp_proto::json::{Duplicates, Object};
use mcp_proto::sse::Decoder;
use tokio_util::sync::CancellationToken;

pub use crate::upstream::http::doubt::Doubts;
pub use crate::upstream::http::heads::{Body as Sent, Heads};

use crate::upstream::http::exchange::{Exchange, OpenRequest, UnderWay};
use crate::upstream::http::heads::Fields;

use crate::upstream::oauth::OAuthClient;
use crate::upstream::pool::{Pool, Reply};
use call::tree::asks;
use call::tree::back::Back;
use call::tree::port::{Inbox, OutgoingRequest, Upstream, UpstreamError, UpstreamTraits};

/// Media types of any answer.
const EITHER: &str = "application/json, text/event-stream";
const EVENTS: &str = "text/event-stream";

/// A server behind a URL.
#[derive(Debug)]
pub struct HttpWire {
    pub pool: Arc<Pool>,
    pub url: url::Url,
    pub heads: Heads,
    pub oauth: Option<Arc<OAuthClient>>,
    pub doubts: Arc<Doubts>,
    pub spoken: SpokenRevision,
    /// The session, in the initialize era.
    pub session: OnceLock<String>,
    pub inbox: Inbox,
    /// Longest answer, in bytes.
    pub limit: usize,
    pub next_id: AtomicU64,
    /// Calls under way, by id.
    pub calls: Mutex<HashMap<u64, Arc<Back>, RandomState>>,
    /// Fires when the wire is closed.
    pub closed: CancellationToken,
}

/// [`HttpWire`] as an upstream.
#[derive(Debug)]
pub struct HttpUpstream(pub Arc<HttpWire>);

impl Upstream for HttpUpstream {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.0.request(out, back))
    }

    fn notify<'a>(&'a self, method: &'a str, whole: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(self.0.notify(method, whole))
    }

    // Over HTTP a server is never seen to go, unless a link carries the connection.
    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::select! {
                () = self.0.closed.cancelled() => {}
                () = self.0.pool.gone() => {}
            }
        })
    }

    fn is_lost(&self) -> bool {
        self.0.closed.is_cancelled() || self.0.pool.is_gone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.close())
    }

    fn traits(&self) -> UpstreamTraits {
        UpstreamTraits { has_own_connections: true, is_linked: self.0.pool.is_link(), has_paths: false }
    }
}

/// Revision spoken, as an index into `REVISIONS`; 0 before it is known. A number, since every request reads it.
#[derive(Debug, Default)]
pub struct SpokenRevision(AtomicU8);

const REVISIONS: [Option<&str>; 2 + INITIALIZE.len()] = {
    let mut all = [None; 2 + INITIALIZE.len()];
    all[1] = Some(STATELESS);
    let mut place = 0;
    while place < INITIALIZE.len() {
        all[2 + place] = Some(INITIALIZE[place]);
        place += 1;
    }
    all
};

impl SpokenRevision {
    /// Sets the revision; `None` for the initialize era in a revision not yet known.
    pub fn set(&self, version: Option<&str>) {
        let place = REVISIONS.iter().position(|known| *known == version).unwrap_or_default();
        self.0.store(place as u8, Ordering::Relaxed);
    }

    /// Revision to name.
    fn version(&self) -> Option<&'static str> {
        *REVISIONS.get(usize::from(self.0.load(Ordering::Relaxed)))?
    }

    fn era(&self) -> Era {
        if self.version() == Some(STATELESS) { Era::Stateless } else { Era::Initialize }
    }
}

/// A response in one piece, or event by event.
pub enum Body {
    Events(Box<Reply>),
    Whole(u16, Bytes),
}

impl HttpWire {
    /// Sends a request and waits for its answer; earlier messages go to `back`.
    pub async fn request(self: &Arc<Self>, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut digits = itoa::Buffer::new();
        let raw_id = digits.format(id).as_bytes();
        // Callers that share a session must not share progress tokens.
        let is_initialize = self.era() == Era::Initialize;
        let (own, token) = if is_initialize { own_token(&out.params, id) } else { (Bytes::new(), None) };
        let params = if is_initialize { &own } else { out.params.text() };
        let before = envelope::request_head(raw_id, out.method);
        let message = Sent { before: &before, value: params, after: b"}" };
        let exchange = Exchange::new(self, id, token, back);
        let mut unanswered = OpenRequest { wire: is_initialize.then_some(self), id };
        let Some(back) = back else {
            let outcome = exchange.run(message, out).await;
            unanswered.wire = None;
            return outcome;
        };
        // A stateless server asks and notifies on the stream of the call itself.
        let _under_way = is_initialize.then(|| UnderWay::note(self, id, back));
        let answer = {
            let mut answer = pin!(exchange.run(message, out));
            let answer = poll_fn(|cx| match answer.as_mut().poll(cx) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => back.cancel.poll_cancelled(cx).map(|()| None),
            });
            answer.await
        };
        unanswered.wire = None;
        if let Some(outcome) = answer {
            self.doubt(out, &outcome);
            return outcome;
        }
        if is_initialize {
            Box::pin(self.cancelled(id)).await;
        }
        Err(UpstreamError::Cancelled)
    }

    /// Sends a whole notification (initialize era; the stateless era has none).
    pub async fn notify(self: &Arc<Self>, method: &str, whole: Bytes) {
        if self.era() == Era::Initialize
            && let Err(e) = self.post(Sent::whole(&whole), &OutgoingRequest::plain(method, Bytes::new())).await
        {
            tracing::debug!(method, error = %e, "a notification did not reach the server");
        }
    }

    /// Ends the session.
    pub async fn close(&self) {
        self.closed.cancel();
        if self.session.get().is_some() {
            let token = self.token().await.unwrap_or_default();
            let request = self.head("DELETE", EITHER, token.as_deref(), &OutgoingRequest::plain("", Bytes::new())).end_head(&Sent::none());
            // A server that is gone has no session to end.
            drop(tokio::time::timeout(Duration::from_secs(2), self.pool.send(request)).await);
        }
    }

    /// Era spoken.
    pub fn era(&self) -> Era {
        self.spoken.era()
    }

    /// The first response on an event stream, whole.
    pub async fn first_response(&self, mut body: Reply) -> Result<Bytes, UpstreamError> {
        let mut decoder = Decoder::new(self.limit);
        while let Some(Ok(data)) = body.piece().await {
            decoder.handle_bytes(&data);
            while let Some(event) = decoder.poll_event().map_err(|e| UpstreamError::TooLarge(e.limit))? {
                if matches!(Message::parse(&event.data, Duplicates::RefuseDeep), Ok(Message::Response(_))) {
                    return Ok(event.data);
                }
            }
        }
        Err(UpstreamError::Lost("its event stream ended before the answer was there".into()))
    }

    /// Posts a message and reads its answer.
    pub async fn post(&self, message: Sent<'_>, out: &OutgoingRequest<'_>) -> Result<Body, UpstreamError> {
        let reply = self.posted(message, out).await?;
        self.body(reply).await
    }

    /// Posts a message; the body of the answer is left unread.
    async fn posted(&self, message: Sent<'_>, out: &OutgoingRequest<'_>) -> Result<Reply, UpstreamError> {
        for round in 0..3 {
            let token = self.token().await?;
            let request = self.head("POST", EITHER, token.as_deref(), out).end_head(&message);
            let reply = self.pool.send(request).await?;
            let status = reply.head.status();
            if let (401 | 403, Some(oauth), true) = (status, &self.oauth, round < 2) {
                let challenge = reply.head.fields().str("www-authenticate");
                if status == 401 || challenge.is_some() {
                    let sent = token.as_ref().map(|t| format!("Bearer {t}"));
                    let known = Box::pin(oauth.challenged(status, challenge, sent.as_deref())).await;
                    known.map_err(|e| UpstreamError::SignIn(e.to_string()))?;
                    continue;
                }
            }
            return Ok(reply);
        }
        Err(UpstreamError::SignIn("the server refuses the token it gave".into()))
    }

    /// Opens an event stream by GET.
    pub async fn get(&self, last_id: Option<&str>) -> Result<Reply, UpstreamError> {
        let token = self.token().await?;
        let mut fields = self.head("GET", EVENTS, token.as_deref(), &OutgoingRequest::plain("", Bytes::new()));
        if let Some(id) = last_id {
            fields.put("last-event-id", id);
        }
        let reply = self.pool.send(fields.end_head(&Sent::none())).await?;
        let status = reply.head.status();
        if status != 200 || !is_events(&reply) {
            return Err(UpstreamError::Refused { status, body: excerpt(&self.whole(reply).await?) });
        }
        Ok(reply)
    }

    async fn body(&self, reply: Reply) -> Result<Body, UpstreamError> {
        let status = reply.head.status();
        // Only an answer opens a session: some servers put an id on refusals too, for example of a probe.
        if (200..300).contains(&status)
            && let Some(session) = reply.head.fields().str("mcp-session-id")
        {
            self.session.get_or_init(|| session.to_owned());
        }
        if status == 200 && is_events(&reply) {
            return Ok(Body::Events(Box::new(reply)));
        }
        if status == 404 && self.session.get().is_some() {
            return Err(UpstreamError::SessionLost);
        }
        Ok(Body::Whole(status, self.whole(reply).await?))
    }

    async fn whole(&self, mut reply: Reply) -> Result<Bytes, UpstreamError> {
        let broke = |e| UpstreamError::Lost(format!("its answer broke off: {e}"));
        if let Some(size) = reply.size() {
            let size = usize::try_from(size).ok().filter(|size| *size <= self.limit).ok_or(UpstreamError::TooLarge(self.limit))?;
            return reply.whole(size).await.map_err(broke);
        }
        let mut all = BytesMut::new();
        while let Some(piece) = reply.piece().await {
            let piece = piece.map_err(broke)?;
            if all.len() + piece.len() > self.limit {
                return Err(UpstreamError::TooLarge(self.limit));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    async fn token(&self) -> Result<Option<String>, UpstreamError> {
        let Some(oauth) = &self.oauth else { return Ok(None) };
        let token = Box::pin(oauth.token()).await.map_err(|e| UpstreamError::SignIn(e.to_string()))?;
        Ok(token.map(|t| t.expose().to_owned()))
    }

    fn head(&self, method: &str, accept: &str, token: Option<&str>, out: &OutgoingRequest<'_>) -> Fields {
        let mut fields = self.heads.begin(method, accept, token);
        if let Some(version) = self.spoken.version() {
            fields.put("mcp-protocol-version", version);
        }
        if let Some(session) = self.session.get() {
            fields.put("mcp-session-id", session);
        }
        if let Some(trace) = &out.trace {
            fields.put("traceparent", trace.traceparent());
            if let Some(state) = trace.tracestate() {
                fields.put("tracestate", state);
            }
        }
        // These repeat parts of a stateless request's body.
        if self.era() == Era::Stateless && !out.method.is_empty() {
            fields.put("mcp-method", out.method);
            if let Some(name) = out.name {
                fields.put("mcp-name", &header::encode(name));
            }
            for (name, value) in &out.param_headers {
                fields.put(name, value);
            }
        }
        fields
    }

    /// Cancels a request at the server (initialize era; in the stateless era closing the stream does).
    async fn cancelled(self: &Arc<Self>, id: u64) {
        let params = format!("{{\"requestId\":{id},\"reason\":\"the caller cancelled it\"}}");
        self.notify("notifications/cancelled", envelope::notification("notifications/cancelled", params.as_bytes())).await;
    }

    fn near(&self) -> Vec<Arc<Back>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).values().filter(|b| !b.stands()).cloned().collect()
    }

    /// Answers a question of the server, on the stream of a call or outside of any.
    pub fn answer_question(self: &Arc<Self>, request: envelope::Request, back: Option<&Arc<Back>>) {
        let wire = Arc::clone(self);
        let asked = asks::ServerQuestion {
            method: request.method.into_owned(),
            params: request.params.text().clone(),
            near: back.map_or_else(|| self.near(), |b| vec![Arc::clone(b)]),
            inbox: self.inbox.clone(),
        };
        let direct = back.cloned();
        tokio::spawn(async move {
            let answer = match (asked.method.as_str(), direct) {
                ("ping", _) => Answer::Result(Object::empty()),
                (method, Some(back)) => back.ask(method, &asked.params).await,
                (_, None) => asked.answer().await,
            };
            let message = envelope::response(&request.id, &answer);
            if let Err(e) = wire.post(Sent::whole(&message), &OutgoingRequest::plain("", Bytes::new())).await {
                tracing::debug!(error = %e, "an answer to a server's question did not reach it");
            }
        });
    }
}

fn is_events(reply: &Reply) -> bool {
    let kind = reply.head.fields().get("content-type");
    kind.and_then(|k| k.get(..EVENTS.len())).is_some_and(|k| k.eq_ignore_ascii_case(EVENTS.as_bytes()))
}

/// Beginning of a body, for error messages.
pub fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(600)]);
    let clean: String = text.chars().filter(|c| !c.is_control() || *c == ' ').take(300).collect();
    if clean.is_empty() { "(nothing)".into() } else { clean }
}
