//! Servers that register themselves by requests over HTTP, from beginning to end. Does not try links.

use std::time::Duration;

use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};

use crate::asked::text;
use crate::tokens::{jwk, now, signed};
use crate::world::registrant::{Registrant, reads, writes};
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

/// A gate open to every registration; lost tools stay for a minute.
const OPEN: &str = "[registry]\nprincipals = [\"*\"]\ngrace = \"1m\"\n";
/// Heartbeat interval of tests with another subject.
pub(crate) const SELDOM: u64 = 60_000;
/// Client capabilities of a reader of MCP-AX annotations.
fn reader() -> Value {
    json!({"extensions": {"io.banyan/mcpax": {}}, "experimental": {"io.banyan/mcpax": {}}})
}

/// Makes a client of the initialize era that reads the annotations.
pub(crate) async fn above(world: &World) -> Client {
    let mut client = Client::new(world, Era::Initialize);
    client.capabilities = reader();
    client.open().await
}

fn reason(answer: &Value) -> (&Value, &Value) {
    (&answer["error"]["code"], &answer["error"]["data"]["reason"])
}

/// Starts a gate that takes registrations, and a client of that gate.
pub(crate) async fn open(era: Era) -> (World, Client) {
    let world = World::start(OPEN).await;
    let gate = Client::ready(&world, era).await;
    (world, gate)
}

#[tokio::test]
async fn ax_20_a_self_registered_server_is_called_in_either_era() {
    bounded(async {
        for (asks, serves) in Era::PAIRS {
            let world = World::start(&format!("{OPEN}{}", fixture("fx", Era::Stateless))).await;
            let server = Registrant::start(serves, vec![reads("ping")]).await;
            let gate = Client::ready(&world, asks).await;
            let declared = match asks {
                Era::Initialize => {
                    Client::new(&world, asks).greet().await.finish().await.1.value["result"]["capabilities"]["experimental"].clone()
                }
                Era::Stateless => gate.call("server/discover", json!({})).await["result"]["capabilities"]["extensions"].clone(),
            };
            assert_eq!(declared["io.banyan/mcpax"]["registry"], true, "{declared}");
            let answer = server.register(&gate, "edge", 30_000, json!({"auth_scope": "read"})).await;
            let session = &answer["result"]["session_id"];
            world.until("edge", |m| m.state == "ready").await;
            for era in [Era::Initialize, Era::Stateless] {
                let client = Client::ready(&world, era).await;
                let tools = client.tools().await;
                assert!(tools.contains(&"edge__ping".to_owned()) && tools.contains(&"fx__fx_echo".to_owned()), "{tools:?}");
                assert_eq!(text(&client.tool("edge__ping", json!({})).await), "did ping");
            }
            let alive = gate.call("mcpax/heartbeat", json!({"session_id": session})).await;
            assert_eq!(alive["result"]["status"], "alive", "{alive}");
            let status = world.mount("edge").unwrap().registered.unwrap();
            assert_eq!((status.subserver_id, status.auth_scope.as_str(), status.principal.as_str()), (server.id.clone(), "read", "local"));
        }
    })
    .await;
}

#[tokio::test]
async fn ax_21_the_answer_tells_session_segment_deadline_and_budget() {
    bounded(async {
        let (_world, gate) = open(Era::Initialize).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let answer = server.register(&gate, "edge", 30_000, json!({})).await;
        let result = &answer["result"];
        assert_eq!((&result["status"], &result["assigned_segment"]), (&json!("registered"), &json!("edge")), "{answer}");
        assert_eq!((&result["heartbeat_deadline_ms"], result["budget"].is_object()), (&json!(90_000), true), "{answer}");
        assert!(result["session_id"].is_string() && result["aggregator_id"].is_string(), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn ax_11_the_second_of_a_segment_is_refused_with_advice() {
    bounded(async {
        let world = World::start(&format!("{OPEN}{}", fixture("fx", Era::Stateless))).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let (one, two) =
            (Registrant::start(Era::Stateless, vec![reads("a")]).await, Registrant::start(Era::Stateless, vec![reads("b")]).await);
        one.join(&world, &gate, "edge", SELDOM, json!({})).await;
        let refused = two.register(&gate, "edge", SELDOM, json!({})).await;
        assert_eq!(reason(&refused), (&json!(-31001), &json!("namespace_conflict")), "{refused}");
        assert!(refused["error"]["data"]["hint"].as_str().unwrap().contains("choose another segment"));
        // Nor is a segment free that the configuration gives to a mount.
        let mounted = two.register(&gate, "fx", SELDOM, json!({})).await;
        assert_eq!((&mounted["error"]["code"], &mounted["error"]["data"]["holder"]), (&json!(-31001), &json!("mount")));
        assert_eq!(gate.tools().await.iter().filter(|name| name.starts_with("edge__")).collect::<Vec<_>>(), ["edge__a"]);
        let kept = world.gateway.refused(Some(&two.id));
        assert_eq!((kept.len(), kept[1].segment.as_deref(), kept[1].code), (2, Some("edge"), -31001), "{kept:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_13_writing_tools_need_a_proven_server() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("look"), writes("push")]).await;
        let session = server.join(&world, &gate, "edge", SELDOM, json!({"authority": "dns:edge.example"})).await;
        assert_eq!(gate.tools().await, ["edge__look"]);
        let called = gate.tool("edge__push", json!({})).await;
        assert_eq!(called["error"]["data"]["reason"], "unknown_tool", "{called}");
        let alive = gate.call("mcpax/heartbeat", json!({"session_id": session})).await;
        assert_eq!(alive["result"]["withheld"], 1, "{alive}");
        let notes = world.mount("edge").unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("`push` (authority_required)")), "{notes:?}");
        assert!(server.seen().iter().all(|(method, _)| method != "tools/call"));
        // Where the operator demands no proof, all of it is shown.
        let lenient =
            World::start("[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n[registry.segment.bank]\nproof = \"always\"\n").await;
        let gate = Client::ready(&lenient, Era::Stateless).await;
        server.join(&lenient, &gate, "edge", SELDOM, json!({})).await;
        assert_eq!(text(&gate.tool("edge__push", json!({})).await), "did push");
        let refused = server.register(&gate, "bank", SELDOM, json!({})).await;
        assert_eq!(reason(&refused), (&json!(-31007), &json!("authority_required")), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn ax_13_a_signed_proof_shows_what_changes_something() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let state = tempfile::tempdir().unwrap();
        let keys = state.path().join("keys.json");
        std::fs::write(&keys, json!({"keys": [jwk(&key, "1")]}).to_string()).unwrap();
        let toml =
            format!("resource = \"https://gate.example\"\n[authority.plant]\nkeys = {keys:?}\nnames = [\"*.plant.example\"]\n{OPEN}");
        let world = World::start_in(state, &toml).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![writes("push")]).await;
        let proof = |subject: &str| {
            let claims = json!({"sub": subject, "aud": "https://gate.example", "exp": now() + 600, "iat": now()});
            json!({"authority": "dns:press.plant.example", "authority_proof": signed(&key, "1", &claims)})
        };
        let refused = server.register(&gate, "press", SELDOM, proof("other.example")).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["member"]),
            (&json!(-32602), &json!("authority_proof")),
            "{refused}"
        );
        let refused = server.register(&gate, "press", SELDOM, proof("mill.plant.example")).await;
        assert_eq!(reason(&refused), (&json!(-31006), &json!("authority_mismatch")), "{refused}");
        server.join(&world, &gate, "press", SELDOM, proof("press.plant.example")).await;
        assert_eq!(text(&gate.tool("press__push", json!({})).await), "did push");
        let status = world.mount("press").unwrap().registered.unwrap();
        assert_eq!((status.authority.as_deref(), status.proven), (Some("dns:press.plant.example"), true));
        // From now on it is nobody else's, whatever he says.
        let other = Registrant::start(Era::Stateless, vec![reads("look")]).await;
        let refused = other.register(&gate, "press", SELDOM, json!({"authority": "dns:press.plant.example"})).await;
        assert_eq!(reason(&refused).1, &json!("namespace_conflict"), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn ax_14_a_plain_server_with_a_dotted_name_is_evicted() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("a.b")]).await;
        let session = server.register(&gate, "edge", SELDOM, json!({})).await["result"]["session_id"].clone();
        let ended = eventually(async || {
            let answer = gate.call("mcpax/heartbeat", json!({"session_id": session})).await;
            answer.get("error").is_some().then_some(answer)
        })
        .await;
        assert_eq!((reason(&ended).1, &ended["error"]["data"]["ended"]), (&json!("unknown_session"), &json!("dotted_name")), "{ended}");
        let why = world.gateway.refused(Some("edge"));
        assert!(why[0].hint.contains("`a.b` holds a dot") && why[0].reason == "dotted_name", "{why:?}");
        eventually(async || world.mount("edge").is_none().then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn ax_22_missed_heartbeats_end_a_registration_and_then_its_tools() {
    bounded(async {
        let world = World::start("[registry]\nprincipals = [\"*\"]\ngrace = \"500ms\"\n").await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let session = server.join(&world, &gate, "edge", 200, json!({})).await;
        let beating = server.beat(&world, &session, 200);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.mount("edge").map(|m| m.state), Some("ready".into()));
        drop(beating);
        world.until("edge", |m| m.state == "degraded").await;
        assert!(client.tools().await.contains(&"edge__ping".to_owned()));
        let mut standing = client.listen(None).await;
        while client.tools().await.contains(&"edge__ping".to_owned()) {
            standing.next_of("notifications/tools/list_changed").await;
        }
        assert_eq!(world.mount("edge"), None);
        assert_eq!(client.tool("edge__ping", json!({})).await["error"]["data"]["reason"], "unknown_tool");
    })
    .await;
}

#[tokio::test]
async fn ax_61_a_degraded_tools_refusal_tells_reason_and_retry() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        server.join(&world, &gate, "edge", 200, json!({})).await;
        world.until("edge", |m| m.state == "degraded").await;
        for era in [Era::Initialize, Era::Stateless] {
            let mut client = Client::new(&world, era);
            client.capabilities = reader();
            let client = client.open().await;
            let refused = client.tool("edge__ping", json!({})).await;
            let error = &refused["error"];
            assert_eq!((&error["code"], &error["message"]), (&json!(-32002), &json!("tool_degraded")), "{refused}");
            let data = &error["data"];
            assert_eq!((&data["reason"], &data["cause"]), (&json!("subserver_unreachable"), &json!("heartbeats_missed")), "{refused}");
            assert_eq!(data["retry_after_ms"], 200);
            assert!(data["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{refused}");
            let listed = client.call("tools/list", json!({})).await;
            let tool = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "edge__ping").cloned().unwrap();
            assert_eq!(tool["_meta"]["x-mcpax-availability"], "degraded");
        }
        assert!(server.seen().iter().all(|(method, _)| method != "tools/call"));
    })
    .await;
}

#[tokio::test]
async fn ax_60_mcp_ax_clients_hear_of_loss_and_return() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let above = above(&world).await;
        let mut standing = above.listen(None).await;
        let mut server = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        let session = server.join(&world, &gate, "edge", 300, json!({})).await;
        let beating = server.beat(&world, &session, 300);
        server.die();
        let refused = gate.tool("edge__ping", json!({})).await;
        assert_eq!(
            (&refused["error"]["message"], &refused["error"]["data"]["cause"]),
            (&json!("tool_degraded"), &json!("link_lost")),
            "{refused}"
        );
        let mut lost = async |reason: &str| {
            let lost = standing.next_of("notifications/x-mcpax/subserver_lost").await;
            assert_eq!((&lost["params"]["reason"], &lost["params"]["_meta"]["x-mcpax-source"]), (&json!(reason), &json!("edge")));
        };
        // Its heartbeats hide no lost connection.
        lost("link_lost").await;
        drop(beating);
        lost("heartbeats_missed").await;
        let mut back = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        back.id.clone_from(&server.id);
        back.join(&world, &gate, "edge", SELDOM, json!({})).await;
        standing.next_of("notifications/tools/list_changed").await;
        assert_eq!(text(&gate.tool("edge__ping", json!({})).await), "did ping");
    })
    .await;
}

#[tokio::test]
async fn ax_26_lists_are_fetched_anew_for_every_session() {
    bounded(async {
        // One tool in the place of another would wait until somebody looks at it.
        let world = World::start(&format!("{OPEN}[pins]\nregistered = \"trust\"\n")).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let before = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        before.join(&world, &gate, "edge", 200, json!({})).await;
        world.until("edge", |m| m.state == "degraded").await;
        let mut after = Registrant::start(Era::Initialize, vec![reads("pong")]).await;
        after.id.clone_from(&before.id);
        after.join(&world, &gate, "edge", SELDOM, json!({})).await;
        assert_eq!(gate.tools().await, ["edge__pong"]);
        assert_eq!(text(&gate.tool("edge__pong", json!({})).await), "did pong");
        // The same server over the same URL, without having been lost.
        let lists = || after.seen().iter().filter(|(method, _)| method == "tools/list").count();
        let first = lists();
        after.register(&gate, "edge", SELDOM, json!({})).await;
        eventually(async || (lists() > first).then_some(())).await;
        world.until("edge", |m| m.state == "ready").await;
    })
    .await;
}

#[tokio::test]
async fn ax_23_a_server_that_deregisters_is_gone_at_once() {
    bounded(async {
        let (world, gate) = open(Era::Initialize).await;
        let mut standing = gate.listen(None).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let session = server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        standing.next_of("notifications/tools/list_changed").await;
        let answer = gate.call("mcpax/deregister", json!({"session_id": session})).await;
        assert_eq!(answer["result"]["status"], "deregistered", "{answer}");
        standing.next_of("notifications/tools/list_changed").await;
        assert_eq!(gate.tools().await, [] as [&str; 0]);
        let again = gate.call("mcpax/heartbeat", json!({"session_id": session})).await;
        assert_eq!((reason(&again).1, &again["error"]["data"]["ended"]), (&json!("unknown_session"), &json!("deregistered")));
    })
    .await;
}

#[tokio::test]
async fn ax_22_a_registration_outlives_its_mcp_session() {
    bounded(async {
        let world = World::start(OPEN).await;
        let first = Client::ready(&world, Era::Initialize).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let session = server.join(&world, &first, "edge", SELDOM, json!({})).await;
        first.delete().await;
        let second = Client::ready(&world, Era::Stateless).await;
        assert_eq!(second.call("mcpax/heartbeat", json!({"session_id": session})).await["result"]["status"], "alive");
        assert_eq!(world.mount("edge").unwrap().state, "ready");
    })
    .await;
}

#[tokio::test]
async fn ax_24_a_registration_from_above_is_refused_as_a_cycle() {
    bounded(async {
        let world = World::start(OPEN).await;
        let mut gate = Client::new(&world, Era::Stateless);
        gate.capabilities = json!({"extensions": {"io.banyan/mcpax": {"aggregator_id": "00000000-0000-4000-8000-0000000000aa"}}});
        let ids = async || gate.call("tools/list", json!({})).await["result"]["_meta"]["x-mcpax-subtree-ids"].clone();
        let own = ids().await[0].clone();
        let server = Registrant::start(Era::Stateless, vec![reads("fx.ping")]).await;
        let aggregator = |below: Value| json!({"aggregator_id": "00000000-0000-4000-8000-0000000000bb", "x-mcpax-subtree-ids": below});
        let refused = server.register(&gate, "edge", SELDOM, aggregator(json!([own]))).await;
        assert_eq!(reason(&refused), (&json!(-31002), &json!("registration_cycle")), "{refused}");
        assert_eq!(refused["error"]["data"]["ids"], json!([own]));
        let session = server.join(&world, &gate, "edge", SELDOM, aggregator(json!(["00000000-0000-4000-8000-0000000000cc"]))).await;
        let told = ids().await;
        for id in ["bb", "cc"] {
            assert!(told.as_array().unwrap().contains(&json!(format!("00000000-0000-4000-8000-0000000000{id}"))), "{told}");
        }
        // A cycle that would form later is refused as well.
        let change = json!({"session_id": session, "version": 1, "joined": [own]});
        assert_eq!(reason(&gate.call("mcpax/subtree", change).await), (&json!(-31002), &json!("registration_cycle")));
    })
    .await;
}

#[tokio::test]
async fn ax_25_a_foreign_server_and_a_taken_id_are_refused() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let elsewhere = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        elsewhere.belongs_to("00000000-0000-4000-8000-0000000000aa");
        let refused = elsewhere.register(&gate, "edge", SELDOM, json!({})).await;
        assert_eq!(reason(&refused), (&json!(-31003), &json!("split_brain")), "{refused}");
        assert_eq!(refused["error"]["data"]["registered_with"], "00000000-0000-4000-8000-0000000000aa");
        let mut one = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        one.join(&world, &gate, "one", SELDOM, json!({})).await;
        let mut two = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        two.id.clone_from(&one.id);
        let refused = two.register(&gate, "two", SELDOM, json!({})).await;
        assert_eq!(reason(&refused), (&json!(-31004), &json!("duplicate_subserver")), "{refused}");
        // Once the first is not there any more, it is the same server at another place.
        one.die();
        two.join(&world, &gate, "one", SELDOM, json!({})).await;
        assert_eq!(text(&gate.tool("one__ping", json!({})).await), "did ping");
    })
    .await;
}

#[tokio::test]
async fn ax_12_a_claim_outlives_the_session_and_the_gate() {
    bounded(async {
        let toml = "[registry]\nprincipals = [\"*\"]\ngrace = \"0s\"\nsticky = \"always\"\n";
        let world = World::member(toml).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let session = server.join(&world, &gate, "edge", SELDOM, json!({"authority": "dns:a.example"})).await;
        gate.call("mcpax/deregister", json!({"session_id": session})).await;
        let other = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let refused = async |gate: &Client| {
            let answer = other.register(gate, "edge", SELDOM, json!({"authority": "dns:b.example"})).await;
            assert_eq!(
                (reason(&answer).1, &answer["error"]["data"]["holder"]),
                (&json!("namespace_conflict"), &json!("authority")),
                "{answer}"
            );
        };
        refused(&gate).await;
        let again = World::kept(world.end_keeping().await, toml).await;
        let gate = Client::ready(&again, Era::Stateless).await;
        refused(&gate).await;
        server.join(&again, &gate, "edge", SELDOM, json!({"authority": "dns:a.example"})).await;
    })
    .await;
}

#[tokio::test]
async fn ax_40_only_the_registrant_speaks_for_a_registration() {
    bounded(async {
        let toml = format!("{}{}{}[registry]\nprincipals = [\"edge-*\"]\n", token("edge-1"), token("edge-2"), token("reader"));
        let world = World::start(&toml).await;
        let client = async |name: &str| Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}"));
        let (one, two, reader) = (client("edge-1").await, client("edge-2").await, client("reader").await);
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let refused = server.register(&reader, "edge", SELDOM, json!({})).await;
        assert_eq!(reason(&refused), (&json!(-31008), &json!("not_admitted")), "{refused}");
        let session = server.join(&world, &one, "edge", SELDOM, json!({})).await;
        let stolen = two.call("mcpax/deregister", json!({"session_id": session})).await;
        assert_eq!(reason(&stolen).1, &json!("unknown_session"), "{stolen}");
        assert_eq!(one.call("mcpax/heartbeat", json!({"session_id": session})).await["result"]["status"], "alive");
        // No token of anybody goes to a server that only says where it is.
        one.tool("edge__ping", json!({})).await;
        assert!(server.seen().iter().all(|(_, headers)| !headers.contains_key("authorization")));
    })
    .await;
}

#[tokio::test]
async fn ax_03_a_thousand_registrations_make_few_trees() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let mut standing = client.listen(None).await;
        let server = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        eventually(async || (server.streams() > 0).then_some(())).await;
        server.list(vec![reads("ping"), reads("pong")]);
        world.until("edge", |m| m.tools == 2).await;
        assert_eq!(text(&client.tool("edge__pong", json!({})).await), "did pong");
        // One server under many ids: what is tried is the gate's side.
        let all = (0..300).map(|number| {
            let more = json!({"subserver_id": format!("00000000-0000-4000-9000-{number:012x}"), "segment": format!("s{number}")});
            let (gate, server) = (&gate, &server);
            async move { server.register(gate, "-", SELDOM, more).await }
        });
        for answer in futures_util::future::join_all(all).await {
            assert!(answer.get("result").is_some(), "{answer}");
        }
        eventually(async || (world.gateway.status().iter().filter(|m| m.state == "ready").count() == 301).then_some(())).await;
        let mut told = 0;
        while let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(500), standing.next()).await {
            told += 1;
        }
        // Four lists a time.
        assert!(told < 150, "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_gate_without_registry_refuses_and_offers_no_tool() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let gate = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let refused = server.register(&gate, "edge", SELDOM, json!({})).await;
        assert!(refused["error"]["data"]["hint"].as_str().unwrap().contains("[registry]"), "{refused}");
        assert!(!gate.tools().await.contains(&"notifications_dropped".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn a_configured_mount_waits_for_a_registrations_end() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("ping")]).await;
        let session = server.join(&world, &gate, "fx", SELDOM, json!({})).await;
        world.apply(&format!("{OPEN}{}", fixture("fx", Era::Stateless)));
        assert_eq!(gate.tools().await, ["fx__ping"]);
        gate.call("mcpax/deregister", json!({"session_id": session})).await;
        world.until("fx", |m| m.state == "ready" && m.registered.is_none()).await;
        assert!(gate.tools().await.contains(&"fx__fx_echo".to_owned()));
    })
    .await;
}
