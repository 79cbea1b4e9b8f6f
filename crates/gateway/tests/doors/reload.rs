//! A new configuration in force while calls are in flight: only differing parts change.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Client, Era, World, bounded, fixture, fixture_with, token};

async fn calls(client: &Client, mount: &str) -> Value {
    let stats = client.tool(&format!("{mount}__fx_stats"), json!({})).await;
    stats["result"]["structuredContent"]["calls"].clone()
}

#[tokio::test]
async fn adding_and_removing_a_mount_leaves_others_alone() {
    bounded(async {
        let keep = fixture("keep", Era::Initialize);
        let world = World::start(&keep).await;
        let session = Client::ready(&world, Era::Initialize).await;
        let stateless = Client::ready(&world, Era::Stateless).await;
        session.tool("keep__fx_echo", json!({"text": "x"})).await;
        let mut standing = session.listen(None).await;
        let filter = json!({"notifications": {"toolsListChanged": true}});
        let mut listening = stateless.begin_as(json!("sub"), "subscriptions/listen", filter).await;
        listening.next_of("notifications/subscriptions/acknowledged").await;

        let told = async |standing: &mut crate::world::Reply, listening: &mut crate::world::Reply| {
            let second = Duration::from_secs(1);
            tokio::time::timeout(second, standing.next_of("notifications/tools/list_changed")).await.expect("a session hears of it");
            let tagged = tokio::time::timeout(second, listening.next_of("notifications/tools/list_changed")).await;
            let tagged = tagged.expect("a listener hears of it");
            assert_eq!(tagged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
        };

        assert_eq!(world.apply(&format!("{keep}{}", fixture("new", Era::Stateless))), ["+ mount new"]);
        world.until("new", |m| m.state == "ready").await;
        told(&mut standing, &mut listening).await;
        assert!(session.tools().await.contains(&"new__fx_echo".to_owned()));

        assert_eq!(world.apply(&keep), ["- mount new"]);
        told(&mut standing, &mut listening).await;
        assert!(!stateless.tools().await.iter().any(|t| t.starts_with("new__")));

        assert_eq!(calls(&session, "keep").await, 1, "the same process as before");
        assert_eq!(world.mount("keep").unwrap().restarts, 0);
    })
    .await;
}

#[tokio::test]
async fn a_call_finishes_on_a_removed_or_changed_mount() {
    bounded(async {
        let (keep, gone) = (fixture("keep", Era::Stateless), fixture("gone", Era::Initialize));
        for after in [keep.clone(), format!("{keep}{}", fixture_with("gone", Era::Initialize, &["--extra-tools", "1"]))] {
            let world = World::start(&format!("{keep}{gone}")).await;
            let client = Client::ready(&world, Era::Initialize).await;
            let sleep =
                |mount: &str| json!({"name": format!("{mount}__fx_sleep"), "arguments": {"ms": 800}, "_meta": {"progressToken": 1}});
            let (mut one, mut other) = (client.begin("tools/call", sleep("gone")).await, client.begin("tools/call", sleep("keep")).await);
            one.next_of("notifications/progress").await;
            other.next_of("notifications/progress").await;
            assert_eq!(world.apply(&after).len(), 1);
            assert!(!client.tools().await.is_empty(), "lists are answered meanwhile");
            for reply in [&mut one, &mut other] {
                let (_, response) = reply.finish().await;
                assert_eq!(response.value["result"]["content"][0]["text"], "slept", "{}", response.raw);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_changed_mount_is_started_anew() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        client.tool("fx__fx_echo", json!({"text": "x"})).await;
        let changes = world.apply(&fixture_with("fx", Era::Stateless, &["--extra-tools", "1"]));
        assert_eq!(changes.len(), 1, "{changes:?}");
        world.until("fx", |m| m.state == "ready").await;
        assert!(client.tools().await.contains(&"fx__fx_dummy_0000".to_owned()));
        assert_eq!(calls(&client, "fx").await, 0, "another process");
    })
    .await;
}

#[tokio::test]
async fn ax_03_a_servers_change_reaches_listeners_within_a_second() {
    bounded(async {
        for (down, up) in Era::PAIRS {
            let world = World::start(&fixture("fx", up)).await;
            let client = Client::ready(&world, down).await;
            let mut stream = if down == Era::Initialize {
                client.listen(None).await
            } else {
                let mut stream = client.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
                stream.next_of("notifications/subscriptions/acknowledged").await;
                stream
            };
            client.tool("fx__test_trigger_tool_change", json!({})).await;
            let told = tokio::time::timeout(Duration::from_secs(1), stream.next_of("notifications/tools/list_changed")).await;
            assert!(told.is_ok(), "{down:?} {up:?}");
            assert!(client.tools().await.contains(&"fx__test_dynamic_tool".to_owned()));
        }
    })
    .await;
}

#[tokio::test]
async fn changed_bounds_hold_for_the_next_call() {
    bounded(async {
        let mounts = format!("{}{}", fixture("a", Era::Stateless), fixture("b", Era::Stateless));
        let limits = |keys: &str| format!("limits = {{ {keys} }}\n{mounts}");
        let world = World::start(&limits("calls = 2, calls_per_mount = 2")).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let slow = json!({"name": "a__fx_sleep", "arguments": {"ms": 60_000, "steps": 600}, "_meta": {"progressToken": 1}});
        let mut first = client.begin_as(json!("first"), "tools/call", slow).await;
        first.next_of("notifications/progress").await;
        let told = async |mount: &str| {
            let told = client.tool(&format!("{mount}__fx_echo"), json!({"text": "x"})).await;
            told["error"]["message"].as_str().map_or_else(|| "served".to_owned(), ToOwned::to_owned)
        };
        assert_eq!((told("a").await, told("b").await), ("served".to_owned(), "served".to_owned()));

        for (keys, a, b) in [
            ("calls = 2, calls_per_mount = 1", "the server is busy: 1 are in flight", "served"),
            ("calls = 1, calls_per_mount = 9", "the gate is full: 1 are in flight", "the gate is full: 1 are in flight"),
            ("calls = 9, calls_per_mount = 9", "served", "served"),
        ] {
            assert_eq!(world.apply(&limits(keys)).len(), 1);
            let (at_a, at_b) = (told("a").await, told("b").await);
            assert!(at_a.starts_with(a) && at_b.starts_with(b), "{keys}: {at_a}; {at_b}");
        }
        client.notify("notifications/cancelled", json!({"requestId": "first"})).await;
    })
    .await;
}

#[tokio::test]
async fn a_session_with_a_removed_profile_sees_nothing() {
    bounded(async {
        let mounts = fixture("fx", Era::Stateless);
        let profile = "[profile.few]\nclients = [\"few*\"]\ninclude = [\"fx.fx_echo\"]\n";
        let world = World::start(&format!("{profile}{mounts}")).await;
        let client = Client::new(&world, Era::Initialize).named("few-tools").open().await;
        assert_eq!(client.tools().await, ["fx__fx_echo"]);
        assert_eq!(world.apply(&mounts), ["- profile few"]);

        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("tools/call", json!({"name": "fx__fx_stats", "arguments": {}})),
            ("tools/call", json!({"name": "fx__fx_echo", "arguments": {"text": "x"}})),
            ("resources/read", json!({"uri": "test://static-text"})),
        ] {
            let told = client.call(method, params).await;
            assert_eq!(told["error"]["code"], -32011, "{method}: {told}");
            assert_eq!(told["error"]["data"], json!({"reason": "profile_gone", "profile": "few"}));
            assert!(told["error"]["message"].as_str().unwrap().contains("connect again"), "{told}");
        }
        assert!(client.call("ping", json!({})).await.get("result").is_some());

        let anew = Client::new(&world, Era::Initialize).named("few-tools").open().await;
        assert!(anew.tools().await.len() > 1, "who comes anew is shown what the configuration gives");
        world.apply(&format!("{profile}{mounts}"));
        assert_eq!(client.tools().await, ["fx__fx_echo"], "put back, it holds again");
    })
    .await;
}

#[tokio::test]
async fn a_new_profile_holds_for_open_sessions() {
    bounded(async {
        let mounts = fixture("fx", Era::Stateless);
        let few = "[profile.few]\nclients = [\"few*\"]\ninclude = [\"fx.fx_echo\"]\n";
        let world = World::start(&mounts).await;
        let client = Client::new(&world, Era::Initialize).named("few-tools").open().await;
        let mut standing = client.listen(None).await;
        assert!(client.tools().await.len() > 1);
        world.apply(&format!("{few}{mounts}"));
        standing.next_of("notifications/tools/list_changed").await;
        assert_eq!(client.tools().await, ["fx__fx_echo"]);
        let told = client.tool("fx__fx_stats", json!({})).await;
        assert_eq!(told["error"]["data"]["reason"], "unknown_tool", "{told}");

        world.apply(&format!("[profile.less]\nclients = [\"few*\"]\ninclude = [\"fx.fx_sleep\"]\n{mounts}"));
        assert_eq!(client.tools().await, ["fx__fx_sleep"], "another profile in its place");
        world.apply(&format!("[profile.less]\nclients = [\"nobody\"]\ninclude = [\"fx.fx_roots\"]\n{mounts}"));
        assert_eq!(client.tools().await, ["fx__fx_roots"], "it keeps the profile that names it no longer");

        let ada = |profile: &str| format!("{}{profile}{few}{mounts}", token("ada"));
        let world = World::start(&ada("")).await;
        let holder = Client::new(&world, Era::Initialize).with("authorization", "Bearer secret-of-ada").open().await;
        assert!(holder.tools().await.len() > 1);
        assert_eq!(world.apply(&ada("profile = \"few\"\n")), ["~ token ada: profile"]);
        assert_eq!(holder.tools().await, ["fx__fx_echo"]);
    })
    .await;
}
