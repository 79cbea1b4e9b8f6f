//! Reused connections to a server with the habits of real servers: closing at any time, answering early, saying too much. Every call gets
//! its own answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{Client, Era, World, bounded};

const TOOLS: [&str; 9] = ["plain", "leaves", "early", "closes", "refuses", "babbles", "old", "interim", "breath"];

/// A stateless server that behaves as the tool's name says.
struct Server {
    addr: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream));
            }
        });
        Self { addr, connections }
    }

    fn table(&self) -> String {
        format!("[mount.up]\nurl = \"http://{}/mcp\"\nera = \"stateless\"\n", self.addr)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Reads a head, and the beginning of the body.
async fn head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Some((String::from_utf8(bytes).unwrap().to_ascii_lowercase(), rest));
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn field(head: &str, name: &str) -> String {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default().to_owned()
}

/// Refuses a request with `rest` bytes of body unread, and reads on only so that the answer is not lost. `true`: the whole body came, and
/// the connection is as good as before.
async fn refused(stream: &mut TcpStream, rest: usize) -> bool {
    let text = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "far too much"}}).to_string();
    stream.write_all(whole("HTTP/1.1 413 No", "", &text).as_bytes()).await.unwrap();
    let (mut left, mut sink) = (stream.take(rest as u64), tokio::io::sink());
    let read = tokio::time::timeout(Duration::from_millis(300), tokio::io::copy(&mut left, &mut sink)).await;
    matches!(read, Ok(Ok(read)) if read == rest as u64)
}

async fn serve(mut stream: TcpStream) {
    while let Some((head, mut body)) = head(&mut stream).await {
        let length: usize = field(&head, "content-length").parse().unwrap();
        let tool = field(&head, "mcp-name");
        if field(&head, "mcp-method") == "subscriptions/listen" {
            // It tells of nothing, so that the gate is not on other connections while calls are counted on them.
            stream.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await.unwrap();
            return;
        }
        if tool == "refuses" {
            if !refused(&mut stream, length - body.len()).await {
                return;
            }
            continue;
        }
        if tool == "early" {
            let fields = "content-type: text/event-stream\r\ntransfer-encoding: chunked";
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        while body.len() < length {
            assert!(stream.read_buf(&mut body).await.unwrap() > 0, "half a request");
        }
        let message: Value = serde_json::from_slice(&body).unwrap();
        let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result(&message)}).to_string();
        let out = answer(&tool, &message, &text);
        stream.write_all(out.as_bytes()).await.unwrap();
        if ["closes", "leaves", "old"].contains(&&tool[..]) {
            return;
        }
    }
}

/// Writes the answer of the server of that name.
fn answer(tool: &str, message: &Value, text: &str) -> String {
    match tool {
        "early" => {
            let event = format!("data: {text}\n\n");
            format!("{:x}\r\n{event}\r\n0\r\n\r\n", event.len())
        }
        "breath" => breath(message, text),
        "closes" => whole("HTTP/1.1 200 OK", "connection: close\r\n", text),
        "babbles" => format!("{}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{{}}", whole("HTTP/1.1 200 OK", "", text)),
        "old" => format!("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{text}"),
        "interim" => {
            format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n{}", whole("HTTP/1.1 200 OK", "", text))
        }
        _ => whole("HTTP/1.1 200 OK", "", text),
    }
}

fn whole(first: &str, more: &str, text: &str) -> String {
    format!("{first}\r\n{more}content-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

/// Writes three reports of progress and the answer in one piece.
fn breath(message: &Value, answer: &str) -> String {
    let token = &message["params"]["_meta"]["progressToken"];
    let report = |n| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}});
    let events: String = (1..4).map(|n| format!("data: {}\n\n", report(n))).chain([format!("data: {answer}\n\n")]).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{events}", events.len())
}

fn result(message: &Value) -> Value {
    match message["method"].as_str().unwrap() {
        "server/discover" => {
            let info = json!({"name": "kept", "version": "1"});
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info,
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        }
        "tools/list" => {
            let tools: Vec<_> = TOOLS.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
            json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        }
        _ => {
            let said = message["params"]["arguments"]["say"].as_str().unwrap_or_default();
            let text = format!("{} {}", message["params"]["name"].as_str().unwrap_or_default(), said.len());
            json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
        }
    }
}

/// Calls a tool with a text of that length, and checks that the answer is for this call.
async fn answered(client: &Client, tool: &str, length: usize) {
    let told = client.tool(&format!("up__{tool}"), json!({"say": "x".repeat(length)})).await;
    assert_eq!(told["result"]["content"][0]["text"], format!("{tool} {length}"), "{told}");
}

#[tokio::test]
async fn every_call_gets_its_own_answer_on_any_connection() {
    bounded(async {
        let server = Server::start().await;
        let world = World::start(&server.table()).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world, era).await;
            for tool in ["leaves", "closes", "babbles", "old", "interim"] {
                for length in 1..4 {
                    answered(&client, tool, length).await;
                    // A server takes its time to close; a call in that very moment may be lost, as it has left.
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    answered(&client, "plain", length).await;
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_is_reused_only_if_its_server_allows() {
    bounded(async {
        let server = Server::start().await;
        let world = World::start(&server.table()).await;
        let client = Client::ready(&world, Era::Stateless).await;
        for (tool, more) in [("plain", 0), ("interim", 0), ("breath", 0), ("closes", 4), ("babbles", 4), ("old", 4), ("early", 0)] {
            // One connection lies idle then, whatever the gate asked for itself before.
            for tool in ["closes", "closes", "closes", "plain"] {
                answered(&client, tool, 0).await;
            }
            let before = server.connections();
            for length in 0..5 {
                answered(&client, tool, length).await;
            }
            assert!((more..=more + 1).contains(&(server.connections() - before)), "{tool}: {}", server.connections() - before);
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_may_answer_before_reading_the_request() {
    bounded(async {
        let server = Server::start().await;
        let world = World::start(&server.table()).await;
        let client = Client::ready(&world, Era::Stateless).await;
        for _ in 0..2 {
            // More than any socket takes at once.
            answered(&client, "early", 12 << 20).await;
            answered(&client, "early", 10).await;
            answered(&client, "plain", 1).await;
        }
        let told = client.tool("up__refuses", json!({"say": "x".repeat(12 << 20)})).await;
        assert!(told["error"]["message"].as_str().is_some_and(|m| m.contains("far too much")), "{told}");
        answered(&client, "plain", 2).await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_overtakes_no_progress_sent_with_it() {
    bounded(async {
        let server = Server::start().await;
        let world = World::start(&server.table()).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world, era).await;
            let params = json!({"name": "up__breath", "arguments": {}, "_meta": {"progressToken": "p"}});
            let (before, answer) = client.whole("tools/call", params).await;
            let reports: Vec<_> = before.iter().filter_map(|m| m["params"]["progress"].as_u64()).collect();
            assert_eq!(reports, [1, 2, 3], "{era:?} {answer:?}");
        }
    })
    .await;
}
