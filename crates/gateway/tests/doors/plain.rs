//! Connections with many requests, byte for byte: those read by Banyan, and those taken over by hyper. Does not try the meaning of
//! requests.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::world::raw::{Raw, request};
use crate::world::{Client, Era, World, bounded, eventually, fixture};

/// Far shorter than the idle time of a connection in a failing test.
const SOON: Duration = Duration::from_secs(10);
const JSON: (&str, &str) = ("accept", "application/json");
const EITHER: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Writes a POST answered by the gate alone, with the id in the answer.
fn greet(id: u32) -> Vec<u8> {
    request("POST", "/mcp", &[EITHER], &greeting(id))
}

/// The body of that POST.
pub(crate) fn greeting(id: u32) -> String {
    let info = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).to_string()
}

/// Writes a stateless call of a tool.
fn call(id: u32, tool: &str, arguments: &Value, accept: (&str, &str)) -> Vec<u8> {
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    let meta = json!({key("protocolVersion"): "2026-07-28", key("clientCapabilities"): {}, "progressToken": "p"});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
    let fields = [accept, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    request("POST", "/mcp", &fields, &body)
}

async fn greeted(raw: &mut Raw, id: u32) {
    let (status, closes, body) = raw.reply().await;
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, closes, &value["id"]), (200, false, &json!(id)), "{body}");
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    bounded(async {
        let world = World::start("").await;
        let mut raw = Raw::connect(&world).await;
        let all: Vec<u8> = (0..20).flat_map(greet).collect();
        raw.send(&all).await;
        for id in 0..20 {
            greeted(&mut raw, id).await;
        }
        // Far more than is read ahead, and cut at odd places.
        let all: Vec<u8> = (0..2000).flat_map(greet).collect();
        let mut raw = Raw::connect(&world).await;
        let mut writing = raw.writing.take().unwrap();
        let sent = tokio::spawn(async move {
            for piece in all.chunks(7001) {
                writing.write_all(piece).await.unwrap();
            }
            writing
        });
        for id in 0..2000 {
            greeted(&mut raw, id).await;
        }
        drop(sent.await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_request_may_come_byte_by_byte() {
    bounded(async {
        let world = World::start("").await;
        let mut raw = Raw::connect(&world).await;
        for id in 0..2 {
            for byte in greet(id) {
                raw.send(&[byte]).await;
                tokio::task::yield_now().await;
            }
            greeted(&mut raw, id).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_vanished_client_cancels_only_stateless_calls() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let count = async |of: &str| {
            let stats = client.tool("fx__fx_stats", json!({})).await;
            stats["result"]["structuredContent"][of].as_u64().unwrap()
        };
        let mut raw = Raw::connect(&world).await;
        raw.send(&call(1, "fx__fx_sleep", &json!({"ms": 60_000}), JSON)).await;
        // What has not begun there is never heard of.
        eventually(async || (count("begun").await == 1).then_some(())).await;
        drop(raw);
        eventually(async || (count("cancelled").await == 1).then_some(())).await;
        world.until("fx", |m| m.in_flight == 0).await;

        let session = client.session.clone().unwrap();
        let body =
            json!({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {"name": "fx__fx_sleep", "arguments": {"ms": 1500}}});
        let mut raw = Raw::connect(&world).await;
        raw.send(&request("POST", "/mcp", &[JSON, ("mcp-session-id", &session)], &body.to_string())).await;
        world.until("fx", |m| m.in_flight == 1).await;
        drop(raw);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(world.mount("fx").unwrap().in_flight, 1, "it goes on");
        world.until("fx", |m| m.in_flight == 0).await;
        assert_eq!(count("cancelled").await, 1);
    })
    .await;
}

#[tokio::test]
async fn hyper_takes_over_on_the_same_connection() {
    bounded(async {
        let world = World::start("").await;
        let mut raw = Raw::connect(&world).await;
        raw.send(&greet(1)).await;
        let opened = raw.begin().await;
        let session = opened.head.fields().str("mcp-session-id").unwrap().to_owned();
        raw.finish(opened).await;
        let body = greeting(7);
        let (half, rest) = body.split_at(20);
        let chunks = format!("{:x};a=b\r\n{half}\r\n{:x}\r\n{rest}\r\n0\r\nx: y\r\n\r\n", half.len(), rest.len());
        raw.send(&request("POST", "/mcp", &[EITHER, ("transfer-encoding", "chunked")], &chunks)).await;
        greeted(&mut raw, 7).await;
        raw.send(&greet(2)).await;
        greeted(&mut raw, 2).await;
        raw.send(&request("DELETE", "/mcp", &[("mcp-session-id", &session)], "")).await;
        assert_eq!(raw.reply().await.0, 204);
        raw.send(&request("GET", "/mcp", &[("mcp-session-id", &session), EITHER], "")).await;
        assert_eq!(raw.reply().await.0, 404);
        raw.send(&request("PUT", "/mcp", &[], "x")).await;
        assert_eq!(raw.reply().await.0, 405);
        raw.send(&request("GET", "/-/health", &[], "")).await;
        assert!(raw.reply().await.0 < 500);
    })
    .await;
}

#[tokio::test]
async fn a_client_waiting_for_100_continue_gets_it() {
    bounded(async {
        let world = World::start("").await;
        let mut raw = Raw::connect(&world).await;
        raw.send(&greet(1)).await;
        greeted(&mut raw, 1).await;
        let body = greeting(2);
        let length = body.len().to_string();
        raw.send(&request("POST", "/mcp", &[EITHER, ("content-length", &length), ("expect", "100-continue")], "")).await;
        raw.expect(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        raw.send(body.as_bytes()).await;
        greeted(&mut raw, 2).await;
    })
    .await;
}

#[tokio::test]
async fn http_2_is_spoken_by_prior_knowledge() {
    bounded(async {
        let world = World::start("").await;
        let stream = TcpStream::connect(world.addr).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        for id in 0..3 {
            let request = http::Request::post(format!("http://{}/mcp", world.addr)).header(EITHER.0, EITHER.1);
            let response = sender.send_request(request.body(Full::<Bytes>::from(greeting(id))).unwrap()).await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
            let body: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
            assert_eq!(body["id"], id);
        }
    })
    .await;
}

// Bytes that the client still sends must not take the answer back.
#[tokio::test]
async fn a_body_nobody_reads_does_not_cost_the_answer() {
    bounded(async {
        let world = World::start("[limits]\nrequest_size = \"1KiB\"\n").await;
        let large = request("POST", "/mcp", &[EITHER], &" ".repeat(8 << 20));
        let mut raw = Raw::connect(&world).await;
        raw.send(&large).await;
        let (status, closes, body) = raw.reply().await;
        assert!((status, closes) == (413, true) && body.contains("limits.request_size"), "{status} {body}");
        assert!(raw.ends().await);

        // Head and body in two pieces, as many clients write them; the door refuses when it has seen the head.
        let refused = String::from_utf8(request("POST", "/mcp", &[("origin", "https://evil.example")], &" ".repeat(900))).unwrap();
        let (head, body) = refused.split_once("\r\n\r\n").unwrap();
        let mut raw = Raw::connect(&world).await;
        raw.send(format!("{head}\r\n\r\n").as_bytes()).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        raw.send(body.as_bytes()).await;
        let (status, closes, _) = raw.reply().await;
        assert_eq!((status, closes), (403, true));
        assert!(raw.ends().await);
        // In one piece nothing is in doubt, and the connection stays.
        let mut raw = Raw::connect(&world).await;
        raw.send(refused.as_bytes()).await;
        let (status, closes, _) = raw.reply().await;
        assert_eq!((status, closes), (403, false));
        raw.send(&greet(3)).await;
        greeted(&mut raw, 3).await;
    })
    .await;
}

#[tokio::test]
async fn a_connection_outlives_a_stream_of_events() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let mut raw = Raw::connect(&world).await;
        for id in 1..4 {
            raw.send(&call(id, "fx__fx_sleep", &json!({"ms": 60, "steps": 3}), EITHER)).await;
            if id == 2 {
                raw.send(&greet(9)).await;
            }
            let answer = raw.begin().await;
            assert_eq!(answer.head.fields().str("content-type"), Some("text/event-stream"));
            let events = raw.finish(answer).await;
            assert!(events.matches("notifications/progress").count() >= 2 && events.contains(&format!("\"id\":{id},")), "{events}");
            if id == 2 {
                greeted(&mut raw, 9).await;
            }
        }
        raw.send(&greet(8)).await;
        greeted(&mut raw, 8).await;
    })
    .await;
}

#[tokio::test]
async fn a_shutting_gate_closes_idle_connections_and_finishes_calls() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let (mut fresh, mut idle, mut busy) = (Raw::connect(&world).await, Raw::connect(&world).await, Raw::connect(&world).await);
        idle.send(&greet(1)).await;
        greeted(&mut idle, 1).await;
        busy.send(&call(2, "fx__fx_sleep", &json!({"ms": 500}), JSON)).await;
        world.until("fx", |m| m.in_flight == 1).await;
        world.shut();
        for raw in [&mut fresh, &mut idle] {
            assert!(tokio::time::timeout(SOON, raw.ends()).await.unwrap());
        }
        let (status, closes, body) = busy.reply().await;
        assert!((status, closes) == (200, true) && body.contains("slept"), "{status} {body}");
        assert!(busy.ends().await);
    })
    .await;
}

#[tokio::test]
async fn a_closing_client_is_answered_and_closed() {
    bounded(async {
        let world = World::start("").await;
        let mut raw = Raw::connect(&world).await;
        raw.send(&request("POST", "/mcp", &[EITHER, ("connection", "close")], &greeting(1))).await;
        let (status, closes, _) = raw.reply().await;
        assert_eq!((status, closes), (200, true));
        assert!(raw.ends().await);
    })
    .await;
}

#[tokio::test]
async fn a_server_may_be_named_like_the_path() {
    bounded(async {
        let world = World::start(&format!("{}{}", fixture("mcp", Era::Stateless), fixture("mcp-x", Era::Stateless))).await;
        for (path, status) in [("/mcp/mcp", 200), ("/mcp/mcp-x", 200), ("/mcp/x", 404), ("/mcp/mcp/mcp", 404)] {
            let mut raw = Raw::connect(&world).await;
            raw.send(&request("POST", path, &[EITHER], &greeting(1))).await;
            assert_eq!(raw.reply().await.0, status, "{path}");
        }
        let tools = Client::new(&world, Era::Stateless).at("/mcp/mcp").tools().await;
        assert!(!tools.is_empty() && tools.iter().all(|name| !name.contains("mcp-x")), "{tools:?}");
    })
    .await;
}
