//! A client of either era over HTTP. Sends any request, legal or not, and never repairs an answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use rustls::ClientConfig;
use serde_json::{Value, json};

use super::World;
use super::wire::{self, Event, Reply};

pub(crate) const INITIALIZE: &str = "2025-11-25";
pub(crate) const STATELESS: &str = "2026-07-28";

/// The two families of revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Initialize,
    Stateless,
}

impl Era {
    /// Every pair of a client's era and a server's.
    pub(crate) const PAIRS: [(Self, Self); 4] = [
        (Self::Initialize, Self::Initialize),
        (Self::Initialize, Self::Stateless),
        (Self::Stateless, Self::Initialize),
        (Self::Stateless, Self::Stateless),
    ];
}

/// A client. Fields may be set before the first request.
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
    /// Source address, where that matters.
    pub(crate) from: Option<Ipv4Addr>,
    pub(crate) era: Era,
    /// Path and query.
    pub(crate) path: String,
    /// Further headers of every request.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) name: String,
    pub(crate) capabilities: Value,
    pub(crate) session: Option<String>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    next: AtomicU64,
}

impl Client {
    /// Makes a client that has sent nothing.
    pub(crate) fn new(world: &World, era: Era) -> Self {
        Self {
            addr: world.addr,
            from: None,
            era,
            path: "/mcp".into(),
            headers: Vec::new(),
            name: "doors".into(),
            capabilities: json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true}}),
            session: None,
            tls: None,
            next: AtomicU64::new(1),
        }
    }

    /// Makes a client after the handshake.
    pub(crate) async fn ready(world: &World, era: Era) -> Self {
        Self::new(world, era).open().await
    }

    /// Sets another path.
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// Sets TLS.
    pub(crate) fn over(mut self, tls: &Arc<ClientConfig>) -> Self {
        self.tls = Some(Arc::clone(tls));
        self
    }

    /// Sets another name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Shakes hands, in the initialize era.
    pub(crate) async fn open(mut self) -> Self {
        if self.era == Era::Initialize {
            let reply = self.greet().await;
            assert_eq!(reply.status, 200);
            self.session = Some(reply.header("mcp-session-id").to_owned());
            self.notify("notifications/initialized", json!({})).await;
        }
        self
    }

    pub(crate) async fn greet(&self) -> Reply {
        let info = json!({"name": self.name, "version": "1"});
        let params = json!({"protocolVersion": INITIALIZE, "capabilities": self.capabilities, "clientInfo": info});
        self.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string(), &[]).await
    }

    /// Sends a request; the reply may still be coming.
    pub(crate) async fn begin(&self, method: &str, params: Value) -> Reply {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.begin_as(json!(id), method, params).await
    }

    /// Sends a request under a given id.
    pub(crate) async fn begin_as(&self, id: Value, method: &str, params: Value) -> Reply {
        let (body, headers) = self.written(&id, method, params);
        self.post(&body, &headers).await
    }

    /// Writes a request of the era: the body, and the headers that repeat parts of the body.
    pub(crate) fn written(&self, id: &Value, method: &str, mut params: Value) -> (String, Vec<(&'static str, String)>) {
        let mut headers = Vec::new();
        if self.era == Era::Stateless {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert(json!({}));
            let own = [
                ("io.modelcontextprotocol/protocolVersion", json!(STATELESS)),
                ("io.modelcontextprotocol/clientCapabilities", self.capabilities.clone()),
                ("io.modelcontextprotocol/clientInfo", json!({"name": self.name, "version": "1"})),
            ];
            for (key, value) in own {
                meta.as_object_mut().unwrap().entry(key).or_insert(value);
            }
            headers.push(("mcp-method", method.to_owned()));
            let name = ["name", "uri", "taskId"].iter().find_map(|key| params.get(*key)?.as_str());
            headers.extend(name.map(|n| ("mcp-name", n.to_owned())));
        }
        (json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(), headers)
    }

    /// Sends a request and reads to the response. Gives the messages before, and the response.
    pub(crate) async fn whole(&self, method: &str, params: Value) -> (Vec<Value>, Event) {
        self.begin(method, params).await.finish().await
    }

    /// Sends a request and gives the response.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        self.whole(method, params).await.1.value
    }

    /// Calls a tool and gives the response.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Calls a tool, and answers all questions meanwhile (initialize era). Gives the questions, and the response.
    pub(crate) async fn dialogue(&self, name: &str, arguments: Value, answer: impl Fn(&Value) -> Value) -> (Vec<Value>, Value) {
        let mut reply = self.begin("tools/call", json!({"name": name, "arguments": arguments})).await;
        let mut questions = Vec::new();
        loop {
            let event = reply.next().await.expect("the stream ended before the response");
            if event.value.get("result").is_some() || event.value.get("error").is_some() {
                return (questions, event.value);
            }
            if event.value.get("id").is_some() {
                let response = json!({"jsonrpc": "2.0", "id": event.value["id"], "result": answer(&event.value)});
                assert_eq!(self.post(&response.to_string(), &[]).await.status, 202);
                questions.push(event.value);
            }
        }
    }

    /// Lists the names of all tools.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let listed = self.call("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let reply = self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string(), &[]).await;
        assert_eq!(reply.status, 202);
    }

    /// Sends a stateless request with a wrong `Mcp-Name`, or without.
    pub(crate) async fn misnamed(&self, method: &str, mut params: Value, name: Option<&str>) -> Reply {
        let key = |key: &str| format!("io.modelcontextprotocol/{key}");
        params["_meta"] = json!({key("protocolVersion"): STATELESS, key("clientCapabilities"): self.capabilities});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("mcp-method", method.to_owned())];
        headers.extend(name.map(|n| ("mcp-name", n.to_owned())));
        self.post(&message.to_string(), &headers).await
    }

    /// Opens the stream of the session, or resumes behind an event.
    pub(crate) async fn listen(&self, last: Option<&str>) -> Reply {
        let last: Vec<_> = last.map(|id| ("last-event-id", id.to_owned())).into_iter().collect();
        self.send(Method::GET, "", &last).await
    }

    /// Ends the session.
    pub(crate) async fn delete(&self) -> Reply {
        self.send(Method::DELETE, "", &[]).await
    }

    /// Posts a text unchanged.
    pub(crate) async fn post(&self, body: &str, more: &[(&str, String)]) -> Reply {
        self.send(Method::POST, body, more).await
    }

    async fn send(&self, method: Method, body: &str, more: &[(&str, String)]) -> Reply {
        let mut request = Request::builder().method(method).uri(&self.path).header("content-type", "application/json");
        let accept = "application/json, text/event-stream".to_owned();
        let mut headers: Vec<(&str, String)> = vec![("host", self.addr.to_string()), ("accept", accept)];
        let version = if self.era == Era::Stateless { STATELESS } else { INITIALIZE };
        headers.push(("mcp-protocol-version", version.to_owned()));
        headers.extend(self.session.iter().map(|id| ("mcp-session-id", id.clone())));
        headers.extend(self.headers.iter().cloned());
        headers.extend(more.iter().cloned());
        for (name, value) in &headers {
            // A header given twice is given as the last one has it, and one without a value not at all.
            if !value.is_empty() && headers.iter().rfind(|(n, _)| n == name).is_some_and(|last| last.1 == *value) {
                request = request.header(*name, value);
            }
        }
        wire::send_from(self.from, self.addr, self.tls.as_ref(), request.body(Full::from(Bytes::copy_from_slice(body.as_bytes()))).unwrap())
            .await
    }
}
