//! Bounds of what a gate holds for those who read nothing, print or list without end, or send too much to the owner's doors. What principals share is
//! tried in `bounds.rs`.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use door::reply;
use mesh::link::{DialTerms, dial};
use runtime::tls::Connector;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::asked::text;
use crate::guests::admin;
use crate::linked::taking;
use crate::plain::greeting;
use crate::world::raw::{Raw, request};
use crate::world::{Client, Era, World, bounded, eventually, parse};

/// A server that lists `pages` pages with `each` tools on each. Its tool `print` writes so many lines of 3,000 characters on standard error, and then
/// the line `over`. Its tool `flood` sends requests and reads nothing until no more of them are taken for a second, or there are 100,000; then a file
/// tells how many were taken.
const ENDLESS: &str = r#"
import json, os, select, sys
pages, each, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def say(m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def flood():
    os.set_blocking(1, False)
    rest, taken = b"", 0
    while taken < 100000 and select.select([], [1], [], 1)[1]:
        rest = rest or b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % taken
        try:
            rest = rest[os.write(1, rest):]
        except BlockingIOError:
            continue
        taken += not rest
    with open(file + ".new", "w") as out:
        out.write(str(taken))
    os.rename(file + ".new", file)
def print_lines(count):
    for at in range(count):
        print(f"{at:05} " + "x" * 3000, file=sys.stderr)
    print("over", file=sys.stderr, flush=True)
names = ["print", "flood"]
for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {})
    if m["method"] == "initialize":
        say({"id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "e", "version": "1"}}})
    elif m["method"] == "tools/list":
        at = int(p.get("cursor", 0))
        names = (["print", "flood"] if at == 0 else []) + [f"t{at}-{n}" for n in range(each)]
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        say({"id": m["id"], "result": {"tools": tools, **({"nextCursor": str(at + 1)} if at + 1 < pages else {})}})
    elif m["method"] == "tools/call" and p["name"] == "flood":
        flood()
    elif m["method"] == "tools/call":
        print_lines(p["arguments"]["lines"])
        say({"id": m["id"], "result": {"content": [{"type": "text", "text": "printed"}]}})
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;

/// A mount with that server.
fn endless(pages: usize, each: usize, file: &std::path::Path) -> String {
    let args = json!(["-c", ENDLESS, pages.to_string(), each.to_string(), file]);
    format!("[mount.e]\ncommand = \"python3\"\nargs = {args}\n")
}

/// Has the server print so many lines.
async fn print(world: &World, lines: usize) {
    let client = Client::ready(world, Era::Stateless).await;
    assert_eq!(text(&client.tool("e__print", json!({"lines": lines})).await), "printed");
}

#[test]
fn unset_bounds_are_those_of_the_table() {
    let limits = parse("").limits;
    assert_eq!((limits.question, limits.tools_per_mount, limits.response_bytes), (Duration::from_secs(3600), 200_000, 64 << 20));
    assert_eq!((limits.parked, limits.listeners, limits.sessions, limits.calls), (10_000, 10_000, 100_000, 4096));
}

/// Copy of the gate's own end of a connection: the gate runs in this process.
fn end_of_gate(client: SocketAddr) -> Option<rustix::fd::OwnedFd> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    fds.filter(|fd| *fd != own.as_raw_fd()).filter_map(|fd| pidfd_getfd(&own, fd, PidfdGetfdFlags::empty()).ok()).find(|fd| {
        let peer = rustix::net::getpeername(fd).ok().and_then(|peer| SocketAddr::try_from(peer?).ok());
        peer == Some(client)
    })
}

#[tokio::test]
async fn m8_a_stuck_client_is_given_up_after_two_minutes() {
    bounded(async {
        let world = World::start("").await;
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        stream.write_all(&request("GET", "/healthz", &[], "")).await.unwrap();
        // What is read shows that the gate has taken the connection.
        stream.read_exact(&mut [0; 12]).await.unwrap();
        let end = end_of_gate(stream.local_addr().unwrap()).unwrap();
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&end).unwrap(), 120_000);
    })
    .await;
}

#[tokio::test]
async fn a_connection_rests_after_a_post_longer_than_elsewhere() {
    bounded(async {
        let world = World::start("").await;
        let (mut posting, mut getting) = (Raw::connect(&world).await, Raw::connect(&world).await);
        let ping = request("POST", "/mcp", &[("accept", "application/json, text/event-stream")], &greeting(1));
        posting.send(&ping).await;
        assert_eq!(posting.reply().await.0, 200);
        getting.send(&request("GET", "/healthz", &[], "")).await;
        assert_eq!(getting.reply().await.0, 200);
        let began = Instant::now();
        assert!(getting.ends().await && began.elapsed() >= Duration::from_secs(29));
        posting.send(&ping).await;
        assert_eq!(posting.reply().await.0, 200);
    })
    .await;
    assert_eq!(door::connections::IDLE, Duration::from_secs(600));
}

#[tokio::test]
async fn the_owners_bodies_are_bounded_in_bytes_and_time() {
    bounded(async {
        let world = World::start("").await;
        let (token, _published) = admin(&world);
        let post = |path: &str, length: usize, body: &str| {
            let fields = format!("authorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {length}");
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{fields}\r\n\r\n{body}").into_bytes()
        };
        let answer = async |sent: Vec<u8>| {
            let (mut reading, mut writing) = TcpStream::connect(world.addr).await.unwrap().into_split();
            // The gate may answer before all is sent.
            let sending = tokio::spawn(async move {
                drop(writing.write_all(&sent).await);
                writing
            });
            let mut answer = Vec::new();
            drop(reading.read_to_end(&mut answer).await);
            drop(sending.await);
            String::from_utf8_lossy(&answer).into_owned()
        };
        for path in ["/-/call", "/-/trace"] {
            let fits = format!("\"{}\"", "x".repeat((16 << 20) - 2));
            let told = answer(post(path, fits.len(), &fits)).await;
            assert!(told.contains("the request is not"), "{path} {told}");
            let long = format!("{fits} ");
            let told = answer(post(path, long.len(), &long)).await;
            assert!(!told.contains("the request is not"), "{path} {told}");
        }
        // Each ends: nothing more comes of its body.
        tokio::join!(answer(post("/-/call", 1000, "{")), answer(post("/-/trace", 1000, "{")));
    })
    .await;
}

#[tokio::test]
async fn fifty_cut_lines_of_standard_error_are_kept() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let world = World::start(&endless(1, 1, &dir.path().join("taken"))).await;
        print(&world, 60).await;
        let lines = eventually(async || world.gateway.stderr("e").filter(|lines| lines.last().is_some_and(|last| last == "over"))).await;
        assert_eq!((lines.len(), lines[0].len(), &lines[0][..6]), (50, 2000, "00011 "));
    })
    .await;
}

#[tokio::test]
async fn a_slow_log_reader_hears_what_is_missing() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let world = World::start(&endless(1, 1, &dir.path().join("taken"))).await;
        let (token, _published) = admin(&world);
        // Little room on the way, so that what waits is with the gate.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        let mut stream = socket.connect(world.addr).await.unwrap();
        let path = "/-/logs/e?follow=true";
        stream.write_all(&request("GET", path, &[("authorization", &format!("Bearer {token}"))], "")).await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        print(&world, 8000).await;
        eventually(async || world.gateway.stderr("e").filter(|lines| lines.last().is_some_and(|last| last == "over"))).await;
        let (mut lines, mut whole, mut left_out) = (BufReader::new(stream).lines(), 0, 0);
        while let Some(line) = lines.next_line().await.unwrap() {
            let count = line.split_once("\"(").and_then(|(_, rest)| rest.split_once(" lines left out")).map(|(count, _)| count);
            left_out += count.map_or(0, |count| count.parse::<usize>().unwrap());
            whole += usize::from(line.contains(" xxx"));
            if line.contains("\"over\"") {
                break;
            }
        }
        assert_eq!(whole + left_out, 8000);
        // The most that a socket keeps for a reader, and the lines behind it.
        assert!(whole < (8 << 20) / 2000, "{whole} lines were kept for the reader");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_takes_no_answers_is_not_read() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taken");
        let world = World::start(&endless(1, 1, &file)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let counted = eventually(async || std::fs::read_to_string(&file).ok()?.parse::<usize>().ok());
        tokio::pin!(counted);
        // The server ends once it has written its count: the call may be told before the file is seen.
        let taken = tokio::select! {
            biased;
            taken = &mut counted => taken,
            failure = client.tool("e__flood", json!({})) => {
                assert_eq!(failure["error"]["code"], -32004, "{failure}");
                counted.await
            }
        };
        // Beside the bound, what fits into the two pipes of the process.
        assert!((1024..8000).contains(&taken), "{taken}");
    })
    .await;
}

/// A request to register, over a link, of a server that says nothing when it is asked about itself.
fn register(number: usize) -> Vec<u8> {
    let id = format!("00000000-0000-4000-9000-{number:012x}");
    json!({"subserver_id": id, "segment": format!("s{number}"), "heartbeat_interval_ms": 0, "version": "2026-05-01"})
        .to_string()
        .into_bytes()
}

#[tokio::test]
async fn one_link_has_256_requests_under_way_at_most() {
    bounded(async {
        let world = World::start(&taking()).await;
        let (url, limit) = (format!("http://{}", world.addr).parse().unwrap(), Duration::from_secs(30));
        let wanted = DialTerms { url: &url, token: None, tls: None, insecure: false, beat: Duration::ZERO, limit };
        let service = |_| async { reply::empty(http::StatusCode::NOT_FOUND).into_http() };
        let mut link = dial(&Connector::new(), &wanted, service).await.unwrap();
        // What the gate asks is read, and never answered: so each registration waits for some time.
        tokio::spawn(async move { while link.said.recv().await.is_some() {} });
        // Nobody is registered under it, so that it is answered as soon as it is read.
        let unknown = || link.control.ask("mcpax/heartbeat", br#"{"session_id":"0123456789abcdef"}"#);
        let mut waiting: Vec<_> = (0..128).map(|number| link.control.ask("mcpax/register", &register(number))).collect();
        unknown().await.unwrap();
        waiting.extend((128..256).map(|number| link.control.ask("mcpax/register", &register(number))));
        unknown().await.unwrap();
        let answered = waiting.iter_mut().filter_map(|answer| answer.try_recv().ok()).count();
        assert!(answered > 0, "one more was read while 256 were under way");
    })
    .await;
}

#[tokio::test]
async fn long_lists_are_cut_with_a_note() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let toml = |pages, each| endless(pages, each, &dir.path().join("taken"));
        let world = World::start(&format!("[limits]\ntools_per_mount = 7\n{}", toml(4, 3))).await;
        let mount = world.mount("e").unwrap();
        assert_eq!(mount.tools, 7);
        assert!(mount.notes.iter().any(|note| note.contains("more than 7 entries")), "{:?}", mount.notes);
        let world = World::start(&toml(usize::MAX, 0)).await;
        let mount = world.mount("e").unwrap();
        assert_eq!((mount.tools, mount.state.as_str()), (2, "ready"));
        assert!(mount.notes.iter().any(|note| note.contains("more than 10000 pages")), "{:?}", mount.notes);
    })
    .await;
}
