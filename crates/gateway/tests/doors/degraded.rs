//! Tools of servers that are away: how long they stay listed, and what their callers hear.

use serde_json::{Value, json};

use crate::registered::above;
use crate::restarts::DYING;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, eventually};

async fn availability(client: &Client, name: &str) -> Option<Value> {
    let listed = client.call("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().find(|tool| tool["name"] == name).map(|tool| tool["_meta"]["x-mcpax-availability"].clone())
}

async fn goes(client: &Client, name: &str) {
    eventually(async || availability(client, name).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn ax_61_heartbeats_keep_no_unreachable_server_listed() {
    bounded(async {
        let world = World::start("[registry]\nprincipals = [\"*\"]\ngrace = \"2s\"\n").await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let above = above(&world).await;
        let mut standing = above.listen(None).await;
        let mut beating = Vec::new();
        for (serves, interval) in [(Era::Stateless, 300), (Era::Initialize, 300), (Era::Stateless, 0)] {
            let segment = format!("s{interval}{}", if serves == Era::Stateless { "" } else { "-old" });
            let mut server = Registrant::start(serves, vec![reads("ping")]).await;
            let session = server.join(&world, &gate, &segment, interval, json!({})).await;
            beating.push(server.beat(&world, &session, 300));
            server.die();
            let name = format!("{segment}__ping");
            let refused = gate.tool(&name, json!({})).await;
            assert_eq!(refused["error"]["data"]["reason"], "subserver_unreachable", "{refused}");
            let lost = standing.next_of("notifications/x-mcpax/subserver_lost").await;
            assert_eq!((&lost["params"]["reason"], &lost["params"]["_meta"]["x-mcpax-source"]), (&json!("link_lost"), &json!(segment)));
            eventually(async || availability(&gate, &name).await.filter(|said| said == "degraded")).await;
            goes(&gate, &name).await;
            // It has not lost its place, and is there again as soon as it is reached.
            assert_eq!(gate.call("mcpax/heartbeat", json!({"session_id": session})).await["result"]["status"], "alive");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_61_a_mounts_tools_go_with_its_grace() {
    bounded(async {
        for (grace, is_shown) in [("2s", true), ("0s", false)] {
            let dir = tempfile::tempdir().unwrap();
            let leave = dir.path().join("leave to come back");
            std::fs::write(&leave, "").unwrap();
            let args = json!(["-c", DYING, leave]);
            let mount = format!("[mount.edge]\ncommand = \"python3\"\nargs = {args}\nera = \"initialize\"\ngrace = \"{grace}\"\n");
            let world = World::start(&mount).await;
            let client = Client::ready(&world, Era::Initialize).await;
            let mut standing = client.listen(None).await;
            world.until("edge", |m| m.state == "ready").await;
            // Its next process gives no answer, for longer than the grace.
            std::fs::remove_file(&leave).unwrap();
            client.tool("edge__die", json!({})).await;
            if is_shown {
                world.until("edge", |m| m.state == "degraded").await;
                standing.next_of("notifications/tools/list_changed").await;
                eventually(async || availability(&client, "edge__live").await.filter(|said| said == "degraded")).await;
                let refused = Client::ready(&world, Era::Stateless).await.tool("edge__live", json!({})).await;
                let data = &refused["error"]["data"];
                assert_eq!(data["reason"], "subserver_unreachable", "{refused}");
                assert!(data["since"].as_str().is_some_and(|since| since.ends_with('Z')) && data["retry_after_ms"].is_u64(), "{data}");
            }
            goes(&client, "edge__live").await;
            assert_eq!(world.mount("edge").unwrap().state, "failed");
            std::fs::write(&leave, "").unwrap();
            world.until("edge", |m| m.state == "ready").await;
            assert_eq!(client.tool("edge__live", json!({})).await["result"]["content"][0]["text"], "alive");
        }
    })
    .await;
}
