//! Terms of registration: a changed section `[registry]`, an unwritable state directory, and the way of calls to an aggregator.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::asked::text;
use crate::recorded;
use crate::world::registrant::{Registrant, reads, writes};
use crate::world::{Client, Era, World, bounded, eventually, token};

const SELDOM: u64 = 60_000;

fn reason(answer: &Value) -> &Value {
    &answer["error"]["data"]["reason"]
}

/// Lists the names of all tools, sorted.
async fn tools(gate: &Client) -> Vec<String> {
    let mut tools = gate.tools().await;
    tools.sort();
    tools
}

async fn ended(gate: &Client, session: &str) -> Value {
    gate.call("mcpax/heartbeat", json!({"session_id": session})).await["error"]["data"]["ended"].clone()
}

#[tokio::test]
async fn a_changed_registry_holds_at_once_and_tells_differences() {
    bounded(async {
        let people = format!("{}{}", token("edge-1"), token("edge-2"));
        let world = World::start(&people).await;
        let client = |name: &str| Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}"));
        let (one, two) = (client("edge-1"), client("edge-2"));
        let (first, second) = (
            Registrant::start(Era::Stateless, vec![reads("get"), writes("set")]).await,
            Registrant::start(Era::Stateless, vec![reads("get")]).await,
        );
        assert_eq!(reason(&first.register(&one, "first", SELDOM, json!({})).await), "not_admitted");

        assert_eq!(world.apply(&format!("{people}[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n")), ["+ registry"]);
        let session = first.join(&world, &one, "first", SELDOM, json!({})).await;
        let other = second.join(&world, &two, "second", SELDOM, json!({})).await;
        assert_eq!(tools(&one).await, ["first__get", "first__set", "second__get"]);

        let few = "[registry]\nprincipals = [\"edge-1\"]\ngrace = \"1m\"\n";
        assert_eq!(world.apply(&format!("{people}{few}")), ["~ registry: principals, proof, grace"]);
        eventually(async || (tools(&one).await == ["first__get"]).then_some(())).await;
        assert_eq!(ended(&two, &other).await, "not_admitted");
        assert_eq!(reason(&second.register(&two, "second", SELDOM, json!({})).await), "not_admitted");
        assert_eq!(one.call("mcpax/heartbeat", json!({"session_id": session})).await["result"]["status"], "alive");
        assert_eq!(text(&one.tool("first__get", json!({})).await), "did get");

        assert_eq!(world.apply(&people), ["- registry"]);
        eventually(async || one.tools().await.is_empty().then_some(())).await;
        assert_eq!(ended(&one, &session).await, "not_admitted");
    })
    .await;
}

#[tokio::test]
async fn ax_12_nobody_registers_while_owners_can_not_be_kept() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("banyan.db");
        std::fs::write(&file, "this is no database, whatever its name says".repeat(100)).unwrap();
        let toml = "[registry]\nprincipals = [\"*\"]\nsticky = \"always\"\n";
        let world = World::start_in(state, toml).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let claim = json!({"authority": "dns:a.example"});
        let refused = server.register(&gate, "edge", SELDOM, claim.clone()).await;
        assert_eq!((&refused["error"]["code"], reason(&refused)), (&json!(-31014), &json!("claims_unavailable")), "{refused}");
        assert!(refused["error"]["data"]["retry_after_ms"].as_u64().is_some_and(|ms| ms > 0), "{refused}");
        assert!(world.mount("edge").is_none());

        std::fs::remove_file(&file).unwrap();
        let taken =
            async || Some(server.register(&gate, "edge", SELDOM, claim.clone()).await).filter(|answer| answer.get("result").is_some());
        eventually(taken).await;
        world.until("edge", |mount| mount.state == "ready").await;

        // What can't be written any more was not promised, and nobody stands in the tree for it.
        let store = rusqlite::Connection::open(&file).unwrap();
        store.execute_batch("ALTER TABLE claims RENAME TO away").unwrap();
        let late = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let refused = late.register(&gate, "late", SELDOM, json!({"authority": "dns:b.example"})).await;
        assert_eq!(reason(&refused), "claims_unavailable", "{refused}");
        eventually(async || world.mount("late").is_none().then_some(())).await;
        store.execute_batch("ALTER TABLE away RENAME TO claims").unwrap();
        eventually(async || {
            let answer = late.register(&gate, "late", SELDOM, json!({"authority": "dns:b.example"})).await;
            answer.get("result").map(|_| ())
        })
        .await;
        let kept: u64 = store.query_row("SELECT count(*) FROM claims", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 2);
    })
    .await;
}

#[tokio::test]
async fn ax_33_tools_are_reached_as_their_server_was_registered() {
    bounded(async {
        let world = World::start("[registry]\nprincipals = [\"*\"]\n").await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        server.join(&world, &gate, "stm", SELDOM, json!({"transport_class": "uart_cbor"})).await;
        let mut reader = Client::new(&world, Era::Stateless);
        reader.capabilities = json!({"extensions": {"io.banyan/mcpax": {}}});
        let listed = reader.call("tools/list", json!({})).await;
        let tool = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "stm__ping").unwrap().clone();
        assert_eq!(tool["_meta"]["x-mcpax-transport"], "uart_cbor", "{tool}");
    })
    .await;
}

#[tokio::test]
async fn ax_21_whoever_registers_is_told_what_it_may_spend_here() {
    bounded(async {
        let budgets = "[budget.edges]\nprincipals = [\"edge-*\"]\nmax_calls_per_minute = 7\nmax_cost_units_per_session = 9\n\
            [budget.all]\nmax_calls_per_minute = 100\nmax_mutable_calls_per_session = 3\n";
        let world = World::start(&format!("{}{budgets}[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n", token("edge-1"))).await;
        let edge = Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-edge-1");
        let server = Registrant::start(Era::Stateless, vec![reads("get")]).await;
        let answer = server.register(&edge, "first", SELDOM, json!({})).await;
        let wanted = json!({"max_calls_per_minute": 7, "max_mutable_calls_per_session": 3, "max_cost_units_per_session": 9});
        assert_eq!(answer["result"]["budget"], wanted, "{answer}");
    })
    .await;
}

#[tokio::test]
async fn ax_48_a_subserver_over_its_declared_budget_is_refused() {
    bounded(async {
        let budget = "[budget.edges]\nprincipals = [\"edge-*\"]\nmax_calls_per_minute = 2\n";
        let world = World::start(&format!("{}{budget}[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n", token("edge-1"))).await;
        let edge = Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-edge-1");
        let server = Registrant::start(Era::Stateless, vec![reads("get")]).await;
        let answer = server.register(&edge, "first", SELDOM, json!({})).await;
        assert_eq!(answer["result"]["budget"], json!({"max_calls_per_minute": 2}), "{answer}");
        world.until("first", |mount| mount.state == "ready").await;
        for _ in 0..2 {
            assert_eq!(text(&edge.tool("first__get", json!({})).await), "did get");
        }
        let over = edge.tool("first__get", json!({})).await;
        assert_eq!((&over["error"]["code"], reason(&over)), (&json!(-32003), &json!("budget_exceeded")), "{over}");
        let session = answer["result"]["session_id"].clone();
        let beat = edge.call("mcpax/heartbeat", json!({"session_id": session})).await;
        assert_eq!(beat["result"]["status"], "alive", "what keeps it registered is no call");
    })
    .await;
}

#[tokio::test]
async fn ax_30_a_registered_aggregator_gets_route_and_cursor() {
    bounded(async {
        for era in [Era::Initialize, Era::Stateless] {
            let world = World::start("[registry]\nprincipals = [\"*\"]\n").await;
            let gate = Client::ready(&world, era).await;
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
            let server = Registrant::start(era, vec![tool("stm32h7.dma2d_status"), tool("uptime")]).await;
            // An aggregator written from the draft alone: it says nothing of our extension.
            let ids = json!({"x-mcpax-subtree-ids": [server.id]});
            server.join(&world, &gate, "edge", SELDOM, ids).await;
            let meta = json!({"x-mcpax-route": ["forged"], "x-mcpax-cursor": 0, "x-mcpax-other": 1, "kept": true});
            for (name, own, route) in [
                ("edge__stm32h7__dma2d_status", "did stm32h7.dma2d_status", json!(["edge", "stm32h7", "dma2d_status"])),
                ("edge__uptime", "did uptime", json!(["edge", "uptime"])),
            ] {
                let told = gate.call("tools/call", json!({"name": name, "arguments": {}, "_meta": meta})).await;
                let seen = &told["result"]["structuredContent"]["meta"];
                assert_eq!((text(&told), &seen["x-mcpax-route"], &seen["x-mcpax-cursor"]), (own, &route, &json!(1)), "{told}");
                assert_eq!((&seen["kept"], seen.get("x-mcpax-other")), (&json!(true), None), "{told}");
            }
            // Its word counts no more than any server's.
            assert!(!world.mount("edge").unwrap().gate);
        }
    })
    .await;
}

#[tokio::test]
async fn ax_12_whoever_runs_the_gate_frees_a_segment() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let record = state.path().join("record");
        let toml = &format!("[registry]\nprincipals = [\"*\"]\ngrace = \"0s\"\nsticky = \"always\"\n[audit]\npath = {record:?}\n");
        let world = World::member_in(state, toml, TcpListener::bind("127.0.0.1:0").await.unwrap()).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let (one, two) =
            (Registrant::start(Era::Stateless, vec![reads("a")]).await, Registrant::start(Era::Stateless, vec![reads("b")]).await);
        let session = one.join(&world, &gate, "edge", SELDOM, json!({"authority": "dns:a.example"})).await;
        gate.call("mcpax/deregister", json!({"session_id": session})).await;
        let theirs = json!({"authority": "dns:b.example"});
        assert_eq!(reason(&two.register(&gate, "edge", SELDOM, theirs.clone()).await), "namespace_conflict");
        assert!(world.gateway.release("other").await.is_err() && world.gateway.release("No Name").await.is_err());
        assert_eq!(world.gateway.release("edge").await.unwrap().released, "edge");
        assert!(world.gateway.release("edge").await.is_err());
        two.join(&world, &gate, "edge", SELDOM, theirs).await;
        let recorded = eventually(async || {
            let freed = |facts: &Value| facts["what"] == "released";
            let all = recorded::entries_in(&record);
            let freed: Vec<Value> = all.iter().map(recorded::facts).filter(freed).collect();
            (!freed.is_empty()).then_some(freed)
        });
        assert_eq!(recorded.await, [json!({"principal": "", "segment": "edge", "what": "released"})]);
        // It belongs to the new authority, over a restart too.
        let again = World::kept(world.end_keeping().await, toml).await;
        let gate = Client::ready(&again, Era::Stateless).await;
        let mine = one.register(&gate, "edge", SELDOM, json!({"authority": "dns:a.example"})).await;
        assert_eq!(reason(&mine), "namespace_conflict", "{mine}");
    })
    .await;
}

#[tokio::test]
async fn ax_41_the_operators_cap_holds_at_the_gate() {
    bounded(async {
        let registry = "[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n";
        let world = World::start(&format!("{registry}[registry.segment.edge]\nauth_scope = \"read\"\n")).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("look"), writes("push")]).await;
        let session = server.join(&world, &gate, "edge", SELDOM, json!({"auth_scope": "admin"})).await;
        assert_eq!(tools(&gate).await, ["edge__look"]);
        assert_eq!(reason(&gate.tool("edge__push", json!({})).await), "unknown_tool");
        assert!(server.seen().iter().all(|(method, _)| method != "tools/call"));
        // Another cap: who has another permission from now on registers anew.
        world.apply(registry);
        eventually(async || (ended(&gate, &session).await == "not_admitted").then_some(())).await;
        server.join(&world, &gate, "edge", SELDOM, json!({"auth_scope": "admin"})).await;
        eventually(async || (tools(&gate).await == ["edge__look", "edge__push"]).then_some(())).await;
    })
    .await;
}
