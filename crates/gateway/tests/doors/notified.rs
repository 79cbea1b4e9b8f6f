//! Notifications of self-registered servers, and their bounds. Does not try registration: see `registered.rs`.

use serde_json::json;

use crate::linked::{joining, listed, taking};
use crate::registered::{SELDOM, above, open};
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

#[tokio::test]
async fn ax_50_notifications_come_in_order_with_their_source() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let mut standing = client.listen(None).await;
        let server = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        eventually(async || (server.streams() > 0).then_some(())).await;
        for number in 0..20 {
            let meta = json!({"x-mcpax-event-id": format!("e-{number}"), "x-mcpax-causal-parent": null});
            server.say("notifications/alarm", &json!({"number": number, "_meta": meta}));
        }
        for number in 0..20 {
            let told = standing.next_of("notifications/alarm").await;
            let meta = json!({"x-mcpax-event-id": format!("e-{number}"), "x-mcpax-causal-parent": null, "x-mcpax-source": "edge"});
            assert_eq!((&told["params"]["number"], &told["params"]["_meta"]), (&json!(number), &meta));
        }
    })
    .await;
}

/// A server of the initialize era that raises twenty alarms for each file, once it is there.
const ALARMING: &str = r#"
import json, os, sys, threading, time
lock = threading.Lock()
def say(m):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def alarm():
    for turn in range(1000):
        while not os.path.exists(sys.argv[1] + "-" * turn):
            time.sleep(0.01)
        for number in range(20):
            number += 1000 * turn
            meta = {"x-mcpax-event-id": f"e-{number}", "x-mcpax-causal-parent": None}
            say({"method": "notifications/alarm", "params": {"number": number, "_meta": meta}})
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        say({"id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "alarming", "version": "1"}}})
        threading.Thread(target=alarm, daemon=True).start()
    elif m["method"] == "tools/list":
        say({"id": m["id"], "result": {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}})
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;

#[tokio::test]
async fn ax_50_a_mounts_alarms_cross_three_gates_in_order() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let root = World::start(&taking()).await;
        let edge = World::member(&format!("{}{}", taking(), joining("edge", &[root.addr]))).await;
        let mount = format!("[mount.n]\ncommand = \"python3\"\nargs = {}\nera = \"initialize\"\n", json!(["-c", ALARMING, go]));
        let _leaf = World::member(&format!("{mount}{}", joining("leaf", &[edge.addr]))).await;
        let client = Client::ready(&root, Era::Initialize).await;
        listed(&client, "edge__leaf__n__ping").await;
        let mut standing = client.listen(None).await;
        std::fs::write(&go, "").unwrap();
        for number in 0..20 {
            let told = standing.next_of("notifications/alarm").await;
            let meta = json!({"x-mcpax-event-id": format!("e-{number}"), "x-mcpax-causal-parent": null, "x-mcpax-source": "edge.leaf.n"});
            assert_eq!((&told["params"]["number"], &told["params"]["_meta"]), (&json!(number), &meta));
        }
    })
    .await;
}

#[tokio::test]
async fn ax_50_news_of_a_mount_rises_to_no_later_principal() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let mount = format!("[mount.n]\ncommand = \"python3\"\nargs = {}\nera = \"initialize\"\n", json!(["-c", ALARMING, go]));
        let bounds = "[registry.segment.n]\nnotifications_per_second = 1\n";
        let world = World::start(&format!("{}{bounds}{mount}{}{}", taking(), token("ann"), token("bob"))).await;
        let listening = async |who: &str| {
            let mut gate = Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{who}"));
            gate.capabilities = json!({"extensions": {"io.banyan/mcpax": {"aggregator_id": "g"}}});
            let mut stream = gate.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
            stream.next_of("notifications/subscriptions/acknowledged").await;
            stream
        };
        let mut of_ann = listening("ann").await;
        std::fs::write(&go, "").unwrap();
        assert_eq!(of_ann.next_of("notifications/alarm").await["params"]["number"], 0);
        drop(of_ann);
        let mut of_bob = listening("bob").await;
        // Whoever left is seen to be gone a little later, and until then no news rises.
        let raising = async {
            for turn in 1.. {
                std::fs::write(format!("{}{}", go.display(), "-".repeat(turn)), "").unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        };
        let first = tokio::select! {
            told = of_bob.next_of("notifications/alarm") => told,
            () = raising => unreachable!("it goes on"),
        };
        assert!(first["params"]["number"].as_u64().is_some_and(|number| number >= 1000), "it was said to ann alone: {first}");
    })
    .await;
}

#[tokio::test]
async fn ax_51_a_mounts_flood_is_bounded_before_it_rises() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let root = World::start(&taking()).await;
        let edge = World::member(&format!("{}{}", taking(), joining("edge", &[root.addr]))).await;
        let mount = format!(
            "[mount.n]\ncommand = \"python3\"\nargs = {}\nera = \"initialize\"\n",
            json!(["-c", ALARMING.replace("range(20)", "range(500)"), go])
        );
        let bounds = "[registry.segment.n]\nnotifications_per_second = 10\nnotifications_held = 5\n";
        let leaf = World::member(&format!("{}{mount}{bounds}{}", taking(), joining("leaf", &[edge.addr]))).await;
        let client = above(&root).await;
        listed(&client, "edge__leaf__n__ping").await;
        let mut standing = client.listen(None).await;
        std::fs::write(&go, "").unwrap();
        let told = standing.next_of("notifications/x-mcpax/notification_overflow").await;
        assert_eq!(told["params"]["_meta"]["x-mcpax-source"], "edge.leaf.n", "{told}");
        loop {
            let told = standing.next_of("notifications/alarm").await;
            assert_eq!(told["params"]["_meta"]["x-mcpax-source"], "edge.leaf.n");
            if told["params"]["number"] == 499 {
                break;
            }
        }
        let counts = Client::ready(&leaf, Era::Stateless).await.tool("notifications_dropped", json!({})).await;
        let counts = &counts["result"]["structuredContent"];
        assert!(counts["by_segment"]["n"].as_u64().is_some_and(|dropped| dropped > 300), "{counts}");
        assert_eq!(counts["by_segment"]["n"], counts["notifications_dropped"]);
    })
    .await;
}

#[tokio::test]
async fn ax_51_a_flood_is_bounded_and_dropped_news_counted() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let above = above(&world).await;
        let mut standing = above.listen(None).await;
        let server = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        eventually(async || (server.streams() > 0).then_some(())).await;
        (0..3000).for_each(|number| server.say("notifications/alarm", &json!({"number": number})));
        let told = standing.next_of("notifications/x-mcpax/notification_overflow").await;
        assert_eq!(told["params"]["_meta"]["x-mcpax-source"], "edge");
        let dropped = eventually(async || {
            let counted = gate.tool("notifications_dropped", json!({})).await["result"]["structuredContent"].clone();
            (counted["notifications_dropped"].as_u64()? > 1000).then_some(counted)
        })
        .await;
        assert_eq!(dropped["notifications_dropped"], dropped["by_segment"]["edge"], "{dropped}");
    })
    .await;
}

#[tokio::test]
async fn ax_51_counts_of_dropped_notifications_are_no_models_tools() {
    bounded(async {
        let registry = "[registry]\nprincipals = [\"*\"]\n";
        let low = World::start(&format!("{registry}{}", fixture("fx", Era::Stateless))).await;
        let below = format!("{registry}[mount.low]\nurl = \"http://{}/mcp\"\ngate = true\n", low.addr);
        let root = World::start(&below).await;
        let searched = World::start(&format!("{below}[profile.p]\nclients = [\"doors\"]\nsearch = \"always\"\n")).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&root, era).await;
            let tools = client.tools().await;
            assert!(tools.contains(&"low__fx__fx_echo".to_owned()), "{tools:?}");
            assert!(tools.iter().all(|name| !name.contains("notifications_dropped")), "{tools:?}");
            for name in ["notifications_dropped", "low__notifications_dropped"] {
                let told = client.tool(name, json!({})).await;
                assert_eq!(told["result"]["structuredContent"]["notifications_dropped"], 0, "{told}");
            }
            let mut gate = Client::new(&root, era);
            gate.capabilities =
                json!({"extensions": {"io.banyan/mcpax": {"aggregator_id": "g"}}, "experimental": {"io.banyan/mcpax": {"aggregator_id": "g"}}});
            let listed = gate.open().await.tools().await;
            assert!(["notifications_dropped", "low.notifications_dropped"].iter().all(|name| listed.contains(&(*name).to_owned())));
            let finder = Client::ready(&searched, era).await;
            let found = finder.tool("search_tools", json!({"query": "notifications dropped", "limit": 5})).await;
            assert!(!found.to_string().contains("low__notifications_dropped"), "{found}");
        }
        let rows = root.gateway.tools(None);
        assert!(rows.iter().any(|row| row.dotted == "low.notifications_dropped"), "whoever runs the gate sees them");
    })
    .await;
}
