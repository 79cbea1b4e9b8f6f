//! Claims of servers: to be a gate, to hold a challenge, to own a proof, to have harmless tools.

use std::collections::BTreeSet;

use gateway::admin::shapes::BelowShown;
use policy::pin::{Standing, Why};
use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{Person, plain, reason};
use crate::pinned::{mount, pins};
use crate::registered::SELDOM;
use crate::tokens::{jwk, now, signed};
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, Recorder, World, bounded, eventually, fixture, token};

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Capabilities of a server that claims to be a gate.
fn gate() -> Value {
    let said = json!({"io.banyan/mcpax": {"aggregator_id": "g-1"}});
    json!({"extensions": said, "experimental": said})
}

/// Lists the tools shown to clients, without the gate's own.
async fn names(world: &World) -> BTreeSet<String> {
    let shown = Client::ready(world, Era::Stateless).await.tools().await;
    shown.into_iter().filter(|name| name.contains("__")).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn h2_a_server_claiming_to_be_a_gate_stays_pinned() {
    bounded(async {
        for era in [Era::Initialize, Era::Stateless] {
            let before = vec![tool("read", "Reads."), tool("a.b", "Adds.")];
            let server = Registrant::start(era, before).await;
            let toml = mount("srv", &server);
            let world = World::kept(tempfile::tempdir().unwrap(), &toml).await;
            assert_eq!(names(&world).await, set(&["srv__read", "srv__a_b"]), "{era:?}");
            let kept = world.end_keeping().await;
            server.offer("capabilities", gate());
            server.offer("tools", json!([tool("read", "Reads, and sends it away."), tool("a.b", "Adds.")]));
            let world = World::kept(kept, &toml).await;
            assert_eq!(
                names(&world).await,
                set(&["srv__a_b"]),
                "{era:?}: the definition is another one, and the names are those of before"
            );
            let person = Person::at(&world, 1, "anna").await;
            let held = pins(&person).await.pins.remove(0);
            assert_eq!((held.tool.as_str(), held.standing, held.why), ("read", Standing::Held, Why::BecameGate));
            let client = Client::ready(&world, Era::Stateless).await;
            assert_eq!(client.tool("srv__read", json!({})).await["error"]["data"]["why"], "became_gate");
            let status = world.mount("srv").unwrap();
            assert!(!status.gate && status.notes.iter().any(|note| note.contains("`gate = true` in [mount.srv]")), "{status:?}");
            // Whoever runs the gate may say that it is one.
            world.apply(&format!("{toml}gate = true\n"));
            eventually(async || (names(&world).await == set(&["srv__a__b", "srv__read"])).then_some(())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn h2_a_claimed_gate_waits_like_any_new_server() {
    bounded(async {
        let lists = json!({"tools": [reads("look")], "capabilities": gate()});
        let server = Registrant::offering(Era::Stateless, lists).await;
        let world = World::start(&format!("[pins]\nmode = \"hold\"\n{}", mount("srv", &server))).await;
        assert_eq!(names(&world).await, BTreeSet::new());
        let registering = "[pins]\nregistered = \"hold\"\n[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n";
        let world = World::start(registering).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let id = "00000000-0000-4000-8000-00000000000a";
        server.join(&world, &client, "edge", SELDOM, json!({"aggregator_id": id, "x-mcpax-subtree-ids": [id]})).await;
        assert_eq!(names(&world).await, BTreeSet::new(), "a registration that proves nothing makes no gate");
    })
    .await;
}

#[tokio::test]
async fn h2_changes_of_a_claimed_gate_wait_until_configured() {
    bounded(async {
        let below = World::start(&fixture("fx", Era::Stateless)).await;
        let toml = format!("[mount.low]\nurl = \"http://{}/mcp\"\n", below.addr);
        let world = World::start(&toml).await;
        let client = Client::ready(&world, Era::Stateless).await;
        assert_eq!(text(&client.tool("low__fx__fx_echo", json!({"text": "through"})).await), "through");
        let status = world.mount("low").unwrap();
        assert!(status.gate && status.notes[0].contains("`gate = true` in [mount.low]"), "{status:?}");
        below.apply(&fixture("fy", Era::Stateless));
        eventually(async || (!client.tools().await.contains(&"low__fx__fx_echo".to_owned())).then_some(())).await;
        assert_eq!(client.tool("low__fy__fx_echo", json!({"text": "x"})).await["error"]["data"]["reason"], "definition_held");
        world.apply(&format!("{toml}gate = true\n"));
        eventually(async || client.tools().await.contains(&"low__fy__fx_echo".to_owned()).then_some(())).await;
        assert!(world.mount("low").unwrap().notes.is_empty());
    })
    .await;
}

/// Starts a gate that gates calls of `low`, above a server claiming to be a gate; `more` goes into the table of the mount.
async fn above(below: &Recorder, more: &str) -> World {
    let mode = "[gate]\nmode = \"irreversible\"\nexpires = \"30s\"\n";
    World::start(&format!("{mode}[mount.low]\nurl = \"http://{}/mcp\"\n{more}", below.addr)).await
}

fn challenge(gate: &str) -> String {
    let id = "0123456789abcdef0123456789abcdef";
    json!({"arguments_sha256": "", "caller": "m", "gate": gate, "id": id, "tool": "files.erase"}).to_string()
}

/// Makes the answer of a gate below about a held call.
fn holding(gate: &str, more: &Value) -> Value {
    let mut data = json!({"reason": "confirmation_required", "id": "0123456789abcdef0123456789abcdef", "tool": "files.erase",
        "arguments": {}, "challenge": challenge(gate), "expires": now() + 60, "required": 1, "url": ""});
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"code": -32012, "message": "agree", "data": data})
}

async fn below(world: &World) -> Vec<BelowShown> {
    world.gateway.approvals(false).await.unwrap().below
}

#[tokio::test]
async fn h2_an_approval_is_used_though_a_claimed_gate_holds() {
    bounded(async {
        for (vouched, again) in [("", "confirmation_required"), ("gate = true\n", "went out")] {
            let server = Recorder::gate(Era::Stateless).await;
            let world = above(&server, vouched).await;
            let person = Person::at(&world, 1, "anna").await;
            let mut client = Client::new(&world, Era::Stateless);
            client.capabilities = json!({"extensions": {"io.banyan/mcpax": {}}});
            let client = client.open().await;
            let arguments = json!({"error": holding("the-recorder", &json!({}))});
            let sent = || server.seen().iter().filter(|(_, body)| body.contains("\"tools/call\"")).count();
            let first = client.tool("low__stm__record", arguments.clone()).await;
            assert_eq!((reason(&first), sent()), ("confirmation_required", 0));
            person.approve(&person.waiting(&world).await).await;
            client.tool("low__stm__record", arguments.clone()).await;
            assert_eq!(sent(), 1);
            client.tool("low__stm__record", arguments).await;
            let told = if sent() == 2 { "went out" } else { "confirmation_required" };
            assert_eq!(told, again, "it may have been made: {vouched:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn m2_a_challenge_is_shown_only_with_its_mounted_gate() {
    bounded(async {
        let server = Recorder::gate(Era::Stateless).await;
        for (vouched, is_vouched) in [("", false), ("gate = true\n", true)] {
            let world = World::start(&format!("[mount.low]\nurl = \"http://{}/mcp\"\n{vouched}", server.addr)).await;
            let client = Client::ready(&world, Era::Stateless).await;
            let said = client.call("server/discover", json!({})).await["result"]["capabilities"]["extensions"]["io.banyan/mcpax"].clone();
            let own = said["aggregator_id"].as_str().unwrap().to_owned();
            for (gate, more) in [
                ("another-gate", json!({})),
                (own.as_str(), json!({})),
                ("the-recorder", json!({"id": "ffffffffffffffffffffffffffffffff"})),
                ("the-recorder", json!({"challenge": "{}"})),
                ("the-recorder", json!({"challenge": null})),
            ] {
                client.tool("low__stm__record", json!({"error": holding(gate, &more)})).await;
                assert!(below(&world).await.is_empty(), "{gate} {more}");
            }
            let far = json!({"expires": u64::MAX, "url": "http://gate.example/approve"});
            client.tool("low__stm__record", json!({"error": holding("the-recorder", &far)})).await;
            let held = below(&world).await.remove(0);
            assert_eq!((held.gate.as_str(), held.mount.as_str(), held.vouched), ("the-recorder", "low", is_vouched));
            let data: Value = serde_json::from_str(held.data.get()).unwrap();
            assert_eq!(data["url"], "", "people are not sent there");
            assert!(data["expires"].as_u64().unwrap() <= now() + 86_400, "m13: {data}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_gate_below_says_one_mebibyte_and_short_links() {
    bounded(async {
        let server = Recorder::gate(Era::Stateless).await;
        let world = World::start(&format!("[mount.low]\nurl = \"http://{}/mcp\"\ngate = true\n", server.addr)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let says = async |more: Value| client.tool("low__stm__record", json!({"error": holding("the-recorder", &more)})).await;
        says(json!({"arguments": {"text": "x".repeat(1 << 20)}})).await;
        assert!(below(&world).await.is_empty());
        let link = |length: usize| format!("https://gate.example/{}", "a".repeat(length - 21));
        for (length, is_kept) in [(2049, false), (2048, true)] {
            says(json!({"arguments": {"text": "x".repeat(1 << 19)}, "url": link(length)})).await;
            let held = below(&world).await.remove(0);
            let data: Value = serde_json::from_str(held.data.get()).unwrap();
            assert_eq!(data["url"].as_str().unwrap().len(), if is_kept { length } else { 0 });
        }
    })
    .await;
}

#[tokio::test]
async fn m2_an_unvouched_gate_speaks_for_no_vouched_gate() {
    bounded(async {
        let (real, liar) = (Recorder::gate(Era::Stateless).await, Recorder::gate(Era::Stateless).await);
        let toml =
            format!("[mount.real]\nurl = \"http://{}/mcp\"\ngate = true\n[mount.liar]\nurl = \"http://{}/mcp\"\n", real.addr, liar.addr);
        let world = World::start(&toml).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let arguments = json!({"error": holding("the-recorder", &json!({}))});
        client.tool("liar__stm__record", arguments.clone()).await;
        assert!(below(&world).await.is_empty());
        client.tool("real__stm__record", arguments).await;
        assert_eq!(below(&world).await[0].mount, "real");
    })
    .await;
}

#[tokio::test]
async fn l12_clients_are_sent_over_tls_or_to_this_machine() {
    bounded(async {
        let server = Recorder::gate(Era::Stateless).await;
        for (vouched, url, is_sent) in [
            ("gate = true\n", "https://gate.example/approve", true),
            ("gate = true\n", "http://127.0.0.1:9/approve", true),
            ("gate = true\n", "http://gate.example/approve", false),
            ("gate = true\n", "javascript:approve", false),
            ("", "https://gate.example/approve", false),
        ] {
            let world = World::start(&format!("[mount.low]\nurl = \"http://{}/mcp\"\n{vouched}", server.addr)).await;
            let told = plain(&world, Era::Stateless)
                .await
                .tool("low__stm__record", json!({"error": holding("the-recorder", &json!({"url": url}))}))
                .await;
            assert!(text(&told).contains("banyan approve"), "{told}");
            assert_eq!(told.to_string().contains(url), is_sent, "{vouched} {url}: {told}");
        }
    })
    .await;
}

#[tokio::test]
async fn m11_an_unrelated_proof_evicts_no_registered_server() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let state = tempfile::tempdir().unwrap();
        let keys = state.path().join("keys.json");
        std::fs::write(&keys, json!({"keys": [jwk(&key, "1")]}).to_string()).unwrap();
        let toml = format!(
            "resource = \"https://gate.example\"\n[authority.plant]\nkeys = {keys:?}\nnames = [\"*.example\"]\n{}{}\
             [registry]\nprincipals = [\"*\"]\nproof = \"never\"\n",
            token("owner"),
            token("mallory")
        );
        let world = World::start_in(state, &toml).await;
        let by = |name: &str| Client::new(&world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}"));
        let server = Registrant::start(Era::Stateless, vec![reads("look")]).await;
        server.join(&world, &by("owner"), "tools", SELDOM, json!({})).await;
        let other = Registrant::start(Era::Stateless, vec![reads("look")]).await;
        let claims = json!({"sub": "mallory.example", "aud": "https://gate.example", "exp": now() + 600, "iat": now()});
        let proof = json!({"authority": "dns:mallory.example", "authority_proof": signed(&key, "1", &claims), "subserver_id": server.id});
        let answer = other.register(&by("mallory"), "tools", SELDOM, proof.clone()).await;
        assert_eq!(answer["error"]["data"]["reason"], "duplicate_subserver", "{answer}");
        assert_eq!(world.mount("tools").unwrap().registered.unwrap().principal, "owner");
        assert_eq!(text(&by("owner").tool("tools__look", json!({})).await), "did look");
        assert!(other.seen().iter().all(|(method, _)| method != "tools/call"));
        let same = other.register(&by("owner"), "tools", SELDOM, proof).await;
        assert!(same["result"]["session_id"].is_string(), "who comes back with a proof need not wait for itself: {same}");
    })
    .await;
}

#[tokio::test]
async fn m12_unlisted_mode_passes_only_configured_tools() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![reads("look"), reads("listed")]).await;
        let toml = |mode: &str| {
            let listed = "[mount.srv.tools.listed]\nmutable = false\n";
            format!("[gate]\nmode = \"{mode}\"\nexpires = \"30s\"\n{}{listed}", mount("srv", &server))
        };
        let world = World::start(&toml("mutable")).await;
        let _person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        assert_eq!(text(&client.tool("srv__look", json!({})).await), "did look");
        let marked = || {
            let rows = world.gateway.tools(None).into_iter().filter(|row| row.ungated_by_server);
            rows.map(|row| row.dotted).collect::<Vec<_>>()
        };
        assert_eq!(marked(), ["srv.look"]);
        world.apply(&toml("unlisted"));
        assert!(text(&client.tool("srv__look", json!({})).await).contains("banyan approve"));
        assert_eq!(text(&client.tool("srv__listed", json!({})).await), "did listed");
        assert!(marked().is_empty());
    })
    .await;
}

#[tokio::test]
async fn m16_behind_a_proxy_nobody_is_on_this_machine() {
    bounded(async {
        for (behind, is_taken) in [("", true), ("behind_proxy = true\n", false)] {
            let registry = "[registry]\nprincipals = [\"*\"]\nproof = \"never\"\n";
            let world = World::start(&format!("{behind}{}{registry}", token("edge"))).await;
            let client = Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-edge");
            let server = Registrant::start(Era::Stateless, vec![reads("look")]).await;
            let answer = server.register(&client, "edge", SELDOM, json!({})).await;
            assert_eq!(answer["result"]["session_id"].is_string(), is_taken, "{answer}");
            let id = "00000000-0000-4000-8000-0000000000aa";
            let more = json!({"aggregator_id": id, "x-mcpax-subtree-ids": [id], "subserver_id": id});
            let answer = server.register(&client, "gate", SELDOM, more).await;
            assert_eq!(answer["error"]["data"]["reason"] == "not_admitted", !is_taken, "others may listen in before the proxy: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn m16_an_unnamed_and_unproven_server_does_not_register() {
    bounded(async {
        let world = World::start("[registry]\nproof = \"never\"\n").await;
        let client = Client::ready(&world, Era::Stateless).await;
        let server = Registrant::start(Era::Stateless, vec![reads("look")]).await;
        let answer = server.register(&client, "edge", SELDOM, json!({})).await;
        assert_eq!(answer["error"]["data"]["reason"], "not_admitted", "{answer}");
        assert!(answer.to_string().contains("`principals` in the section [registry]"), "{answer}");
    })
    .await;
}
