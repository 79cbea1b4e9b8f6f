//! Gates that register with a parent and are called over their own link; and calls under way when a link breaks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::asked::text;
use crate::world::cable::Cable;
use crate::world::raw::{Raw, request};
use crate::world::tap::Tap;
use crate::world::{Client, Era, World, bounded, eventually, fixture};

const BEAT: Duration = Duration::from_millis(400);

/// A server that notes each call in a file, and answers as soon as another file exists. Only a single tool may be called twice.
const NOTING: &str = r#"
import json, os, sys, threading, time
notes, go = sys.argv[1:3]
lock = threading.Lock()
def say(m):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def call(m):
    with open(notes, "a") as f:
        f.write(m["params"]["name"] + "\n")
    while not os.path.exists(go):
        time.sleep(0.01)
    say({"id": m["id"], "result": {"content": [{"type": "text", "text": "done"}]}})
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        say({"id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "noting", "version": "1"}}})
    elif m["method"] == "tools/list":
        hints = {"once": {"idempotentHint": False}, "often": {"idempotentHint": True}}
        say({"id": m["id"], "result": {"tools": [{"name": n, "inputSchema": {"type": "object"}, "annotations": h} for n, h in hints.items()]}})
    elif m["method"] == "tools/call":
        threading.Thread(target=call, args=(m,), daemon=True).start()
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;

/// Configures a gate that takes registrations.
pub(crate) fn taking() -> String {
    "[registry]\nprincipals = [\"*\"]\ntrust_gates = true\nproof = \"never\"\n".to_owned()
}

/// Configures a gate that registers as `segment` with parents at these addresses.
pub(crate) fn joining(segment: &str, parents: &[std::net::SocketAddr]) -> String {
    let parents: String = parents.iter().map(|addr| format!("[[parent]]\nurl = \"http://{addr}\"\n")).collect();
    format!("[node]\nsegment = \"{segment}\"\nheartbeat = \"{}ms\"\n{parents}", BEAT.as_millis())
}

/// Gives the state of a gate at parent number `at`.
pub(crate) fn stands(gate: &World, at: usize) -> String {
    gate.gateway.joined().map(|joined| joined.parents[at].state.clone()).unwrap_or_default()
}

pub(crate) async fn registered(gate: &World, at: usize) {
    eventually(async || (stands(gate, at) == "registered").then_some(())).await;
}

pub(crate) async fn listed(client: &Client, name: &str) {
    eventually(async || client.tools().await.iter().any(|tool| tool == name).then_some(())).await;
}

pub(crate) async fn unlisted(client: &Client, name: &str) {
    eventually(async || (!client.tools().await.iter().any(|tool| tool == name)).then_some(())).await;
}

#[tokio::test]
async fn ax_20_a_dialling_gate_is_called_over_its_link() {
    bounded(async {
        let root = World::start(&taking()).await;
        let middle = World::member(&format!("{}{}", taking(), joining("mid", &[root.addr]))).await;
        let leaf = World::member(&format!("{}{}", fixture("fx", Era::Initialize), joining("leaf", &[middle.addr]))).await;
        registered(&leaf, 0).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&root, era).await;
            listed(&client, "mid__leaf__fx__fx_echo").await;
            assert_eq!(text(&client.tool("mid__leaf__fx__fx_echo", json!({"text": "deep"})).await), "deep");
            let steps = json!({"name": "mid__leaf__fx__fx_sleep", "arguments": {"ms": 40, "steps": 2}, "_meta": {"progressToken": "mine"}});
            let (before, _) = client.whole("tools/call", steps).await;
            assert_eq!(before.iter().filter(|m| m["params"]["progressToken"] == "mine").count(), 2, "{before:?}");
            let read = client.call("resources/read", json!({"uri": "test://static-text"})).await;
            assert!(read["result"]["contents"].is_array(), "{read}");
        }
        let mount = root.mount("mid").unwrap();
        assert!(mount.gate && mount.state == "ready" && mount.transport == "link", "{mount:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_21_a_gate_shows_its_budget_at_the_parent() {
    bounded(async {
        let root = World::start(&format!("{}[budget.all]\nmax_calls_per_minute = 900\n", taking())).await;
        let leaf = World::member(&joining("leaf", &[root.addr])).await;
        registered(&leaf, 0).await;
        let budget = leaf.gateway.joined().unwrap().parents[0].budget.clone();
        assert_eq!(budget.into_iter().collect::<Vec<_>>(), [("max_calls_per_minute".to_owned(), 900)]);
    })
    .await;
}

#[tokio::test]
async fn ax_04_gates_hear_of_an_unknown_method() {
    bounded(async {
        let root = World::start(&format!("{}{}", taking(), fixture("fx", Era::Stateless))).await;
        for era in [Era::Initialize, Era::Stateless] {
            let plain = Client::ready(&root, era).await;
            let mut mesh = Client::new(&root, era);
            let ids = json!({"io.banyan/mcpax": {}});
            mesh.capabilities = json!({"extensions": ids, "experimental": ids});
            let mesh = mesh.open().await;
            for (client, code) in [(&plain, -32602), (&mesh, -32601)] {
                let told = client.tool("fx__nothing", json!({})).await;
                assert_eq!((&told["error"]["code"], &told["error"]["data"]["reason"]), (&json!(code), &json!("unknown_tool")), "{told}");
                assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "on"})).await), "on", "the connection goes on");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_03_a_change_behind_links_reaches_the_top() {
    bounded(async {
        let root = World::start(&taking()).await;
        let leaf = World::member(&format!("{}{}", fixture("fx", Era::Stateless), joining("leaf", &[root.addr]))).await;
        let client = Client::ready(&root, Era::Initialize).await;
        listed(&client, "leaf__fx__fx_echo").await;
        leaf.apply(&format!("{}{}", fixture("fy", Era::Stateless), joining("leaf", &[root.addr])));
        listed(&client, "leaf__fy__fx_echo").await;
        unlisted(&client, "leaf__fx__fx_echo").await;
    })
    .await;
}

#[tokio::test]
async fn ax_23_a_leaving_gate_hides_tools_and_finishes_calls() {
    bounded(async {
        let root = World::start(&taking()).await;
        let leaf = World::member(&format!("{}{}", fixture("fx", Era::Stateless), joining("leaf", &[root.addr]))).await;
        let client = Client::ready(&root, Era::Stateless).await;
        listed(&client, "leaf__fx__fx_echo").await;
        let call = client.tool("leaf__fx__fx_sleep", json!({"ms": 600, "steps": 1}));
        let leave = async {
            eventually(async || (root.mount("leaf").is_some_and(|m| m.in_flight == 1)).then_some(())).await;
            leaf.apply(&fixture("fx", Era::Stateless));
            unlisted(&client, "leaf__fx__fx_echo").await;
        };
        let (told, ()) = tokio::join!(call, leave);
        assert!(told.get("result").is_some(), "{told}");
        assert!(root.mount("leaf").is_none() && leaf.gateway.joined().is_none());
    })
    .await;
}

#[tokio::test]
async fn ax_27_a_refused_gate_tells_reason_remedy_and_next_try() {
    bounded(async {
        let root = World::start(&format!("{}{}", taking(), fixture("leaf", Era::Stateless))).await;
        let leaf = World::member(&joining("leaf", &[root.addr])).await;
        let joined = eventually(async || leaf.gateway.joined().filter(|j| j.parents[0].state == "refused" && j.next_try.is_some())).await;
        let (error, hint) = (joined.parents[0].error.clone().unwrap(), joined.parents[0].hint.clone().unwrap());
        assert!(error.contains("namespace_conflict") && hint.contains("choose another segment"), "{error} {hint}");
        let nowhere = World::member(&joining("leaf", &["127.0.0.1:1".parse().unwrap()])).await;
        eventually(async || (stands(&nowhere, 0) == "unreachable").then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn ax_26_a_restarted_parent_gets_the_tree_back() {
    bounded(async {
        let root = World::start(&taking()).await;
        let cable = Cable::to(root.addr).await;
        let leaf = World::member(&format!("{}{}", fixture("fx", Era::Stateless), joining("leaf", &[cable.addr]))).await;
        listed(&Client::ready(&root, Era::Stateless).await, "leaf__fx__fx_echo").await;
        let addr = root.addr;
        root.end().await;
        eventually(async || (stands(&leaf, 0) != "registered").then_some(())).await;
        leaf.apply(&format!("{}{}", fixture("fy", Era::Stateless), joining("leaf", &[cable.addr])));
        let root = World::start_on(&taking(), addr).await;
        registered(&leaf, 0).await;
        let client = Client::ready(&root, Era::Stateless).await;
        listed(&client, "leaf__fy__fx_echo").await;
        assert!(!client.tools().await.contains(&"leaf__fx__fx_echo".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn ax_62_a_backup_parent_stands_in_until_the_first_returns() {
    bounded(async {
        let (first, second) = (World::start(&taking()).await, World::start(&taking()).await);
        let cable = Cable::to(first.addr).await;
        let leaf = World::member(&format!("{}{}", fixture("fx", Era::Stateless), joining("leaf", &[cable.addr, second.addr]))).await;
        registered(&leaf, 0).await;
        let (up, backup) = (Client::ready(&first, Era::Stateless).await, Client::ready(&second, Era::Stateless).await);
        listed(&up, "leaf__fx__fx_echo").await;
        assert_eq!(stands(&leaf, 1), "idle");

        cable.silence();
        registered(&leaf, 1).await;
        listed(&backup, "leaf__fx__fx_echo").await;
        eventually(async || {
            let told = up.tool("leaf__fx__fx_echo", json!({"text": "x"})).await;
            (told["error"]["code"] == -32002).then_some(())
        })
        .await;

        // The cable is whole again for whoever dials anew.
        cable.cut();
        registered(&leaf, 0).await;
        assert_eq!(
            text(
                &eventually(
                    async || Some(up.tool("leaf__fx__fx_echo", json!({"text": "back"})).await).filter(|t| t.get("result").is_some())
                )
                .await
            ),
            "back"
        );
        unlisted(&backup, "leaf__fx__fx_echo").await;
    })
    .await;
}

struct LinkedGates {
    root: World,
    leaf: World,
    cable: Cable,
    dir: tempfile::TempDir,
}

impl LinkedGates {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = World::start(&taking()).await;
        let cable = Cable::to(root.addr).await;
        let args = json!(["-c", NOTING, dir.path().join("notes"), dir.path().join("go")]);
        let mount = format!("[mount.n]\ncommand = \"python3\"\nargs = {args}\nera = \"initialize\"\n");
        let leaf = World::member(&format!("{mount}{}", joining("leaf", &[cable.addr]))).await;
        listed(&Client::ready(&root, Era::Stateless).await, "leaf__n__often").await;
        Self { root, leaf, cable, dir }
    }

    /// Counts the calls noted by the server.
    fn noted(&self) -> usize {
        std::fs::read_to_string(self.dir.path().join("notes")).unwrap_or_default().lines().count()
    }

    fn go(&self) {
        std::fs::write(self.dir.path().join("go"), "").unwrap();
    }

    async fn noted_at_least(&self, count: usize) {
        eventually(async || (self.noted() >= count).then_some(())).await;
    }
}

#[tokio::test]
async fn a_call_under_way_ends_unknown_with_the_link() {
    bounded(async {
        let world = LinkedGates::start().await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world.root, era).await;
            let before = world.noted();
            let cut = async {
                world.noted_at_least(before + 1).await;
                world.cable.cut();
            };
            let (told, ()) = tokio::join!(client.tool("leaf__n__once", json!({})), cut);
            let data = &told["error"]["data"];
            assert_eq!((&data["reason"], &told["error"]["code"]), (&json!("outcome_unknown"), &json!(-32004)), "{told}");
            assert!(data["hint"].as_str().unwrap().contains("not known"), "{told}");
            registered(&world.leaf, 0).await;
            eventually(async || world.root.mount("leaf").filter(|m| m.state == "ready")).await;
            assert_eq!(world.noted(), before + 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_repeatable_call_is_repeated_over_the_next_link() {
    bounded(async {
        let world = LinkedGates::start().await;
        let client = Client::ready(&world.root, Era::Stateless).await;
        let cut = async {
            world.noted_at_least(1).await;
            world.cable.cut();
            world.noted_at_least(2).await;
            world.go();
        };
        let (told, ()) = tokio::join!(client.tool("leaf__n__often", json!({})), cut);
        assert_eq!((text(&told), world.noted()), ("done", 2));
    })
    .await;
}

#[tokio::test]
async fn a_repeatable_call_is_not_made_a_third_time() {
    bounded(async {
        let world = LinkedGates::start().await;
        let client = Client::ready(&world.root, Era::Stateless).await;
        let cut = async {
            for count in 1..=2 {
                world.noted_at_least(count).await;
                world.cable.cut();
            }
        };
        let (told, ()) = tokio::join!(client.tool("leaf__n__often", json!({})), cut);
        assert_eq!((&told["error"]["data"]["reason"], world.noted()), (&json!("outcome_unknown"), 2), "{told}");
    })
    .await;
}

#[tokio::test]
async fn an_unsent_call_waits_for_the_next_link() {
    bounded(async {
        let world = LinkedGates::start().await;
        world.go();
        let client = Client::ready(&world.root, Era::Stateless).await;
        for round in 0..5 {
            let before = world.noted();
            world.cable.cut();
            let told = client.tool("leaf__n__once", json!({})).await;
            let made = world.noted() - before;
            match told["error"]["code"].as_i64() {
                None => assert_eq!((text(&told), made), ("done", 1), "{round}: {told}"),
                Some(-32002) => assert_eq!(made, 0, "{round}: {told}"),
                // It had left when the end was not seen yet.
                Some(-32004) => assert!(made <= 1, "{round}: {told}"),
                Some(_) => panic!("{told}"),
            }
            eventually(async || world.root.mount("leaf").filter(|m| m.state == "ready")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_result_broken_with_the_link_never_ends() {
    bounded(async {
        let (root, tap) = (World::start(&taking()).await, Tap::start(Era::Stateless).await);
        let cable = Cable::to(root.addr).await;
        let table = tap.table().replace("timeout = \"1s\"", "timeout = \"30s\"");
        let leaf = World::member(&format!("{table}{}", joining("leaf", &[cable.addr]))).await;
        registered(&leaf, 0).await;
        let client = Client::ready(&root, Era::Stateless).await;
        listed(&client, "leaf__up__run").await;
        let whole = client.tool("leaf__up__run", json!({"size": 3 << 20})).await;
        assert!(text(&whole).len() > 2 << 20);

        let mut raw = Raw::connect(&root).await;
        let body = call("leaf__up__run", &json!({"size": 8 << 20, "pause": 4 << 20}));
        raw.send(&request("POST", "/mcp", &stateless("leaf__up__run"), &body)).await;
        let answer = raw.begin().await;
        assert_eq!(answer.head.status(), 200);
        eventually(async || (tap.sent() >= 4 << 20).then_some(())).await;
        cable.cut();
        let came = raw.broken(answer).await.expect("half a result was taken for one");
        assert!(serde_json::from_slice::<Value>(&came).is_err());
    })
    .await;
}

fn call(tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}}).to_string()
}

fn stateless(tool: &str) -> Vec<(&str, &str)> {
    vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ]
}

#[tokio::test]
async fn a_parent_gets_only_mcp_over_its_link() {
    bounded(async {
        let root = World::start(&taking()).await;
        let mut raw = Raw::connect(&root).await;
        raw.send(&request("GET", "/link", &[], "")).await;
        let (status, _, body) = raw.reply().await;
        assert!(status == 426 && body.contains("Upgrade: mcpax"), "{status} {body}");
        let locked = World::start(&format!("{}{}", taking(), crate::world::token("edge"))).await;
        let leaf = World::member(&joining("leaf", &[locked.addr])).await;
        let told = eventually(async || leaf.gateway.joined().filter(|j| j.parents[0].state == "unreachable")).await;
        let error = told.parents[0].error.clone().unwrap();
        assert!(error.contains("401") && error.contains("banyan token add"), "{error}");
        let secret = format!("{}token = \"secret-of-edge\"\n", joining("leaf", &[locked.addr]));
        let leaf = World::member(&secret).await;
        registered(&leaf, 0).await;
    })
    .await;
}
