//! A server that registers at a gate: streamable HTTP in either era, with changing lists, a stream of notifications, and the requests of
//! MCP-AX. Knows nothing of the gate's use of them.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use super::client::{INITIALIZE, STATELESS};
use super::{Client, Era, World};

const UPDATED: &str = "notifications/resources/updated";

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// The server, until dropped.
pub(crate) struct Registrant {
    pub(crate) addr: SocketAddr,
    pub(crate) id: String,
    state: Arc<State>,
    serving: Option<AbortOnDropHandle<()>>,
}

struct State {
    era: Era,
    /// Lists by the member of the result; also `instructions`, and more `capabilities`.
    lists: Mutex<Value>,
    said: broadcast::Sender<String>,
    /// Subscribed resources (initialize era).
    subscribed: Mutex<BTreeSet<String>>,
    /// Claimed parent.
    parent: Mutex<Option<String>>,
    /// Methods and headers of all requests.
    seen: Mutex<Vec<(String, HeaderMap)>>,
    connections: Mutex<Vec<AbortOnDropHandle<()>>>,
}

/// Makes a tool that only reads.
pub(crate) fn reads(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})
}

/// Makes a tool that writes.
pub(crate) fn writes(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

impl Registrant {
    /// Listens on a free port of the loopback.
    pub(crate) async fn start(era: Era, tools: Vec<Value>) -> Self {
        Self::offering(era, json!({"tools": tools})).await
    }

    /// Starts a server with more than tools: lists by the member of the result, `instructions` beside them, and `asks_roots` to ask each
    /// connection.
    pub(crate) async fn offering(era: Era, lists: Value) -> Self {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let state = Arc::new(State {
            era,
            lists: Mutex::new(lists),
            said: broadcast::Sender::new(8192),
            subscribed: Mutex::default(),
            parent: Mutex::default(),
            seen: Mutex::default(),
            connections: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let serving = Some(AbortOnDropHandle::new(tokio::spawn(serve(listener, Arc::clone(&state)))));
        Self { addr, id: format!("00000000-0000-4000-8000-{number:012x}"), state, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.addr)
    }

    /// Makes the params of a registration; `more` adds or replaces members.
    pub(crate) fn params(&self, segment: &str, interval: u64, more: &Value) -> Value {
        let mut params = json!({
            "subserver_id": self.id,
            "segment": segment,
            "capabilities": {"tools": true, "notifications": true},
            "heartbeat_interval_ms": interval,
            "transport_class": "http",
            "version": "2026-05-01",
            "url": self.url(),
        });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    }

    /// Registers and gives the response.
    pub(crate) async fn register(&self, gate: &Client, segment: &str, interval: u64, more: Value) -> Value {
        gate.call("mcpax/register", self.params(segment, interval, &more)).await
    }

    /// Registers, waits until the tools are there, and gives the session.
    pub(crate) async fn join(&self, world: &World, gate: &Client, segment: &str, interval: u64, more: Value) -> String {
        let answer = self.register(gate, segment, interval, more).await;
        let session = answer["result"]["session_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        world.until(segment, |m| m.state == "ready").await;
        session
    }

    /// Sends heartbeats until dropped, often enough for `interval` milliseconds.
    pub(crate) fn beat(&self, world: &World, session: &str, interval: u64) -> AbortOnDropHandle<()> {
        let (client, session) = (Client::new(world, Era::Stateless), session.to_owned());
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                client.call("mcpax/heartbeat", json!({"session_id": session})).await;
                tokio::time::sleep(Duration::from_millis(interval / 2)).await;
            }
        }))
    }

    /// Lists other tools, and notifies of the change.
    pub(crate) fn list(&self, tools: Vec<Value>) {
        self.offer("tools", Value::Array(tools));
    }

    /// Lists other tools without a word.
    pub(crate) fn list_silently(&self, tools: Vec<Value>) {
        self.state.lists.lock().unwrap()["tools"] = Value::Array(tools);
    }

    /// Replaces the list of a member, and notifies clients if there is a notification for that.
    pub(crate) fn offer(&self, member: &str, value: Value) {
        self.state.lists.lock().unwrap()[member] = value;
        let list = if member == "resourceTemplates" { "resources" } else { member };
        self.say(&format!("notifications/{list}/list_changed"), &json!({}));
    }

    /// Notifies on every open stream.
    pub(crate) fn say(&self, method: &str, params: &Value) {
        // Nobody may listen.
        _ = self.state.said.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Tells the subscribers of a resource of a change.
    pub(crate) fn touch(&self, uri: &str) {
        if self.state.era == Era::Stateless || self.state.subscribed.lock().unwrap().contains(uri) {
            self.say(UPDATED, &json!({"uri": uri}));
        }
    }

    /// Counts open streams.
    pub(crate) fn streams(&self) -> usize {
        self.state.said.receiver_count()
    }

    /// Claims another parent from now on.
    pub(crate) fn belongs_to(&self, gate: &str) {
        *self.state.parent.lock().unwrap() = Some(gate.to_owned());
    }

    /// Gives all requests so far.
    pub(crate) fn seen(&self) -> Vec<(String, HeaderMap)> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Dies at once.
    pub(crate) fn die(&mut self) {
        self.serving = None;
        self.state.connections.lock().unwrap().clear();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let own = Arc::clone(&state);
        let service = service_fn(move |request| {
            let state = Arc::clone(&own);
            async move { Ok::<_, Infallible>(answer(&state, request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let connection = AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }));
        state.connections.lock().unwrap().push(connection);
    }
}

fn plain(status: StatusCode, body: String) -> Response<Body> {
    let one = futures_util::stream::iter([Ok(Frame::data(Bytes::from(body)))]);
    let response = Response::builder().status(status).header("content-type", "application/json").header("mcp-session-id", "registrant");
    response.body(StreamBody::new(one.boxed())).unwrap()
}

/// Streams `first` and then notifications; of changed resources only those in `wanted`, if given.
fn stream(state: &State, first: Vec<String>, wanted: Option<Vec<String>>) -> Response<Body> {
    let said = state.said.subscribe();
    let passes = move |text: &String| {
        let message: Value = serde_json::from_str(text).unwrap();
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        message["method"] != UPDATED || wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == uri))
    };
    let live = futures_util::stream::unfold(said, |mut said| async move { Some((said.recv().await.ok()?, said)) });
    let live = live.filter(move |text| std::future::ready(passes(text)));
    let all = futures_util::stream::iter(first).chain(live);
    let frames = all.map(|text| Ok(Frame::data(Bytes::from(format!("data: {text}\n\n")))));
    Response::builder().header("content-type", "text/event-stream").body(StreamBody::new(frames.boxed())).unwrap()
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if parts.method == "GET" {
        // As servers do that want to know the roots of each client at its start.
        let asks = state.lists.lock().unwrap()["asks_roots"] == true;
        let roots = json!({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"}).to_string();
        return if state.era == Era::Initialize {
            stream(state, if asks { vec![roots] } else { Vec::new() }, None)
        } else {
            plain(StatusCode::METHOD_NOT_ALLOWED, String::new())
        };
    }
    let body = body.collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    state.seen.lock().unwrap().push((method.clone(), parts.headers));
    if message.get("id").is_none() {
        return plain(StatusCode::ACCEPTED, String::new());
    }
    if method == "subscriptions/listen" && state.era == Era::Stateless {
        let mut told = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
        let wanted = message["params"]["notifications"].get("resourceSubscriptions").cloned();
        told.as_object_mut().unwrap().extend(wanted.clone().map(|uris| ("resourceSubscriptions".to_owned(), uris)));
        let wanted = wanted.map(|uris| serde_json::from_value(uris).unwrap()).unwrap_or_default();
        let params = json!({"notifications": told, "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}});
        return stream(
            state,
            vec![json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}).to_string()],
            Some(wanted),
        );
    }
    let told = |member: &str, value: Value| {
        let status = if member == "error" { StatusCode::NOT_FOUND } else { StatusCode::OK };
        plain(status, json!({"jsonrpc": "2.0", "id": message["id"], member: value}).to_string())
    };
    match result(state, &method, &message["params"]) {
        Some(result) => told("result", result),
        None => told("error", json!({"code": -32601, "message": "not served"})),
    }
}

fn result(state: &State, method: &str, params: &Value) -> Option<Value> {
    let info = json!({"name": "registrant", "version": "1"});
    let lists = state.lists.lock().unwrap().clone();
    let mut capabilities = json!({"tools": {"listChanged": true}});
    for (member, capability) in [("prompts", "prompts"), ("resources", "resources"), ("resourceTemplates", "resources")] {
        if lists.get(member).is_some() {
            capabilities[capability] = json!({"listChanged": true});
            capabilities["completions"] = json!({});
        }
    }
    if let Some(more) = lists.get("capabilities").and_then(Value::as_object) {
        capabilities.as_object_mut().unwrap().extend(more.clone());
    }
    let listed = |member: &str| {
        let all = lists.get(member).cloned().unwrap_or_else(|| json!([]));
        json!({member: all, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
    };
    Some(match (method, state.era) {
        ("initialize", Era::Initialize) => {
            state.subscribed.lock().unwrap().clear();
            json!({"protocolVersion": INITIALIZE, "capabilities": capabilities, "serverInfo": info, "instructions": lists["instructions"]})
        }
        ("server/discover", Era::Stateless) => json!({
            "supportedVersions": [STATELESS], "capabilities": capabilities, "instructions": lists["instructions"],
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private"
        }),
        ("tools/list", _) => listed("tools"),
        ("prompts/list", _) => listed("prompts"),
        ("resources/list", _) => listed("resources"),
        ("resources/templates/list", _) => listed("resourceTemplates"),
        ("prompts/get", _) => {
            let said = json!({"role": "user", "content": {"type": "text", "text": format!("got {}", params["name"].as_str()?)}});
            json!({"messages": [said], "resultType": "complete"})
        }
        ("resources/read", _) => {
            let content = json!({"uri": params["uri"], "text": format!("read {}", params["uri"].as_str()?)});
            json!({"contents": [content], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        }
        ("resources/subscribe", Era::Initialize) => {
            state.subscribed.lock().unwrap().insert(params["uri"].as_str()?.to_owned());
            json!({})
        }
        ("resources/unsubscribe", Era::Initialize) => {
            state.subscribed.lock().unwrap().remove(params["uri"].as_str()?);
            json!({})
        }
        ("completion/complete", _) => json!({"completion": {"values": ["all of it"]}, "resultType": "complete"}),
        ("tools/call", _) => {
            let said = json!({"type": "text", "text": format!("did {}", params["name"].as_str()?)});
            json!({"content": [said], "structuredContent": {"meta": params["_meta"]}, "resultType": "complete"})
        }
        ("tasks/cancel", _) => json!({"resultType": "complete"}),
        ("mcpax/parent", _) => json!({"parent_id": state.parent.lock().unwrap().clone()?, "resultType": "complete"}),
        _ => return None,
    })
}
