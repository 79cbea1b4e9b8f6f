//! A server behind HTTP that keeps the headers and bodies of requests. Offers a single tool, `record`, in either era, as a task on demand.
//! The tool fails with the error given in the argument `error`. Every answer has a session id, refusals too.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Era;
use super::client::{INITIALIZE, STATELESS};

/// Headers and body of a request.
pub(crate) type ReceivedRequest = (HeaderMap, String);

/// The server.
pub(crate) struct Recorder {
    pub(crate) addr: SocketAddr,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Recorder {
    /// Listens on a free port of the loopback.
    pub(crate) async fn start(era: Era) -> Self {
        Self::offering(era, "record", json!({})).await
    }

    /// Starts a server that claims to be a gate, with the tool below a mount of its own.
    pub(crate) async fn gate(era: Era) -> Self {
        Self::offering(era, "stm.record", json!({"io.banyan/mcpax": {"aggregator_id": "the-recorder"}})).await
    }

    async fn offering(era: Era, tool: &'static str, extensions: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (keep, said) = (Arc::clone(&seen), Arc::new((tool, extensions)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (keep, said) = (Arc::clone(&keep), Arc::clone(&said));
                let service = service_fn(move |request| {
                    let (keep, said) = (Arc::clone(&keep), Arc::clone(&said));
                    async move { Ok::<_, Infallible>(answer(era, &said, &keep, request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move { drop(connection.await) });
            }
        });
        Self { addr, seen }
    }

    /// Gives all requests so far.
    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer(
    era: Era,
    (tool, more): &(&str, Value),
    seen: &Mutex<Vec<ReceivedRequest>>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    seen.lock().unwrap().push((parts.headers, body.clone()));
    let plain = |status: StatusCode, body: String| {
        let response = Response::builder().status(status).header("content-type", "application/json").header("mcp-session-id", "recorded");
        response.body(Full::from(body)).unwrap()
    };
    if parts.method != "POST" {
        return plain(StatusCode::METHOD_NOT_ALLOWED, String::new());
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    if message.get("id").is_none() {
        return plain(StatusCode::ACCEPTED, String::new());
    }
    let info = json!({"name": "recorder", "version": "1"});
    let result = match (message["method"].as_str().unwrap(), era) {
        ("initialize", Era::Initialize) => {
            let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            json!({"protocolVersion": INITIALIZE, "capabilities": {"tools": {}, "tasks": tasks, "experimental": more}, "serverInfo": info})
        }
        ("server/discover", Era::Stateless) => {
            let mut extensions = json!({"io.modelcontextprotocol/tasks": {}});
            extensions.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let capabilities = json!({"tools": {}, "extensions": extensions});
            json!({"supportedVersions": [STATELESS], "capabilities": capabilities, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        }
        ("tools/list", _) => {
            let tool = json!({"name": tool, "inputSchema": {"type": "object"}});
            json!({"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        }
        ("tools/call", Era::Initialize) if message["params"].get("task").is_some() => json!({"task": task(&message)}),
        ("tools/call", Era::Stateless) if message["params"].get("task").is_some() => {
            let mut made = task(&message);
            made["resultType"] = json!("task");
            made
        }
        ("tasks/get", _) => task(&message),
        ("tools/call", _) if message["params"]["arguments"].get("error").is_some() => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": message["params"]["arguments"]["error"]});
            return plain(StatusCode::OK, error.to_string());
        }
        ("tools/call", _) => json!({"content": [], "resultType": "complete"}),
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "not served"}});
            return plain(StatusCode::NOT_FOUND, error.to_string());
        }
    };
    plain(StatusCode::OK, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// Makes a task that never ends, with the id of the request or a new id.
fn task(message: &Value) -> Value {
    let id = message["params"].get("taskId").cloned().unwrap_or(json!("task-of-the-recorder"));
    let when = "2026-07-28T00:00:00Z";
    json!({"taskId": id, "status": "working", "createdAt": when, "lastUpdatedAt": when, "ttl": 60_000, "ttlMs": 60_000, "resultType": "complete"})
}
