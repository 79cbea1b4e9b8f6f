//! Servers of the initialize era that tell nobody of changed lists.

use serde_json::json;

use crate::registered::SELDOM;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, eventually};

#[tokio::test]
async fn ax_03_lists_without_announcements_are_fetched_again() {
    bounded(async {
        let silent = json!({"tools": [reads("ping")], "capabilities": {"tools": {}}});
        let (mounted, registered) =
            (Registrant::offering(Era::Initialize, silent.clone()).await, Registrant::offering(Era::Initialize, silent).await);
        let ttl = "list_ttl = \"200ms\"\n";
        let mount = format!("[mount.here]\nurl = \"{}\"\nera = \"initialize\"\n{ttl}", mounted.url());
        let world = World::start(&format!("[registry]\nprincipals = [\"*\"]\n{ttl}{mount}")).await;
        let client = Client::ready(&world, Era::Initialize).await;
        registered.join(&world, &client, "there", SELDOM, json!({})).await;
        for (server, segment) in [(&mounted, "here"), (&registered, "there")] {
            let mut standing = client.listen(None).await;
            server.list_silently(vec![reads("ping"), reads("pong")]);
            standing.next_of("notifications/tools/list_changed").await;
            let new = format!("{segment}__pong");
            eventually(async || client.tools().await.contains(&new).then_some(())).await;
        }
    })
    .await;
}

/// A server of the initialize era that answers one request at a time, and works for five seconds on a call.
const SERIAL: &str = r#"
import json, sys, time
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "serial", "version": "1"}}
    elif m["method"] == "tools/list":
        result = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        time.sleep(5)
        result = {"content": [{"type": "text", "text": "done"}]}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"#;

#[tokio::test]
async fn ax_03_a_look_at_lists_ends_no_call() {
    bounded(async {
        let mount = format!(
            "[mount.n]\ncommand = \"python3\"\nargs = {}\nera = \"initialize\"\nstart_timeout = \"3s\"\nlist_ttl = \"500ms\"\n",
            json!(["-c", SERIAL])
        );
        let world = World::start(&mount).await;
        let client = Client::ready(&world, Era::Initialize).await;
        for _ in 0..2 {
            let told = client.tool("n__work", json!({})).await;
            assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
        }
    })
    .await;
}
