//! Servers over HTTP with misfit answers: to another request, or of another era.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{Client, Era, World, bounded, eventually};

/// Behaviour of a server; a test may change it meanwhile.
#[derive(Clone, Copy)]
struct Manner {
    era: Era,
    /// Answers calls with the id of another request.
    is_astray: bool,
    /// Answers calls by events.
    by_events: bool,
    /// Puts the id behind the result.
    is_behind: bool,
    /// Length of a result's text.
    length: usize,
}

const SOUND: Manner = Manner { era: Era::Stateless, is_astray: false, by_events: false, is_behind: false, length: 2 };

/// Starts a server, and gives the mount and the behaviour.
async fn server(manner: Manner) -> (String, Arc<Mutex<Manner>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mount = format!("[mount.m]\nurl = \"http://{}/mcp\"\n", listener.local_addr().unwrap());
    let shared = Arc::new(Mutex::new(manner));
    let manner = Arc::clone(&shared);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let manner = Arc::clone(&manner);
            let service = service_fn(move |request| {
                let manner = *manner.lock().unwrap();
                async move { Ok::<_, Infallible>(answer(manner, request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    (mount, shared)
}

async fn answer(manner: Manner, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let told = |status: u16, kind: &str, body: String| {
        Response::builder().status(status).header("content-type", kind).body(Full::from(body)).unwrap()
    };
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if parts.method != "POST" || message.get("id").is_none() {
        return told(if parts.method == "POST" { 202 } else { 405 }, "text/plain", String::new());
    }
    let id = &message["id"];
    let is_stateless = message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
    let result = match (message["method"].as_str().unwrap(), manner.era) {
        _ if is_stateless != (manner.era == Era::Stateless) => None,
        ("initialize", Era::Initialize) => {
            Some(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "m", "version": "1"}}))
        }
        ("server/discover", Era::Stateless) => Some(
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
        ),
        ("tools/list", _) => {
            let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
            Some(json!({"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}))
        }
        ("tools/call", _) => Some(json!({"content": [{"type": "text", "text": "x".repeat(manner.length)}], "resultType": "complete"})),
        _ => None,
    };
    let Some(result) = result else {
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not served"}});
        return told(200, "application/json", error.to_string());
    };
    let id = if message["method"] == "tools/call" && manner.is_astray { json!(4711) } else { id.clone() };
    let text = if manner.is_behind {
        format!("{{\"jsonrpc\":\"2.0\",\"result\":{result},\"id\":{id}}}")
    } else {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
    };
    if manner.by_events && message["method"] == "tools/call" {
        return told(200, "text/event-stream", format!("data: {text}\n\n"));
    }
    told(200, "application/json", text)
}

fn said(told: &Value) -> usize {
    told["result"]["content"][0]["text"].as_str().map_or(0, str::len)
}

#[tokio::test]
async fn a_stray_answer_is_refused_and_marks_its_server() {
    bounded(async {
        for era in [Era::Stateless, Era::Initialize] {
            for by_events in [false, true] {
                let (mount, manner) = server(Manner { era, by_events, ..SOUND }).await;
                let world = World::start(&mount).await;
                let client = Client::ready(&world, Era::Initialize).await;
                assert_eq!(said(&client.tool("m__t", json!({})).await), 2);
                assert!(world.mount("m").unwrap().notes.is_empty());
                manner.lock().unwrap().is_astray = true;
                let told = client.tool("m__t", json!({})).await;
                assert_eq!(told["error"]["data"]["reason"], "upstream_malformed", "{told}");
                assert!(!told.to_string().contains("xx"), "{told}");
                let marked = world.mount("m").unwrap().notes;
                assert!(marked[0].starts_with("1 of its answers had the id of another request"), "{marked:?}");
                manner.lock().unwrap().is_astray = false;
                assert_eq!(said(&client.tool("m__t", json!({})).await), 2);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_stray_answer_never_ends_as_one() {
    bounded(async {
        for (by_events, is_behind) in [(false, false), (false, true), (true, false), (true, true)] {
            let (mount, manner) = server(Manner { by_events, is_behind, length: 2 << 20, ..SOUND }).await;
            let world = World::start(&mount).await;
            let client = Client::ready(&world, Era::Stateless).await;
            assert_eq!(said(&client.tool("m__t", json!({})).await), 2 << 20);
            manner.lock().unwrap().is_astray = true;
            let reply = client.begin("tools/call", json!({"name": "m__t", "arguments": {}})).await;
            let text = reply.text_or_break().await.unwrap_or_default();
            let last = text.rsplit("data:").next().unwrap_or_default().trim();
            let is_result = serde_json::from_str::<Value>(last).is_ok_and(|whole| whole.get("result").is_some());
            assert!(!is_result, "{by_events} {is_behind}");
            eventually(async || world.mount("m").unwrap().notes.first().filter(|note| note.contains("id of another request")).map(drop))
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_back_in_the_older_era_is_followed() {
    bounded(async {
        let (mount, manner) = server(SOUND).await;
        let world = World::start(&mount).await;
        let client = Client::ready(&world, Era::Stateless).await;
        assert_eq!(said(&client.tool("m__t", json!({})).await), 2);
        manner.lock().unwrap().era = Era::Initialize;
        let told = client.tool("m__t", json!({})).await;
        assert_eq!(told["error"]["code"], -32601, "{told}");
        world.until("m", |mount| mount.era.as_deref() == Some("initialize") && mount.state == "ready").await;
        assert_eq!(said(&client.tool("m__t", json!({})).await), 2);
    })
    .await;
}

#[tokio::test]
async fn a_refused_method_does_not_change_the_era() {
    bounded(async {
        let (mount, _) = server(SOUND).await;
        let world = World::start(&mount).await;
        let client = Client::ready(&world, Era::Stateless).await.at("/mcp/m");
        for _ in 0..3 {
            assert_eq!(client.call("vendor/nothing", json!({})).await["error"]["code"], -32601);
            assert_eq!(said(&client.tool("t", json!({})).await), 2);
        }
        assert_eq!(world.mount("m").unwrap().restarts, 0);
    })
    .await;
}
