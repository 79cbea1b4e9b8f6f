//! Requests to servers registered for less than everything (MCP-AX 10.2), and scopes of tokens for tools.

use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};

use crate::asked::text;
use crate::pinned::mount;
use crate::scoped::{bearer, issuer};
use crate::world::registrant::{Registrant, reads, writes};
use crate::world::{Client, Era, World, bounded, eventually, token};

const OPEN: &str = "[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n";
/// Heartbeat interval so long that no test misses a beat.
const SELDOM: u64 = 60_000;

fn rules() -> Value {
    json!({"name": "rule", "inputSchema": {"type": "object"}, "_meta": {"x-mcpax-auth-scope": "admin"}})
}

/// Lists the tools of a segment, as a client sees them.
async fn shown(client: &Client, segment: &str) -> Vec<String> {
    client.tools().await.into_iter().filter(|name| name.starts_with(segment)).collect()
}

/// Lists the methods sent to a server, with names of tools; a gate's own housekeeping is left out.
fn asked(server: &Registrant) -> Vec<String> {
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "mcpax/parent", "subscriptions/listen"];
    let own = |method: &String| lists.contains(&&**method) || method.starts_with("notifications/") || method.is_empty();
    let begins = |method: &String| ["initialize", "server/discover"].contains(&&**method);
    server.seen().into_iter().map(|(method, _)| method).filter(|method| !own(method) && !begins(method)).collect()
}

#[tokio::test]
async fn ax_41_a_server_registered_for_reading_gets_no_writing_request() {
    bounded(async {
        let world = World::start(OPEN).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let lists = json!({"tools": [reads("look"), writes("push"), rules()], "capabilities": {"tasks": {}}});
        let server = Registrant::offering(Era::Initialize, lists).await;
        let session = server.join(&world, &gate, "edge", SELDOM, json!({"auth_scope": "read"})).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world, era).await;
            assert_eq!(shown(&client, "edge").await, ["edge__look"], "{era:?}");
            for tool in ["edge__push", "edge__rule"] {
                assert_eq!(client.tool(tool, json!({})).await["error"]["data"]["reason"], "unknown_tool", "{era:?} {tool}");
            }
            // Nor a method of which nobody knows what it does, though it is the only server there is.
            assert_eq!(client.call("vendor/reset", json!({})).await["error"]["code"], -32601, "{era:?}");
            assert!(client.call("tasks/cancel", json!({"taskId": "of-somebody"})).await.get("error").is_some(), "{era:?}");
        }
        assert_eq!(asked(&server), Vec::<String>::new());
        assert_eq!(text(&gate.tool("edge__look", json!({})).await), "did look");
        // Registered for everything, the same server is asked all of it.
        gate.call("mcpax/deregister", json!({"session_id": session})).await;
        server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        eventually(async || (shown(&gate, "edge").await.len() == 3).then_some(())).await;
        assert_eq!(text(&gate.tool("edge__push", json!({})).await), "did push");
        gate.call("vendor/reset", json!({})).await;
        Client::ready(&world, Era::Initialize).await.call("tasks/cancel", json!({"taskId": "of-somebody"})).await;
        assert_eq!(asked(&server), ["tools/call", "tools/call", "vendor/reset", "tasks/cancel"]);
    })
    .await;
}

#[tokio::test]
async fn ax_41_a_server_registered_for_reading_gets_no_unknown_notification() {
    bounded(async {
        for (scope, wanted) in [("read", 0), ("write", 0), ("admin", 1)] {
            let world = World::start(OPEN).await;
            let gate = Client::ready(&world, Era::Stateless).await;
            let server = Registrant::offering(Era::Initialize, json!({"tools": [reads("look")], "asks_roots": true})).await;
            let came = |method: &str| server.seen().iter().filter(|(seen, _)| seen == method).count();
            server.join(&world, &gate, "edge", SELDOM, json!({"auth_scope": scope})).await;
            let (greeted, told) = (came("initialize"), came("notifications/roots/list_changed"));
            let client = Client::ready(&world, Era::Initialize).await;
            // A server that asks for roots gets a connection for each session, once the gate has seen that it does.
            eventually(async || {
                assert_eq!(text(&client.tool("edge__look", json!({})).await), "did look");
                (came("initialize") > greeted).then_some(())
            })
            .await;
            client.notify("notifications/vendor/reset", json!({})).await;
            client.notify("notifications/roots/list_changed", json!({})).await;
            // What was sent before it would have come before it.
            eventually(async || (came("notifications/roots/list_changed") > told).then_some(())).await;
            assert_eq!(came("notifications/vendor/reset"), wanted, "{scope}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_41_a_narrower_scope_of_registration_holds_at_once() {
    bounded(async {
        let world = World::start(OPEN).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("look"), writes("push"), rules()]).await;
        let session = server.join(&world, &gate, "edge", SELDOM, json!({"auth_scope": "write"})).await;
        assert_eq!(shown(&gate, "edge").await, ["edge__look", "edge__push"]);
        assert_eq!(text(&gate.tool("edge__push", json!({})).await), "did push");
        assert!(gate.tool("edge__rule", json!({})).await.get("error").is_some());
        assert_eq!(gate.call("vendor/reset", json!({})).await["error"]["code"], -32601);
        assert_eq!(asked(&server), ["tools/call"]);
        gate.call("mcpax/deregister", json!({"session_id": session})).await;
        let answer = server.register(&gate, "edge", SELDOM, json!({"auth_scope": "read"})).await;
        assert!(answer["result"]["session_id"].is_string(), "{answer}");
        // From the answer on, whether the lists were fetched anew or not.
        eventually(async || {
            assert!(gate.tool("edge__push", json!({})).await.get("error").is_some());
            (shown(&gate, "edge").await == ["edge__look"]).then_some(())
        })
        .await;
        assert_eq!(asked(&server), ["tools/call"]);
    })
    .await;
}

#[tokio::test]
async fn ax_41_a_gate_registered_for_reading_gets_no_writing_call() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![reads("look"), writes("push")]).await;
        let middle = World::start(&mount("plant", &server)).await;
        let root = World::start(OPEN).await;
        let mut gate = Client::new(&middle, Era::Stateless);
        gate.capabilities = json!({"extensions": {"io.banyan/mcpax": {"aggregator_id": "00000000-0000-4000-8000-0000000000aa"}}});
        let id = gate.call("tools/list", json!({})).await["result"]["_meta"]["x-mcpax-subtree-ids"][0].clone();
        let params = json!({
            "subserver_id": id, "aggregator_id": id, "x-mcpax-subtree-ids": [], "segment": "mid", "auth_scope": "read",
            "capabilities": {"tools": true, "notifications": true}, "heartbeat_interval_ms": SELDOM, "transport_class": "http",
            "version": "2026-05-01", "url": format!("http://{}/mcp", middle.addr),
        });
        let answer = Client::ready(&root, Era::Stateless).await.call("mcpax/register", params).await;
        assert!(answer["result"]["session_id"].is_string(), "{answer}");
        root.until("mid", |mount| mount.state == "ready").await;
        let client = Client::ready(&root, Era::Stateless).await;
        assert_eq!(shown(&client, "mid").await, ["mid__plant__look"]);
        assert_eq!(client.tool("mid__plant__push", json!({})).await["error"]["data"]["reason"], "unknown_tool");
        assert_eq!(client.call("vendor/reset", json!({})).await["error"]["code"], -32601);
        assert_eq!(text(&client.tool("mid__plant__look", json!({})).await), "did look");
        assert_eq!(asked(&server), ["tools/call"]);
    })
    .await;
}

#[tokio::test]
async fn ax_41_a_rule_can_demand_the_scope_of_a_tool() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![reads("look"), writes("push"), rules()]).await;
        let (key, state) = (KeyPair::generate_for(&PKCS_ED25519).unwrap(), tempfile::tempdir().unwrap());
        let rule = r#"@id("all") permit (principal, action, resource);
            @id("scopes") forbid (principal, action == Action::"call", resource) unless { principal.scopes.contains(resource.scope) };"#;
        let toml = format!("{}{}", issuer(&state, &key, rule), mount("srv", &server));
        let world = World::start_in(state, &toml).await;
        world.until("srv", |mount| mount.state == "ready").await;
        let called = async |scope: &str| {
            let client = bearer(&world, Era::Stateless, &key, scope).open().await;
            let mut did = Vec::new();
            for tool in ["srv__look", "srv__push", "srv__rule"] {
                did.push(client.tool(tool, json!({})).await.get("result").is_some());
            }
            (client.tools().await.len(), did)
        };
        assert_eq!(called("tools read").await, (1, vec![true, false, false]));
        assert_eq!(called("tools read write").await, (2, vec![true, true, false]));
        assert_eq!(called("tools read write admin").await, (3, vec![true; 3]));
        assert_eq!(called("tools").await, (0, vec![false; 3]));
        assert_eq!(asked(&server).len(), 6, "what is refused goes nowhere");
    })
    .await;
}

#[tokio::test]
async fn ax_40_streams_end_with_a_removed_token() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![reads("look")]).await;
        let (ann, bob) = (format!("{}{}", token("ann"), mount("srv", &server)), token("bob"));
        let world = World::start(&format!("{ann}{bob}")).await;
        let client = async |who: &str, era| Client::new(&world, era).with("authorization", &format!("Bearer secret-of-{who}")).open().await;
        let mut open = Vec::new();
        for who in ["ann", "bob"] {
            let session = client(who, Era::Initialize).await;
            let params = json!({"notifications": {"toolsListChanged": true}});
            let mut listening = client(who, Era::Stateless).await.begin("subscriptions/listen", params).await;
            listening.next_of("notifications/subscriptions/acknowledged").await;
            open.push((session.listen(None).await, listening, session));
        }
        world.apply(&ann);
        let (mut session, mut listening, bob) = open.remove(1);
        while session.next_or_break().await.is_some() {}
        while listening.next_or_break().await.is_some() {}
        assert_eq!(bob.listen(None).await.status, 401);
        let (mut session, mut listening, ann) = open.remove(0);
        server.list(vec![reads("look"), reads("more")]);
        session.next_of("notifications/tools/list_changed").await;
        listening.next_of("notifications/tools/list_changed").await;
        eventually(async || (ann.tools().await.len() == 2).then_some(())).await;
    })
    .await;
}
