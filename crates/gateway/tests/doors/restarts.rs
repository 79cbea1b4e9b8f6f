//! A server that dies under its calls: news for the callers, and the return. Others do not notice.

use serde_json::json;

use crate::world::{Client, Era, World, bounded, fixture};

/// A server of the initialize era that dies with a word when its tool is called, and comes back as soon as the file named in the argument
/// exists.
pub(crate) const DYING: &str = r#"
import json, os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "dying", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("die", "live")]}
    elif m["method"] == "tools/call" and m["params"]["name"] == "die":
        print("out of cheese", file=sys.stderr, flush=True)
        sys.exit(3)
    elif m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": "alive"}]}
    else:
        r = None
    if "id" in m:
        end = {"result": r} if r is not None else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **end}), flush=True)
"#;

#[tokio::test]
async fn a_dead_server_is_degraded_returns_and_is_counted() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let leave = dir.path().join("leave to come back");
        std::fs::write(&leave, "").unwrap();
        let dying = format!("[mount.dying]\ncommand = \"python3\"\nargs = {}\nera = \"initialize\"\n", json!(["-c", DYING, leave]));
        let world = World::start(&format!("{dying}{}", fixture("well", Era::Stateless))).await;
        for (era, times) in [(Era::Initialize, 1), (Era::Stateless, 2)] {
            let client = Client::ready(&world, era).await;
            std::fs::remove_file(&leave).unwrap();
            let told = client.tool("dying__die", json!({})).await;
            let data = &told["error"]["data"];
            assert_eq!(
                (&told["error"]["code"], &data["reason"], &data["server"]),
                (&json!(-32004), &json!("outcome_unknown"), &json!("dying"))
            );
            assert!(data["hint"].as_str().unwrap().contains("not known"), "{told}");

            let down = world.until("dying", |m| m.state == "degraded").await;
            assert!(down.error.unwrap().contains("out of cheese") && down.next_try.is_some());
            assert!(client.tools().await.contains(&"dying__live".to_owned()), "its tools stay listed meanwhile");
            assert!(client.tool("well__fx_echo", json!({"text": "x"})).await.get("result").is_some());

            std::fs::write(&leave, "").unwrap();
            let up = world.until("dying", |m| m.state == "ready").await;
            assert_eq!((up.restarts, up.error), (times, None));
            assert_eq!(client.tool("dying__live", json!({})).await["result"]["content"][0]["text"], "alive");
        }
        assert_eq!(world.mount("well").unwrap().restarts, 0);
    })
    .await;
}

#[tokio::test]
async fn a_server_failing_to_start_leaves_others_alone() {
    bounded(async {
        let broken = "[mount.broken]\ncommand = \"python3\"\nargs = [\"-c\", \"raise SystemExit('no licence')\"]\n";
        let world = World::start(&format!("{broken}{}", fixture("well", Era::Stateless))).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let told = client.tool("broken__anything", json!({})).await;
        assert_eq!(told["error"]["data"]["reason"], "subserver_unreachable", "{told}");
        assert!(told["error"]["message"].as_str().unwrap().ends_with("the process ended with exit code 1"), "{told}");
        assert!(told["error"]["data"]["retry_after_ms"].is_u64(), "{told}");
        let shown = world.mount("broken").unwrap();
        assert!(shown.state == "failed" && shown.error.unwrap().contains("no licence"));
        assert!(client.tool("well__fx_echo", json!({"text": "x"})).await.get("result").is_some());
    })
    .await;
}
