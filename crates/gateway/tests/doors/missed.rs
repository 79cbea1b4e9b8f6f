//! Lists that change unnoticed, between the first look and the moment from which a server tells of changes.

use serde_json::json;

use crate::linked::listed;
use crate::world::{Client, Era, World, bounded, eventually};

/// A server of the stateless era whose tools change once, in silence: when agreeing to tell of changes. Agrees when asked (`soon`), or
/// after the first list of tools (`late`).
const CHANGING: &str = r#"
import json, sys
late, tools, waiting = sys.argv[1] == "late", ["before"], None
def say(m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def answer(m, **result):
    say({"id": m["id"], "result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}})
def agree(m):
    tools[:] = ["after"]
    meta = {"io.modelcontextprotocol/subscriptionId": m["id"]}
    say({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": {"toolsListChanged": True}, "_meta": meta}})
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "server/discover":
        about = {"io.modelcontextprotocol/serverInfo": {"name": "changing", "version": "1"}}
        answer(m, supportedVersions=["2026-07-28"], capabilities={"tools": {"listChanged": True}}, _meta=about)
    elif m["method"] == "tools/list":
        answer(m, tools=[{"name": name, "inputSchema": {"type": "object"}} for name in tools])
        if waiting:
            waiting = agree(waiting)
    elif m["method"] == "subscriptions/listen" and late and tools == ["before"]:
        waiting = m
    elif m["method"] == "subscriptions/listen":
        agree(m)
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;

#[tokio::test]
async fn ax_03_a_change_before_the_acknowledgement_is_not_missed() {
    for agrees in ["soon", "late"] {
        bounded(async {
            let args = json!(["-c", CHANGING, agrees]);
            // What is tried is when lists are fetched, not which definitions wait.
            let world = World::start(&format!("[pins]\nmode = \"trust\"\n[mount.n]\ncommand = \"python3\"\nargs = {args}\n")).await;
            let client = Client::ready(&world, Era::Stateless).await;
            listed(&client, "n__after").await;
        })
        .await;
    }
}

/// A server of the stateless era that tells nobody of changes, and lists a tool named after the number of list requests. The argument says
/// how long lists are good. With a second argument the server agrees to tell, but of `nothing`, or without saying of what (`silent`), or
/// for which stream either (`untagged`).
const COUNTING: &str = r#"
import json, sys
asked = 0
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    result, about = {"resultType": "complete", "ttlMs": int(sys.argv[1]), "cacheScope": "private"}, {"name": "counting", "version": "1"}
    if m["method"] == "server/discover":
        result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}, "_meta": {"io.modelcontextprotocol/serverInfo": about}}
    elif m["method"] == "subscriptions/listen" and len(sys.argv) > 2:
        params = {"notifications": {}, "_meta": {"io.modelcontextprotocol/subscriptionId": m["id"]}}
        for left_out in {"silent": ["notifications"], "untagged": ["notifications", "_meta"]}.get(sys.argv[2], []):
            del params[left_out]
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}), flush=True)
        continue
    elif m["method"] == "tools/list":
        asked += 1
        result["tools"] = [{"name": f"asked_{asked}", "inputSchema": {"type": "object"}}]
    else:
        result = None
    end = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **end}), flush=True)
"#;

#[tokio::test]
async fn ax_03_a_silent_servers_lists_are_fetched_when_stale() {
    bounded(async {
        let mount = |name: &str, arguments: &[&str]| {
            let arguments = [&["-c", COUNTING], arguments].concat();
            format!("[mount.{name}]\ncommand = \"python3\"\nargs = {}\n", json!(arguments))
        };
        let agreeing = ["nothing", "silent", "untagged"].map(|how| mount(how, &["0", how])).concat();
        let [short, long] = [("short", "0"), ("long", "3600000")].map(|(name, good_for)| mount(name, &[good_for]));
        let world = World::start(&format!("[pins]\nmode = \"trust\"\n{short}{long}{agreeing}")).await;
        let client = Client::ready(&world, Era::Stateless).await;
        // Each list shows one tool until the next look. So a look may be over before anybody sees what it brought, and a later one counts.
        for name in ["short", "nothing", "silent", "untagged"] {
            let start = format!("{name}__asked_");
            let looks = async || client.tools().await.iter().filter_map(|tool| tool.strip_prefix(&start)?.parse::<u32>().ok()).max();
            eventually(async || looks().await.filter(|looks| *looks >= 4)).await;
        }
        listed(&client, "long__asked_1").await;
    })
    .await;
}
