//! Calls of a mount that stands for others: each of those is judged as in a call of its own. The servers here know nothing of devices: they
//! answer with what the gate tells them.

use std::sync::Arc;

use banyan_model::Segment;
use config::resolved::{Config, Mount, MountGroup};
use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{plain, reason};
use crate::world::{Era, World, bounded, parse};

/// A server of the stateless era, whose tools, named by its arguments, all call themselves read-only.
const TELLING: &str = r#"
import json, sys
TOOLS = [{"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for name in sys.argv[1:]]
for line in sys.stdin:
    asked = json.loads(line)
    method, params, result = asked["method"], asked.get("params", {}), {}
    if method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(params.get("_meta", {}).get("io.banyan/refused", {}))}]}
    if "id" in asked:
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// Three servers and `edge`, which stands for them. `core3` does not list the tool of the others.
fn servers(more: &str) -> Config {
    let mount = |name: &str, tool: &str| format!("[mount.{name}]\ncommand = \"python3\"\nargs = [\"-c\", '''{TELLING}''', \"{tool}\"]\n");
    let all = [("edge", "look"), ("core1", "look"), ("core2", "look"), ("core3", "other")].map(|(name, tool)| mount(name, tool));
    let mut config = parse(&format!("{}{more}", all.concat()));
    let segment = |name: &str| Segment::new(name).unwrap();
    let group = MountGroup { members: ["core1", "core2", "core3"].map(segment).to_vec(), argument: "devices" };
    let edge = Mount::clone(&config.mounts[&segment("edge")]);
    config.mounts.insert(segment("edge"), Arc::new(Mount { stands_for: Some(group), is_told_callers: true, ..edge }));
    config
}

/// Members that the gate refuses in a call of `edge`, each with the reason.
async fn refused(more: &str, arguments: Value) -> Vec<(String, String)> {
    let world = World::of_config(tempfile::tempdir().unwrap(), servers(more)).await;
    let told = plain(&world, Era::Stateless).await.tool("edge__look", arguments).await;
    let members: serde_json::Map<String, Value> = serde_json::from_str(text(&told)).unwrap_or_else(|_| panic!("{told}"));
    members.into_iter().map(|(name, said)| (name, said["reason"].as_str().unwrap().to_owned())).collect()
}

fn said(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect()
}

#[tokio::test]
async fn nm_12_a_group_asks_the_mode_of_each_member() {
    bounded(async {
        let gate = "[gate]\nmode = \"irreversible\"\nexpires = \"30s\"\nmounts = { core1 = \"unlisted\", core3 = \"off\" }\n";
        let world = World::of_config(tempfile::tempdir().unwrap(), servers(gate)).await;
        let alone = plain(&world, Era::Stateless).await.tool("core1__look", json!({})).await;
        assert_eq!(reason(&alone), "no_approver", "nobody is there to agree to the call of the member alone");
        assert_eq!(refused(gate, json!({"devices": ["core1"]})).await, said(&[("core1", "gated")]));
        assert_eq!(refused(gate, json!({})).await, said(&[("core1", "gated")]));
        assert_eq!(refused(gate, json!({"devices": ["core2", "core3"]})).await, []);
        let listed = format!("{gate}[mount.core1.tools.look]\nmutable = false\n");
        assert_eq!(refused(&listed, json!({})).await, [], "the configuration lists the tool as read-only");
    })
    .await;
}

#[tokio::test]
async fn nm_12_a_member_without_the_tool_counts_as_the_worst() {
    bounded(async {
        let gate = "[gate]\nmode = \"irreversible\"\nexpires = \"30s\"\n";
        assert_eq!(refused(gate, json!({})).await, said(&[("core3", "gated")]));
        assert_eq!(refused("", json!({})).await, [], "without a mode nobody is asked");
    })
    .await;
}

#[tokio::test]
async fn nm_12_a_group_shows_no_more_than_the_profile() {
    bounded(async {
        let profile = |lists: &str| format!("[profile.few]\nclients = [\"*\"]\n{lists}\n");
        let included = profile("include = [\"edge.*\", \"core2.look\"]");
        assert_eq!(refused(&included, json!({})).await, said(&[("core1", "hidden"), ("core3", "hidden")]));
        assert_eq!(refused(&profile("exclude = [\"core1.*\"]"), json!({})).await, said(&[("core1", "hidden")]));
        assert_eq!(refused(&included, json!({"devices": ["core2"]})).await, []);
    })
    .await;
}

#[tokio::test]
async fn nm_12_a_call_of_a_group_keeps_one_decision() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("policy.cedar");
        std::fs::write(&file, "@id(\"edge\") permit (principal, action, resource == Tool::\"edge.look\");").unwrap();
        let world = World::of_config(dir, servers(&format!("[policy]\nfile = {file:?}\n"))).await;
        let before = world.gateway.decisions(None).len();
        let told = plain(&world, Era::Stateless).await.tool("edge__look", json!({})).await;
        let members: serde_json::Map<String, Value> = serde_json::from_str(text(&told)).unwrap_or_else(|_| panic!("{told}"));
        let kept = world.gateway.decisions(None);
        assert_eq!((members.len(), kept.len() - before), (3, 1), "{told}");
        assert!(members.values().all(|member| member["decision"] == kept[0].id && member["reason"] == "denied"), "{told}");
        assert_eq!(kept[0].inputs["members"], "core1.look: deny, core2.look: deny, core3.look: deny");
    })
    .await;
}

#[tokio::test]
async fn nm_12_no_server_gets_facts_in_a_callers_words() {
    bounded(async {
        let world = World::of_config(tempfile::tempdir().unwrap(), servers("")).await;
        let caller = plain(&world, Era::Stateless).await;
        let claimed = json!({"io.banyan/refused": {"core2": {"reason": "denied"}}, "vendor": 1});
        let answer = caller.call("tools/call", json!({"name": "core1__look", "arguments": {}, "_meta": claimed})).await;
        assert_eq!(text(&answer), "{}");
    })
    .await;
}
