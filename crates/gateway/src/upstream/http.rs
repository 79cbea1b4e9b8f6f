//! A server behind streamable HTTP, in either era. One request is one POST; its answer is JSON or a stream of events.
//!
//! The stream that stands open for notifications is in `standing.rs`; finding the era is in `connect.rs`.
//! Messages are not looked into beyond what the transport needs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use banyan_model::Era;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcp_proto::client::{own_token, restore_token};
use mcp_proto::envelope::{self, Answer, EnvelopeError, Message, Notification};
use mcp_proto::header;
use mcp_proto::json::Duplicates;
use mcp_proto::sse::{Decoder, Event};
use tokio_util::sync::CancellationToken;

use super::asks;
use super::pool::{Pool, Reply};
use super::{Inbox, Outgoing, UpstreamError};
use crate::call::back::Back;
use crate::upstream::oauth::OAuthClient;

/// How often a broken stream of the initialize era is taken up again.
const RESUMES: usize = 8;

/// One server behind one URL.
#[derive(Debug)]
pub(crate) struct HttpWire {
    pub(crate) pool: Arc<Pool>,
    pub(crate) url: url::Url,
    /// Configured headers, secrets resolved.
    pub(crate) headers: HeaderMap,
    pub(crate) oauth: Option<Arc<OAuthClient>>,
    /// Whether the stateless era is spoken.
    pub(crate) stateless: AtomicBool,
    /// The revision to name; none before it is known.
    pub(crate) version: ArcSwapOption<String>,
    /// The session, in the initialize era.
    pub(crate) session: ArcSwapOption<String>,
    pub(crate) inbox: Inbox,
    /// Longest answer, in bytes.
    pub(crate) limit: usize,
    pub(crate) next_id: AtomicU64,
    /// The calls under way, by their ids.
    pub(crate) calls: Mutex<HashMap<u64, Arc<Back>>>,
    /// Fires when the wire is closed.
    pub(crate) closed: CancellationToken,
}

/// A response in one piece, or one that comes bit by bit.
pub(crate) enum Body {
    Events(Response<Reply>),
    Whole(StatusCode, Bytes),
}

impl HttpWire {
    /// Sends one request and waits for its answer; what comes before goes to `back`.
    pub(crate) async fn request(self: &Arc<Self>, out: Outgoing, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut digits = itoa::Buffer::new();
        let raw_id = digits.format(id).as_bytes();
        // Callers that share a session must not share progress tokens.
        let (params, token) = if self.era() == Era::Initialize { own_token(&out.params, id) } else { (out.params.clone(), None) };
        let message = envelope::request(raw_id, &out.method, &params);
        let exchange = Exchange { wire: self, id, token, back, resumes: 0, last_id: None, retry: Duration::from_secs(1) };
        let cancel = back.map(|b| b.cancel.clone()).unwrap_or_default();
        let _under_way = back.map(|b| UnderWay::note(self, id, b));
        tokio::select! {
            answer = exchange.run(message, &out) => answer,
            () = cancel.cancelled() => {
                if self.era() == Era::Initialize {
                    self.cancelled(id).await;
                }
                Err(UpstreamError::Cancelled)
            }
        }
    }

    /// Sends a whole notification (initialize era; the stateless one has none).
    pub(crate) async fn notify(self: &Arc<Self>, method: &str, whole: Bytes) {
        if self.era() == Era::Initialize
            && let Err(e) = self.post(whole, &Outgoing::plain(method, Bytes::new())).await
        {
            tracing::debug!(method, error = %e, "a notification did not reach the server");
        }
    }

    /// Ends the session.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        if self.session.load().is_some() {
            let request = self.build(Method::DELETE, Bytes::new(), &Outgoing::plain("", Bytes::new())).await;
            if let Ok(request) = request {
                // A server that is gone has no session to end.
                drop(tokio::time::timeout(Duration::from_secs(2), self.pool.send(request)).await);
            }
        }
    }

    /// The era that is spoken.
    pub(crate) fn era(&self) -> Era {
        if self.stateless.load(Ordering::Relaxed) { Era::Stateless } else { Era::Initialize }
    }

    /// The first response on an event stream, whole.
    pub(crate) async fn first_response(&self, response: Response<Reply>) -> Result<Bytes, UpstreamError> {
        let mut decoder = Decoder::new(self.limit);
        let mut body = response.into_body();
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            decoder.handle_bytes(&data);
            while let Some(event) = decoder.poll_event().map_err(|e| UpstreamError::TooLarge(e.limit))? {
                if matches!(Message::parse(&event.data, Duplicates::RefuseDeep), Ok(Message::Response(_))) {
                    return Ok(event.data);
                }
            }
        }
        Err(UpstreamError::Lost("its event stream ended before the answer was there".into()))
    }

    /// Posts a whole message.
    pub(crate) async fn post(&self, message: Bytes, out: &Outgoing) -> Result<Body, UpstreamError> {
        for round in 0..3 {
            let request = self.build(Method::POST, message.clone(), out).await?;
            let sent = request.headers().get(AUTHORIZATION).cloned();
            let response = self.pool.send(request).await?;
            let status = response.status();
            if let (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(oauth), true) = (status, &self.oauth, round < 2) {
                let challenge = response.headers().get("www-authenticate").and_then(|v| v.to_str().ok());
                if status == StatusCode::UNAUTHORIZED || challenge.is_some() {
                    let sent = sent.as_ref().and_then(|v| v.to_str().ok());
                    oauth.challenged(status.as_u16(), challenge, sent).await.map_err(|e| UpstreamError::SignIn(e.to_string()))?;
                    continue;
                }
            }
            return self.body(response).await;
        }
        Err(UpstreamError::SignIn("the server refuses the token it gave".into()))
    }

    /// Opens an event stream by GET.
    pub(crate) async fn get(&self, last_id: Option<&str>) -> Result<Response<Reply>, UpstreamError> {
        let mut request = self.build(Method::GET, Bytes::new(), &Outgoing::plain("", Bytes::new())).await?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(value) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request.headers_mut().insert("last-event-id", value);
        }
        let response = self.pool.send(request).await?;
        if response.status() != StatusCode::OK || !is_events(&response) {
            let status = response.status().as_u16();
            return Err(UpstreamError::Refused { status, body: excerpt(&self.whole(response).await?) });
        }
        Ok(response)
    }

    async fn body(&self, response: Response<Reply>) -> Result<Body, UpstreamError> {
        // Only an answer opens a session: some servers put an id on refusals as well, of a probe among others.
        if response.status().is_success()
            && let Some(session) = response.headers().get("mcp-session-id").and_then(|v| v.to_str().ok())
            && self.session.load().is_none()
        {
            self.session.store(Some(Arc::new(session.to_owned())));
        }
        if response.status() == StatusCode::OK && is_events(&response) {
            return Ok(Body::Events(response));
        }
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.session.load().is_some() {
            return Err(UpstreamError::SessionLost);
        }
        Ok(Body::Whole(status, self.whole(response).await?))
    }

    async fn whole(&self, response: Response<Reply>) -> Result<Bytes, UpstreamError> {
        let mut body = response.into_body();
        let mut first: Option<Bytes> = None;
        let mut rest = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| UpstreamError::Lost(format!("its answer broke off: {e}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if first.as_ref().map_or(0, Bytes::len) + rest.len() + data.len() > self.limit {
                return Err(UpstreamError::TooLarge(self.limit));
            }
            match &first {
                None => first = Some(data),
                Some(head) => {
                    if rest.is_empty() {
                        rest.extend_from_slice(head);
                    }
                    rest.extend_from_slice(&data);
                }
            }
        }
        Ok(if rest.is_empty() { first.unwrap_or_default() } else { rest.freeze() })
    }

    async fn build(&self, method: Method, body: Bytes, out: &Outgoing) -> Result<Request<Full<Bytes>>, UpstreamError> {
        let target = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let mut request =
            Request::builder().method(method).uri(target).body(Full::new(body)).map_err(|e| UpstreamError::Unreachable(e.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.extend(self.headers.iter().map(|(n, v)| (n.clone(), v.clone())));
        let authority = match self.url.port() {
            Some(port) => format!("{}:{port}", self.url.host_str().unwrap_or_default()),
            None => self.url.host_str().unwrap_or_default().to_owned(),
        };
        put(headers, HOST, &authority);
        if let Some(version) = self.version.load().as_deref() {
            put(headers, HeaderName::from_static("mcp-protocol-version"), version);
        }
        if let Some(session) = self.session.load().as_deref() {
            put(headers, HeaderName::from_static("mcp-session-id"), session);
        }
        self.mirror(headers, out);
        if let Some(oauth) = &self.oauth
            && let Some(token) = oauth.token().await.map_err(|e| UpstreamError::SignIn(e.to_string()))?
        {
            put(headers, AUTHORIZATION, &format!("Bearer {}", token.expose()));
        }
        Ok(request)
    }

    /// The headers that repeat parts of a stateless request's body.
    fn mirror(&self, headers: &mut HeaderMap, out: &Outgoing) {
        if let Some(trace) = &out.trace {
            put(headers, HeaderName::from_static("traceparent"), trace.traceparent());
            if let Some(state) = trace.tracestate() {
                put(headers, HeaderName::from_static("tracestate"), state);
            }
        }
        if self.era() == Era::Initialize || out.method.is_empty() {
            return;
        }
        put(headers, HeaderName::from_static("mcp-method"), &out.method);
        if let Some(name) = &out.name {
            put(headers, HeaderName::from_static("mcp-name"), &header::encode(name));
        }
        for (name, value) in &out.param_headers {
            if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                put(headers, name, value);
            }
        }
    }

    async fn cancelled(self: &Arc<Self>, id: u64) {
        let params = format!("{{\"requestId\":{id},\"reason\":\"the caller cancelled it\"}}");
        self.notify("notifications/cancelled", envelope::notification("notifications/cancelled", params.as_bytes())).await;
    }

    fn near(&self) -> Vec<Arc<Back>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).values().filter(|b| !b.stands()).cloned().collect()
    }

    /// Answers what the server asked, on the stream of a call or outside of any.
    pub(crate) fn answer_question(self: &Arc<Self>, request: envelope::Request, back: Option<&Arc<Back>>) {
        let wire = Arc::clone(self);
        let asked = asks::Asked {
            method: request.method,
            params: request.params,
            near: back.map_or_else(|| self.near(), |b| vec![Arc::clone(b)]),
            inbox: self.inbox.clone(),
        };
        let direct = back.cloned();
        tokio::spawn(async move {
            let answer = match (asked.method.as_str(), direct) {
                ("ping", _) => Answer::Result(Bytes::from_static(b"{}")),
                (method, Some(back)) => back.ask(method, &asked.params).await,
                (_, None) => asked.answer().await,
            };
            let message = envelope::response(&request.id, &answer);
            if let Err(e) = wire.post(message, &Outgoing::plain("", Bytes::new())).await {
                tracing::debug!(error = %e, "an answer to a server's question did not reach it");
            }
        });
    }
}

/// Notes a call for as long as it is under way.
struct UnderWay<'a> {
    wire: &'a HttpWire,
    id: u64,
}

impl<'a> UnderWay<'a> {
    fn note(wire: &'a HttpWire, id: u64, back: &Arc<Back>) -> Self {
        wire.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(back));
        Self { wire, id }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.wire.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// One request and what came of it so far.
struct Exchange<'a> {
    wire: &'a Arc<HttpWire>,
    id: u64,
    token: Option<Bytes>,
    back: Option<&'a Arc<Back>>,
    resumes: usize,
    last_id: Option<String>,
    retry: Duration,
}

impl Exchange<'_> {
    async fn run(mut self, message: Bytes, out: &Outgoing) -> Result<Answer, UpstreamError> {
        let mut response = match self.wire.post(message, out).await? {
            Body::Whole(status, body) => return self.whole(status, &body),
            Body::Events(response) => response,
        };
        loop {
            if let Some(answer) = self.read(response.into_body()).await? {
                return Ok(answer);
            }
            response = self.resume().await?;
        }
    }

    fn whole(&self, status: StatusCode, body: &Bytes) -> Result<Answer, UpstreamError> {
        match Message::parse(body, Duplicates::RefuseDeep) {
            Ok(Message::Response(r)) if status.is_success() || matches!(r.answer, Answer::Error(_)) => Ok(r.answer),
            _ if !status.is_success() => Err(UpstreamError::Refused { status: status.as_u16(), body: excerpt(body) }),
            Ok(_) => Err(UpstreamError::Malformed("it answered with something that is no response".into())),
            Err(e) => Err(UpstreamError::Malformed(format!("its answer can't be read: {e}: {}", excerpt(body)))),
        }
    }

    /// Reads events until the answer is there; `None` when the stream ends before.
    async fn read(&mut self, mut body: Reply) -> Result<Option<Answer>, UpstreamError> {
        let mut decoder = Decoder::new(self.wire.limit);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Ok(None) };
            let Ok(data) = frame.into_data() else { continue };
            decoder.handle_bytes(&data);
            while let Some(event) = decoder.poll_event().map_err(|e| UpstreamError::TooLarge(e.limit))? {
                if let Some(answer) = self.event(event)? {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }

    fn event(&mut self, event: Event) -> Result<Option<Answer>, UpstreamError> {
        if event.id.is_some() {
            self.last_id = event.id;
        }
        if let Some(ms) = event.retry {
            self.retry = Duration::from_millis(ms.min(60_000));
        }
        if event.data.trim_ascii().is_empty() {
            return Ok(None);
        }
        match Message::parse(&event.data, Duplicates::RefuseDeep) {
            Ok(Message::Response(r)) => return Ok((r.id == self.id.to_string().as_bytes()).then_some(r.answer)),
            Ok(Message::Request(r)) => self.wire.answer_question(r, self.back),
            Ok(Message::Notification(n)) => self.notified(&n),
            Err(EnvelopeError::Json(e)) => return Err(UpstreamError::Malformed(format!("an event of its answer can't be read: {e}"))),
            Err(e) => tracing::debug!(error = %e, "an event that is no message"),
        }
        Ok(None)
    }

    fn notified(&self, notification: &Notification) {
        let ours = matches!(notification.method.as_str(), "notifications/progress" | "notifications/message");
        match self.back {
            Some(back) if ours => match &self.token {
                Some(token) if notification.method.ends_with("progress") => asks::pass_on(back, &restore_token(notification, token)),
                _ => asks::pass_on(back, notification),
            },
            Some(back) => self.wire.inbox.notified(notification, std::slice::from_ref(back)),
            None => self.wire.inbox.notified(notification, &[]),
        }
    }

    /// Takes a broken stream up again where it broke (initialize era, revision 2025-11-25 "Resumability").
    async fn resume(&mut self) -> Result<Response<Reply>, UpstreamError> {
        let lost = || UpstreamError::Lost("its event stream ended before the answer was there".into());
        let last_id = self.last_id.clone().filter(|_| self.wire.era() == Era::Initialize).ok_or_else(lost)?;
        let mut why = lost();
        while self.resumes < RESUMES {
            self.resumes += 1;
            tokio::time::sleep(self.retry).await;
            match self.wire.get(Some(&last_id)).await {
                Ok(response) => return Ok(response),
                Err(e) => why = e,
            }
        }
        Err(why)
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn is_events(response: &Response<Reply>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    kind.is_some_and(|k| k.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The beginning of a body, fit to be shown.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(600)]);
    let clean: String = text.chars().filter(|c| !c.is_control() || *c == ' ').take(300).collect();
    if clean.is_empty() { "(nothing)".into() } else { clean }
}
