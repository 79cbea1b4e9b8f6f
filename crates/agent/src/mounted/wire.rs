//! Requests to one agent over HTTP: the card, operations, and streams of events. Decides nothing about the answers.
//!
//! Redirects are not followed and an interface lies at the origin of the mount, so that no card leads credentials or calls elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_proto::card::{AgentCard, Binding, MOST_CARD, VERSION, WELL_KNOWN};
use agent_proto::fault::AgentFault;
use agent_proto::operation::{AgentRequest, AnswerError};
use bytes::Bytes;
use call::tree::port::UpstreamError;
use config::resolved::Remote;
use config::secret::Sources;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use mcp_proto::hidden;
use mcp_proto::sse::Decoder;
use reqwest::{Client, RequestBuilder, Response, redirect};
use runtime::tls::Connector;
use rustls::ClientConfig;
use url::Url;

use crate::evidence::arrived::FIELD;
use crate::evidence::witness::CallWitness;

/// Longest wait for a connection, with its TLS handshake.
const CONNECTING: Duration = Duration::from_secs(10);
/// Longest silence of an agent within an answer. A stream of events may be silent for longer.
const SILENCE: Duration = Duration::from_secs(60);
/// Most bytes read of a refusal.
const EXCERPT: usize = 16 << 10;
/// Most characters of an agent's own words within an error.
const LONGEST_WORDS: usize = 500;
/// Shortest value of a header that is looked for in an agent's words.
const SHORTEST_SECRET: usize = 6;
/// Header with the version of A2A.
const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");

/// The way to one agent.
#[derive(Debug)]
pub struct AgentWire {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// Longest answer, in bytes.
    pub limit: usize,
    ids: AtomicU64,
}

/// The place where an agent takes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    binding: Binding,
    tenant: Option<String>,
}

/// An answer from its beginning.
pub enum AgentAnswer {
    Whole(Bytes),
    /// The agent refused the request: its words.
    Fault(String),
    Events(Box<Events>),
}

/// A stream of events.
pub struct Events {
    response: Response,
    decoder: Decoder,
    binding: Binding,
    id: u64,
}

/// An event of a stream.
pub enum Event {
    /// A `StreamResponse`.
    Reply(Bytes),
    /// The agent refused the request after all.
    Fault(AgentFault),
}

impl AgentWire {
    /// Makes the way to the agent of a mount. Reads secrets, and connects to nothing.
    pub fn new(remote: &Remote, sources: &dyn Sources, connector: &Connector, limit: usize) -> Result<Self, UpstreamError> {
        let unreachable = UpstreamError::Unreachable;
        let tls = match &remote.tls {
            Some(files) => trust::Client::new(files.clone()).config(connector).map_err(|error| unreachable(error.to_string()))?,
            None => connector.tls().map_err(|error| unreachable(error.to_string()))?,
        };
        let builder = Client::builder().redirect(redirect::Policy::none()).no_proxy().connect_timeout(CONNECTING);
        let client = builder.tls_backend_preconfigured(ClientConfig::clone(&tls)).build().map_err(|error| unreachable(cause(error)))?;
        Ok(Self {
            client,
            url: remote.url.clone(),
            headers: remote.header_map(sources).map_err(unreachable)?,
            limit,
            ids: AtomicU64::new(1),
        })
    }

    /// Fetches the card.
    pub async fn card(&self) -> Result<AgentCard, UpstreamError> {
        let request = self.client.get(card_url(&self.url)).timeout(SILENCE).header(ACCEPT, "application/json");
        let (status, body) = self.whole(request, MOST_CARD).await?;
        if status != StatusCode::OK {
            return Err(self.refused(status, &body, "its agent card"));
        }
        AgentCard::read(&body).map_err(|error| UpstreamError::Unreachable(self.plain(&error.to_string())))
    }

    /// Chooses where to send requests, as the card says and the mount allows.
    pub fn endpoint(&self, card: &AgentCard) -> Result<Endpoint, UpstreamError> {
        let (interface, binding) = card.choose().map_err(|error| UpstreamError::Unreachable(self.plain(&error.to_string())))?;
        let url = Url::parse(&interface.url).ok().filter(is_plain_url);
        let url = url.ok_or_else(|| UpstreamError::Unreachable("its agent card names an address that calls can't be sent to".into()))?;
        if url.origin() != self.url.origin() {
            let (named, ours) = (url.origin().ascii_serialization(), self.url.origin().ascii_serialization());
            return Err(UpstreamError::Unreachable(self.plain(&format!(
                "its agent card sends calls to {named}, and the `url` of this mount is at {ours}. Write that origin into `url` if it is the \
                 agent you mean"
            ))));
        }
        Ok(Endpoint { url: url.as_str().trim_end_matches('/').to_owned(), binding, tenant: interface.tenant.clone() })
    }

    /// Cleans an agent's words for an error: short, on one line, and without the credentials of the mount.
    pub fn plain(&self, words: &str) -> String {
        let mut words: String = words.chars().take(4 * LONGEST_WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        for value in self.headers.values().filter_map(|value| value.to_str().ok()) {
            let secrets = [Some(value), value.split_once(' ').map(|(_, secret)| secret)];
            for secret in secrets.into_iter().flatten().filter(|secret| secret.len() >= SHORTEST_SECRET) {
                words = words.replace(secret, "[hidden]");
            }
        }
        words.chars().filter(|c| *c == ' ' || !hidden::is_unseen(*c)).take(LONGEST_WORDS).collect()
    }

    /// Sends an operation, and waits for the beginning of its answer.
    pub async fn send(
        self: Arc<Self>,
        endpoint: Endpoint,
        operation: AgentRequest,
        trace: Option<String>,
        witness: Option<Arc<CallWitness>>,
    ) -> Result<AgentAnswer, UpstreamError> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let sent = operation.write(endpoint.binding, endpoint.tenant.as_deref(), id);
        let url = format!("{}{}", endpoint.url, sent.path);
        let request = if sent.method == "GET" { self.client.get(url) } else { self.client.post(url) };
        let accept = if operation.streams() { "text/event-stream, application/json" } else { "application/json, application/a2a+json" };
        let mut request = request.header(ACCEPT, accept);
        if let Some(trace) = trace {
            request = request.header("traceparent", trace);
        }
        let is_message = matches!(operation, AgentRequest::Send { .. });
        let message = sent.body.as_ref().filter(|_| is_message);
        let hop = witness.as_ref().zip(message).and_then(|(witness, body)| witness.hop(body.as_bytes(), &self.url));
        if let Some(hop) = &hop {
            request = request.header(FIELD, hop.line.clone());
        }
        if let Some(body) = sent.body {
            request = request.header(CONTENT_TYPE, sent.content_type).body(body);
        }
        let begun = self.begin(request).await;
        if let Some((witness, hop)) = witness.as_ref().zip(hop) {
            witness.settle(&hop, !matches!(begun, Err(UpstreamError::Unreachable(_))));
        }
        let response = begun?;
        if let Some(witness) = witness {
            witness.hear(response.headers());
        }
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if status.is_success() && kind.to_ascii_lowercase().starts_with("text/event-stream") {
            let decoder = Decoder::new(self.limit);
            return Ok(AgentAnswer::Events(Box::new(Events { response, decoder, binding: endpoint.binding, id })));
        }
        let body = read(response, self.limit).await?;
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.refused(status, &body, "the call"));
        }
        let body = match AgentRequest::read(endpoint.binding, status.as_u16(), id, &body) {
            Ok(answer) => body.slice_ref(answer),
            Err(AnswerError::Fault(fault)) => return Ok(AgentAnswer::Fault(self.plain(&fault.to_string()))),
            Err(_) if !status.is_success() => return Err(self.refused(status, &body, "the call")),
            Err(error @ (AnswerError::NoResponse(_) | AnswerError::OtherId)) => return Err(UpstreamError::Malformed(error.to_string())),
        };
        Ok(AgentAnswer::Whole(body))
    }

    async fn whole(&self, request: RequestBuilder, limit: usize) -> Result<(StatusCode, Bytes), UpstreamError> {
        let response = self.begin(request).await?;
        let status = response.status();
        Ok((status, read(response, limit).await?))
    }

    async fn begin(&self, request: RequestBuilder) -> Result<Response, UpstreamError> {
        let request = request.headers(self.headers.clone()).header(A2A_VERSION, VERSION);
        match request.send().await {
            Ok(response) => Ok(response),
            Err(error) if error.is_connect() => Err(UpstreamError::Unreachable(cause(error))),
            Err(error) => Err(UpstreamError::Lost(cause(error))),
        }
    }

    fn refused(&self, status: StatusCode, body: &[u8], what: &str) -> UpstreamError {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let has = self.headers.keys().next().is_some();
            let advice = if has {
                "the credential in `headers` of this mount is not the right one"
            } else {
                "give this mount a credential: headers = { Authorization = \"Bearer ${env:NAME}\" }"
            };
            return UpstreamError::Refused { status: status.as_u16(), body: format!("{what} was refused; {advice}") };
        }
        let excerpt = self.plain(&String::from_utf8_lossy(body));
        UpstreamError::Refused { status: status.as_u16(), body: format!("{what}: {excerpt}") }
    }
}

impl Events {
    /// Gives the next event, as a `StreamResponse`; `None` at the end of the stream. May be dropped and asked again.
    pub async fn next(&mut self) -> Result<Option<Event>, UpstreamError> {
        loop {
            match self.decoder.poll_event() {
                Ok(Some(event)) if event.data.is_empty() => {}
                Ok(Some(event)) => {
                    let found = AgentRequest::read(self.binding, 200, self.id, &event.data);
                    return match found {
                        Ok(answer) => Ok(Some(Event::Reply(event.data.slice_ref(answer)))),
                        Err(AnswerError::Fault(fault)) => Ok(Some(Event::Fault(fault))),
                        Err(error @ (AnswerError::NoResponse(_) | AnswerError::OtherId)) => {
                            Err(UpstreamError::Malformed(error.to_string()))
                        }
                    };
                }
                Ok(None) => match self.response.chunk().await {
                    Ok(Some(piece)) => self.decoder.handle_bytes(&piece),
                    Ok(None) => return Ok(None),
                    Err(error) => return Err(UpstreamError::Lost(cause(error))),
                },
                Err(too_long) => return Err(UpstreamError::TooLarge(too_long.limit)),
            }
        }
    }
}

/// Checks for an address with an origin and a path alone.
fn is_plain_url(url: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.password().is_some();
    matches!(url.scheme(), "http" | "https") && !has_user && url.query().is_none() && url.fragment().is_none()
}

/// Address of the card: that of the mount if it names a file, else the well-known one below it.
fn card_url(url: &Url) -> Url {
    let mut card = url.clone();
    if !url.path().ends_with(".json") {
        card.set_path(&format!("{}{WELL_KNOWN}", url.path().trim_end_matches('/')));
    }
    card
}

async fn read(mut response: Response, limit: usize) -> Result<Bytes, UpstreamError> {
    let limit = if response.status().is_success() { limit } else { limit.min(EXCERPT) };
    let mut body = Vec::new();
    loop {
        match tokio::time::timeout(SILENCE, response.chunk()).await {
            Ok(Ok(Some(piece))) if body.len() + piece.len() <= limit => body.extend_from_slice(&piece),
            Ok(Ok(Some(_))) if !response.status().is_success() => return Ok(body.into()),
            Ok(Ok(Some(_))) => return Err(UpstreamError::TooLarge(limit)),
            Ok(Ok(None)) => return Ok(body.into()),
            Ok(Err(error)) => return Err(UpstreamError::Lost(cause(error))),
            Err(_) => return Err(UpstreamError::Silent(SILENCE)),
        }
    }
}

/// The innermost reason of an error, which says what is wrong. Leaves out the address, which may hold a secret.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_an_origin_and_a_path() {
        let is_plain = |url: &str| is_plain_url(&Url::parse(url).unwrap());
        assert!(is_plain("https://a.example/rpc"));
        for url in
            ["https://eve@a.example/", "https://:pw@a.example/", "https://a.example/?x", "https://a.example/#x", "blob:https://a.example/x"]
        {
            assert!(!is_plain(url), "{url}");
        }
    }

    #[test]
    fn the_card_lies_below_the_address_of_the_mount() {
        let at = |url: &str| card_url(&Url::parse(url).unwrap()).to_string();
        assert_eq!(at("https://a.example"), "https://a.example/.well-known/agent-card.json");
        assert_eq!(at("https://a.example/agents/x/"), "https://a.example/agents/x/.well-known/agent-card.json");
        assert_eq!(at("https://a.example/x/card.json?v=1"), "https://a.example/x/card.json?v=1");
    }
}
