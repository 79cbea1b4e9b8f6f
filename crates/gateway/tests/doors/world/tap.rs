//! A server behind HTTP with long and broken answers, by the arguments of the only tool `run`. Speaks either era and checks nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Era;
use super::client::{INITIALIZE, STATELESS};

/// The server.
pub(crate) struct Tap {
    pub(crate) addr: SocketAddr,
    era: Era,
    /// Bytes of answers sent.
    sent: Arc<AtomicUsize>,
    /// Connections broken under an answer.
    broken: Arc<AtomicUsize>,
}

impl Tap {
    /// Listens on a free port of the loopback.
    pub(crate) async fn start(era: Era) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sent, broken) = (Arc::default(), Arc::default());
        let tap = Self { addr, era, sent: Arc::clone(&sent), broken: Arc::clone(&broken) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sent, broken) = (Arc::clone(&sent), Arc::clone(&broken));
                tokio::spawn(async move {
                    if serve(stream, &sent).await.is_none() {
                        broken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        tap
    }

    /// Writes the table of `banyan.toml`.
    pub(crate) fn table(&self) -> String {
        let era = if self.era == Era::Stateless { "stateless" } else { "initialize" };
        format!("[mount.up]\nurl = \"http://{}/mcp\"\nera = \"{era}\"\ntimeout = \"1s\"\n", self.addr)
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn broken(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }
}

/// Makes the raw result of a call with these arguments: some `size` bytes of text, and the raw members `inside`.
pub(crate) fn result(arguments: &Value) -> String {
    let size = arguments["size"].as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
    let words = format!("The ä\\n😀 \\u00e4 fox, {{\\\"[ \\/ and so on, {}", "and so forth ".repeat(40));
    let text = words.repeat(size / words.len());
    let inside = arguments["inside"].as_str().unwrap_or_default();
    format!(
        "{{ \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"n\":[-1.50e+3,true,{{\"k\\u0065y\":null}}] ,\"s\":\"\\ud83d\\ude00ä😀\"{inside} }}"
    )
}

/// Serves a connection; `None` when broken under an answer.
async fn serve(mut stream: TcpStream, sent: &AtomicUsize) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") else {
            match stream.read_buf(&mut bytes).await {
                Ok(n) if n > 0 => continue,
                _ => return Some(()),
            }
        };
        let mut body = bytes.split_off(end + 4);
        let head = String::from_utf8(std::mem::take(&mut bytes)).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).map_or(0, |v| v.parse().unwrap());
        while body.len() < length {
            stream.read_buf(&mut body).await.ok().filter(|n| *n > 0)?;
        }
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            stream.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n").await.ok()?;
            continue;
        };
        if message.get("id").is_none() {
            stream.write_all(b"HTTP/1.1 202 Yes\r\ncontent-length: 0\r\n\r\n").await.ok()?;
            continue;
        }
        if !answer(&mut stream, &message, sent).await? {
            return Some(());
        }
    }
}

/// Plan of an answer.
struct Script {
    head: String,
    body: Vec<u8>,
    is_call: bool,
    chunked: bool,
    /// Sends the last chunk.
    ends: bool,
    /// Leaves something out.
    is_cut: bool,
    /// Stops after so many bytes.
    pause: Option<usize>,
    piece: usize,
}

impl Script {
    fn of(message: &Value) -> Self {
        let arguments = &message["params"]["arguments"];
        let number = |key: &str| arguments[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let known = known(message);
        let (is_call, result, id) = (known.is_none(), known.unwrap_or_else(|| result(arguments)), &message["id"]);
        let tail = arguments["tail"].as_str().unwrap_or("}");
        let text = match arguments["order"].as_str() {
            Some("result first") => format!(" {{\"result\": {result} ,\"id\":{id},\"jsonrpc\":\"2.0\"{tail}"),
            _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}{tail}"),
        };
        let is_event = arguments["framing"] == "events";
        let chunked = is_event || arguments["framing"] == "chunked";
        let (kind, text) = if is_event {
            ("text/event-stream", event(message, &text, number("reports").unwrap_or(0)))
        } else {
            ("application/json", text)
        };
        let framing = if chunked { "transfer-encoding: chunked".into() } else { format!("content-length: {}", text.len()) };
        let cut = number("cut");
        let mut body = text.into_bytes();
        body.truncate(body.len() - cut.unwrap_or(0));
        if is_event && cut.is_none() {
            body.extend_from_slice(b"\n\n");
        }
        Self {
            head: format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n"),
            body,
            is_call,
            chunked,
            ends: cut.is_none() || arguments["ends"] == true,
            is_cut: cut.is_some(),
            pause: number("pause"),
            // An odd size, so that nothing ends where a piece does.
            piece: number("piece").unwrap_or(50_021),
        }
    }
}

/// Writes so many reports of progress, and an event without an end.
fn event(message: &Value, text: &str, reports: usize) -> String {
    let token = &message["params"]["_meta"]["progressToken"];
    let report = |n| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}});
    let before: String = (0..reports).map(|n| format!("data: {}\n\n", report(n))).collect();
    format!("{before}event: message\ndata: {}", text.replace('\n', "\ndata: "))
}

/// Answers a request; `true` while the connection stays.
async fn answer(stream: &mut TcpStream, message: &Value, sent: &AtomicUsize) -> Option<bool> {
    let script = Script::of(message);
    stream.write_all(script.head.as_bytes()).await.ok()?;
    let mut gone = 0;
    for piece in script.body.chunks(script.piece) {
        let size = if script.chunked { format!("{:x}\r\n", piece.len()) } else { String::new() };
        let end: &[u8] = if script.chunked { b"\r\n" } else { b"" };
        stream.write_all(&[size.as_bytes(), piece, end].concat()).await.ok()?;
        gone += piece.len();
        if script.is_call {
            sent.fetch_add(piece.len(), Ordering::Relaxed);
        }
        if script.pause.is_some_and(|at| gone >= at) {
            // Somebody may close the connection.
            return stream.read(&mut [0]).await.ok().filter(|n| *n > 0).map(|_| false);
        }
    }
    if script.chunked && script.ends {
        stream.write_all(b"0\r\n\r\n").await.ok()?;
        return Some(true);
    }
    Some(!script.is_cut)
}

/// Makes the result of a request other than a call.
fn known(message: &Value) -> Option<String> {
    let info = json!({"name": "tap", "version": "1"});
    let (capabilities, lasting) = (json!({"tools": {}}), json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}));
    let mut result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": INITIALIZE, "capabilities": capabilities, "serverInfo": info}),
        "server/discover" => json!({"supportedVersions": [STATELESS], "capabilities": capabilities, "serverInfo": info}),
        "tools/list" => json!({"tools": [{"name": "run", "inputSchema": {"type": "object"}}]}),
        "tools/call" => return None,
        _ => json!({}),
    };
    result.as_object_mut()?.extend(lasting.as_object()?.clone());
    Some(result.to_string())
}
