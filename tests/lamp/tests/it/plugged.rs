//! A family from outside, in a whole gate: its section is read, its mount answers calls of the one way, its door serves, and a changed file
//! changes it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::secret::SystemSources;
use disk::journal::archive::Archive;
use disk::journal::index::Search;
use gateway::admin::shapes::AuditEntry;
use gateway::parts::PartList;
use gateway::{Gateway, ReloadOutcome};
use lamp::LampPart;
use runtime::worker::Workers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const HALL: &str = "[lamp.hall]\nline = \"hall-1\"\n";

fn parts() -> PartList {
    PartList::default().with(LampPart)
}

/// Sends one request, and reads the answer: the status, and the body.
async fn send(addr: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nHost: {addr}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Calls a tool as a client of the stateless era does.
async fn call(addr: SocketAddr, tool: &str, arguments: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}"
    );
    let (status, body) = send(addr, &head, &body).await;
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{status} {body}: {error}"))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn a_family_from_outside_is_configured_called_recorded_and_reloaded() {
    tokio::time::timeout(Duration::from_secs(60), whole()).await.expect("the test took too long");
}

/// A gate with lamps that serves on a free port.
struct World {
    gateway: Gateway,
    addr: SocketAddr,
    file: PathBuf,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    dir: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("banyan.toml");
        std::fs::write(&file, format!("[gate]\nmode = \"mutable\"\n{}{HALL}", audit(&dir))).unwrap();
        let config = parts().sections().load(&file, &SystemSources).unwrap();
        let gateway = Gateway::assemble(&parts(), config, dir.path().join("state"), Some(&file));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn(gateway.serve_http(listener, stop.clone(), Workers::default()));
        assert!(gateway.settled(Duration::from_secs(30)).await, "{:?}", gateway.status());
        Self { gateway, addr, file, stop, serving, dir }
    }

    async fn lamps(&self) -> Value {
        serde_json::from_str(&send(self.addr, "GET /lamps HTTP/1.1", "").await.1).unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        call(self.addr, tool, &arguments).await
    }

    /// Reads a changed file; the changes, in the order of the alphabet.
    async fn reload(&self, lamp: &str) -> Vec<String> {
        std::fs::write(&self.file, format!("{}{lamp}", audit(&self.dir))).unwrap();
        let ReloadOutcome::Applied(changes) = self.gateway.reload(&self.file, None) else { panic!("the changed file is not in force") };
        assert!(self.gateway.settled(Duration::from_secs(30)).await);
        let mut changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        changes.sort();
        changes
    }

    /// Ends the gate, and reads the record.
    async fn recorded(self) -> Vec<AuditEntry> {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.gateway.shutdown().await;
        let archive = Archive::open(&self.dir.path().join("record")).unwrap();
        let entries = archive.search(&Search { limit: 100, ..Search::default() }).unwrap();
        entries.iter().rev().map(gateway::admin::audit::shown).collect()
    }
}

fn audit(dir: &tempfile::TempDir) -> String {
    format!("[audit]\npath = {:?}\n", dir.path().join("record"))
}

/// Reads and calls; what changes something is for somebody to agree to.
async fn calls_pass_the_gate(world: &World) {
    assert_eq!(world.lamps().await, json!({"hall": {"lit": false, "colour": "Amber"}}));
    assert_eq!(text(&world.call("hall__state", json!({})).await), "hall-1 is dark");
    let held = world.call("hall__switch", json!({"on": true})).await;
    assert_eq!(held["error"]["data"]["reason"], "no_approver", "the gate keeps what somebody has to agree to: {held}");
    assert_eq!(world.lamps().await["hall"]["lit"], false, "the bus has heard nothing");
}

async fn whole() {
    let world = World::start().await;
    calls_pass_the_gate(&world).await;
    assert_eq!(world.reload(&format!("{HALL}colour = \"green\"\n")).await, ["~ approvals", "~ mount hall: colour"]);
    assert_eq!(text(&world.call("hall__switch", json!({"on": true})).await), "hall-1 is lit (Green)");
    assert_eq!(world.lamps().await, json!({"hall": {"lit": true, "colour": "Green"}}));

    let entries = world.recorded().await;
    let count = |route: &str, outcome: &str| {
        let is_one = |entry: &&AuditEntry| entry.route.as_deref() == Some(route) && entry.outcome.as_deref() == Some(outcome);
        entries.iter().filter(is_one).count()
    };
    assert_eq!((count("hall.state", "done"), count("hall.switch", "done")), (1, 1), "{entries:?}");
    assert_eq!(count("hall__switch", "refused: no_approver"), 1, "{entries:?}");
}

#[tokio::test]
async fn a_gate_without_the_part_names_the_kinds_that_it_opens() {
    let state = tempfile::tempdir().unwrap();
    let config = parts().sections().parse(HALL, Path::new("banyan.toml"), &SystemSources).unwrap();
    let gateway = Gateway::assemble(&PartList::default(), config, state.path().to_owned(), None);
    let why = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if let Some(why) = gateway.status().into_iter().find_map(|mount| mount.error) {
                return why;
            }
            gateway.changed().await;
        }
    });
    let why = why.await.expect("the mount fails");
    assert!(why.contains("`lamp`") && why.contains("command, url, rooms"), "{why}");
    gateway.shutdown().await;
}

#[test]
fn an_unknown_section_and_a_mount_without_a_way_name_the_known_kinds() {
    let refused = |text: &str| parts().sections().parse(text, Path::new("banyan.toml"), &SystemSources).unwrap_err().to_string();
    let unknown = refused("[thermostat.hall]\nline = \"1\"\n");
    assert!(unknown.contains("unknown key `thermostat`") && unknown.contains("lamp") && unknown.contains("mount"), "{unknown}");
    assert!(refused("[lmap.hall]\nline = \"1\"\n").contains("did you mean `lamp`?"));
    let neither = refused("[mount.hall]\n");
    assert!(neither.contains("`command`") && neither.contains("`url`") && neither.contains("[lamp.NAME]"), "{neither}");
    let taken = refused(&format!("[mount.hall]\ncommand = \"x\"\n{HALL}"));
    assert!(taken.contains("another section has mounted a server as `hall`"), "{taken}");
    let without = PartList::default().sections().parse(HALL, Path::new("banyan.toml"), &SystemSources).unwrap_err().to_string();
    assert!(without.contains("unknown key `lamp`"), "{without}");
}

#[test]
fn a_lamp_sits_in_a_room_like_every_mount() {
    let text = format!("{HALL}[room.ops]\nseats = [\"hall\"]\n");
    parts().sections().parse(&text, Path::new("banyan.toml"), &SystemSources).unwrap();
}
