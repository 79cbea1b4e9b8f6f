//! Long results: poured down while they come up, byte for byte, and never ended when broken off. Does not try reading JSON in pieces.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::world::raw::{Raw, request};
use crate::world::tap::{self, Tap};
use crate::world::{Client, Era, World, bounded, eventually};

/// Longer than a buffered result.
const LONG: usize = 600 << 10;

/// Writes a stateless call of the tap.
fn call(arguments: &Value) -> Vec<u8> {
    let body = message(arguments);
    let fields =
        [("accept", "application/json"), ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "up__run")];
    request("POST", "/mcp", &fields, &body)
}

fn message(arguments: &Value) -> String {
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    let meta = json!({key("protocolVersion"): "2026-07-28", key("clientCapabilities"): {}});
    let params = json!({"name": "up__run", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": "an id", "method": "tools/call", "params": params}).to_string()
}

fn response(id: &str, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

/// Counts the calls that ended with an error of this type, or with `part` among their labels.
fn ended(world: &World, part: &str) -> u64 {
    let text = world.gateway.metrics();
    let of_calls = text.lines().filter(|l| l.starts_with("mcp_server_operation_duration_seconds_count") && l.contains("tools/call"));
    of_calls.filter(|l| l.contains(part)).filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Waits until so many calls have ended with `part`.
async fn until_ended(world: &World, part: &str, count: u64) {
    eventually(async || (ended(world, part) == count).then_some(())).await;
    world.until("up", |m| m.in_flight == 0).await;
}

#[tokio::test]
async fn a_long_result_stays_the_same_in_any_framing() {
    bounded(async {
        for (ours, theirs) in Era::PAIRS {
            let server = Tap::start(theirs).await;
            let world = World::start(&server.table()).await;
            let client = Client::ready(&world, ours).await;
            for size in [LONG / 3, LONG, 1 << 20] {
                for (framing, order) in [
                    ("length", ""),
                    ("chunked", ""),
                    ("events", ""),
                    ("chunked", "result first"),
                    ("length", "result first"),
                    ("events", "result first"),
                ] {
                    // Several lines of data, where it is an event.
                    let arguments = json!({"size": size, "framing": framing, "order": order, "inside": ",\n\"x\":\n[1]"});
                    let mut reply = client.begin_as(json!("x"), "tools/call", json!({"name": "up__run", "arguments": arguments})).await;
                    let poured = reply.header("transfer-encoding") == "chunked" && !reply.is_stream();
                    let got = reply.finish().await.1.raw;
                    let result = tap::result(&arguments);
                    let stem = result.strip_suffix(" }").unwrap();
                    let result = match (ours, theirs, poured) {
                        (Era::Stateless, Era::Initialize, true) => format!("{stem} ,\"resultType\":\"complete\"}}"),
                        (Era::Stateless, Era::Initialize, false) => format!("{stem},\"resultType\":\"complete\" }}"),
                        _ => result,
                    };
                    assert!(got == response("\"x\"", &result), "{ours:?} {theirs:?} {size} {framing} {order}: {}", &got[got.len() - 100..]);
                    // A session's answer that is not there soon opens a stream, and a question must be known as one.
                    let may = size >= LONG && (ours, theirs) != (Era::Initialize, Era::Stateless);
                    // Whose answer an event is must be known before.
                    let may = may && (framing, order) != ("events", "result first");
                    assert!(poured == may || ours == Era::Initialize && !poured, "{ours:?} {theirs:?} {size} {framing}");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_result_broken_off_is_never_ended_as_whole() {
    bounded(async {
        let server = Tap::start(Era::Stateless).await;
        let world = World::start(&server.table()).await;
        let mut bad = Vec::new();
        for (framing, ends, step) in
            [("length", false, 1), ("chunked", false, 11), ("chunked", true, 7), ("events", false, 13), ("events", true, 13)]
        {
            bad.extend(
                (1..90).step_by(step).map(|cut| json!({"size": LONG, "framing": framing, "cut": cut, "ends": ends, "piece": 60_000 + cut})),
            );
        }
        for tail in [
            "",
            "}}",
            "]",
            "} x",
            ",\"result\":{}}",
            ",\"error\":{}}",
            ",\"method\":\"m\"}",
            ",\"jsonrpc\":\"2.0\"}",
            ",\"x\":{\"a\":1,\"a\":2}}",
        ] {
            bad.extend(["length", "chunked", "events"].map(|framing| json!({"size": LONG, "framing": framing, "tail": tail})));
        }
        for inside in
            [",\"n\":1", ",\"x\":01", ",\"x\":\"\\x\"", ",\"x\":[}]", ",\"x\":{\"y\":[{\"z\":1,\"\\u007a\":2}]}", ",\"x\":\"\u{1}\""]
        {
            bad.push(json!({"size": LONG, "inside": inside}));
        }
        bad.push(json!({"size": LONG, "order": "result first", "tail": ",\"jsonrpc\":\"1.0\"}"}));
        let mut count = 0;
        for arguments in &bad {
            let mut raw = Raw::connect(&world).await;
            raw.send(&call(arguments)).await;
            let answer = raw.begin().await;
            assert_eq!(answer.head.status(), 200);
            let got = raw.broken(answer).await;
            let whole = response("\"an id\"", &tap::result(arguments));
            assert!(got.is_some_and(|got| got.len() > 10_000 && got.len() < whole.len()), "{arguments}");
            count += 1;
        }
        until_ended(&world, "error_type=\"-3200", count).await;
        let client = Client::ready(&world, Era::Stateless).await;
        assert_eq!(client.tool("up__run", json!({"size": 10})).await["result"]["n"][1], true);
    })
    .await;
}

#[tokio::test]
async fn a_tools_failure_is_counted_and_others_told_whole() {
    bounded(async {
        let server = Tap::start(Era::Stateless).await;
        let world = World::start(&format!("{}[limits]\nresponse_size = \"1MiB\"\n", server.table())).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let arguments = json!({"size": LONG, "inside": ",\"isErr\\u006fr\": true"});
        assert_eq!(client.tool("up__run", arguments).await["result"]["isError"], true);
        until_ended(&world, "error_type=\"tool_error\"", 1).await;
        // One that is known to be too long is refused before anything has gone out.
        let told = client.tool("up__run", json!({"size": 2 << 20})).await;
        assert_eq!(told["error"]["data"]["reason"], "result_too_large");
        let mut raw = Raw::connect(&world).await;
        raw.send(&call(&json!({"size": 2 << 20, "framing": "chunked"}))).await;
        let answer = raw.begin().await;
        assert!(raw.broken(answer).await.is_some_and(|got| got.len() <= 1 << 20));
        until_ended(&world, "error_type=\"-32008\"", 2).await;
        // What is wrong at the beginning is an error like any other.
        let told = client.tool("up__run", json!({"size": LONG, "framing": "chunked", "cut": LONG - 100, "ends": true})).await;
        assert_eq!(told["error"]["data"]["reason"], "upstream_malformed");
    })
    .await;
}

#[tokio::test]
async fn a_slow_caller_slows_down_its_server() {
    bounded(async {
        let server = Tap::start(Era::Stateless).await;
        let world = World::start(&server.table()).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let arguments = json!({"size": 40 << 20});
        let mut raw = Raw::connect(&world).await;
        raw.send(&call(&arguments)).await;
        let answer = raw.begin().await;
        // Longer than the server may be silent.
        let began = tokio::time::Instant::now();
        while began.elapsed() < Duration::from_millis(2500) {
            assert_eq!(client.tool("up__run", json!({"size": 10})).await["result"]["n"][1], true);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(server.sent() < 25 << 20, "{} bytes are on their way", server.sent());
        assert_eq!(world.mount("up").unwrap().in_flight, 1);
        let got = raw.finish(answer).await;
        assert!(got == response("\"an id\"", &tap::result(&arguments)));
        raw.send(&call(&json!({"size": 10}))).await;
        assert_eq!(raw.reply().await.0, 200);
        world.until("up", |m| m.in_flight == 0).await;
    })
    .await;
}

#[tokio::test]
async fn a_long_result_follows_earlier_progress() {
    bounded(async {
        let server = Tap::start(Era::Stateless).await;
        let world = World::start(&server.table()).await;
        for (era, pours) in [(Era::Stateless, true), (Era::Initialize, false)] {
            let client = Client::ready(&world, era).await;
            let arguments =
                |cut: Option<u64>| json!({"size": LONG, "framing": "events", "reports": 3, "cut": cut, "inside": ",\n\"x\":\n[1]"});
            let params = |cut| json!({"name": "up__run", "arguments": arguments(cut), "_meta": {"progressToken": "p"}});
            let mut reply = client.begin_as(json!("x"), "tools/call", params(None)).await;
            assert!(reply.is_stream());
            let (before, answer) = reply.finish().await;
            assert_eq!(before.iter().filter(|m| m["params"]["progress"].is_u64()).count(), 3);
            assert!(answer.raw == response("\"x\"", &tap::result(&arguments(None))));
            // One that breaks off is not told as an event.
            let mut reply = client.begin_as(json!("y"), "tools/call", params(Some(10))).await;
            let mut last = None;
            while let Some(event) = reply.next_or_break().await {
                last = Some(event);
            }
            let told = last.unwrap().value;
            assert_eq!((told["params"]["progress"] == 2, told["error"]["data"]["reason"] == "outcome_unknown"), (pours, !pours), "{told}");
        }
        until_ended(&world, "error_type=\"-32004\"", 2).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_silent_within_a_result_is_given_up() {
    bounded(async {
        let server = Tap::start(Era::Stateless).await;
        let world = World::start(&server.table()).await;
        let mut raw = Raw::connect(&world).await;
        raw.send(&call(&json!({"size": 2 << 20, "pause": 1 << 20}))).await;
        let answer = raw.begin().await;
        assert!(raw.broken(answer).await.is_some_and(|got| got.len() > LONG));
        until_ended(&world, "error_type=\"timeout\"", 1).await;
        eventually(async || (server.broken() == 1).then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn a_vanished_caller_cancels_its_pour() {
    bounded(async {
        for (era, pause) in [(Era::Stateless, None), (Era::Stateless, Some(1 << 20))] {
            let server = Tap::start(era).await;
            let world = World::start(&server.table()).await;
            let mut raw = Raw::connect(&world).await;
            raw.send(&call(&json!({"size": 40 << 20, "pause": pause}))).await;
            raw.begin().await;
            drop(raw);
            until_ended(&world, "error_type=\"cancelled\"", 1).await;
            eventually(async || (server.broken() == 1).then_some(())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_result_goes_over_http_2_as_well() {
    bounded(async {
        let server = Tap::start(Era::Stateless).await;
        let world = World::start(&server.table()).await;
        let stream = TcpStream::connect(world.addr).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        for (arguments, whole) in
            [(json!({"size": 3 << 20}), true), (json!({"size": 3 << 20, "cut": 10}), false), (json!({"size": LONG}), true)]
        {
            let request = http::Request::post(format!("http://{}/mcp", world.addr))
                .header("accept", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "up__run");
            let got = sender.send_request(request.body(Full::<Bytes>::from(message(&arguments))).unwrap()).await.unwrap();
            assert_eq!(got.status(), 200);
            match got.into_body().collect().await {
                Ok(body) => assert!(whole && body.to_bytes() == response("\"an id\"", &tap::result(&arguments))),
                Err(error) => assert!(!whole, "{error}"),
            }
        }
    })
    .await;
}
