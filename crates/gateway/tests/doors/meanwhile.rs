//! Changes between the question and the approved call: of the definition, the rules, the server. The call goes out as shown, once, or not
//! at all.

use policy::approval::Standing;
use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{GATED, Key, Person, plain, reason};
use crate::pinned::mount;
use crate::world::registrant::Registrant;
use crate::world::{Client, Era, World, bounded, eventually, fixture};

fn wipe(description: &str) -> Value {
    json!({"name": "wipe", "description": description, "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}})
}

/// Starts a gate in front of a tool, that trusts the lists of its server.
async fn trusting(server: &Registrant) -> World {
    World::start(&format!("[pins]\nmode = \"trust\"\n{GATED}{}", mount("srv", server))).await
}

async fn lists(client: &Client, description: &str) {
    eventually(async || client.call("tools/list", json!({})).await.to_string().contains(description).then_some(())).await;
}

#[tokio::test]
async fn ax_46_an_approval_covers_no_other_definition() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![wipe("Wipes a copy.")]).await;
        let world = trusting(&server).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        assert!(client.tool("srv__wipe", json!({})).await["result"]["isError"] == true);
        let shown = person.waiting(&world).await;
        server.list(vec![wipe("Wipes everything.")]);
        lists(&client, "Wipes everything.").await;
        person.approve(&shown).await;
        let told = client.tool("srv__wipe", json!({})).await;
        assert!(told["result"]["isError"] == true && text(&told).contains("was not called"), "{told}");
        let all = world.gateway.approvals(false).await.unwrap().approvals;
        let anew = all.into_iter().find(|one| one.standing == Standing::Pending).unwrap();
        assert!(anew.id != shown.id && anew.definition_sha256 != shown.definition_sha256, "{anew:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_46_a_changed_definition_voids_a_waiting_approval() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![wipe("Wipes a copy.")]).await;
        let world = trusting(&server).await;
        let person = Person::at(&world, 1, "anna").await;
        let (client, other) = (plain(&world, Era::Stateless).await, plain(&world, Era::Stateless).await);
        let agreeing = async {
            let shown = person.waiting(&world).await;
            server.list(vec![wipe("Wipes everything.")]);
            lists(&other, "Wipes everything.").await;
            person.approve(&shown).await;
        };
        let params = json!({"name": "srv__wipe", "arguments": {}, "_meta": {"progressToken": "mine"}});
        let ((_, told), ()) = tokio::join!(client.whole("tools/call", params), agreeing);
        assert_eq!(reason(&told.value), "approval_void", "{}", told.value);
    })
    .await;
}

#[tokio::test]
async fn ax_46_an_approval_under_other_rules_is_void_after_restart() {
    bounded(async {
        let toml = format!("{GATED}{}", fixture("fx", Era::Stateless));
        for stricter in [toml.replace("irreversible", "mutable"), toml.replace("expires", "approvals = 2\nexpires")] {
            let world = World::kept(tempfile::tempdir().unwrap(), &toml).await;
            let person = Person::at(&world, 1, "anna").await;
            person.enroll_key(&Key::of(2), "bert", &[]).await;
            let echo = async |client: &Client| client.tool("fx__fx_echo", json!({"text": "x"})).await;
            echo(&plain(&world, Era::Stateless).await).await;
            let agreed = person.waiting(&world).await;
            person.approve(&agreed).await;
            let world = World::kept(world.end_keeping().await, &stricter).await;
            let all = world.gateway.approvals(true).await.unwrap().approvals;
            let standing = all.iter().find(|one| one.id == agreed.id).map(|one| (one.standing.as_str().to_owned(), one.reason.clone()));
            assert_eq!(standing, Some(("void".to_owned(), Some("the policy changed".to_owned()))));
            let told = echo(&plain(&world, Era::Stateless).await).await;
            assert!(told["result"]["isError"] == true && text(&told).contains("was not called"), "{told}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_48_a_call_that_waits_or_is_denied_costs_nothing() {
    bounded(async {
        let budget = "[budget.few]\nprincipals = [\"*\"]\nmax_calls_per_minute = 1\n";
        let world = World::start(&format!("{GATED}{budget}{}", fixture("fx", Era::Stateless))).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        let echo = async || client.tool("fx__fx_echo", json!({"text": "x"})).await;
        let spent = || world.gateway.budgets().iter().map(|budget| budget.calls_in_minute).sum::<u64>();
        for _ in 0..3 {
            assert!(text(&echo().await).contains("was not called"));
        }
        let denied = person.waiting(&world).await.id;
        person.admin.post(&format!("/-/approvals/{denied}/deny"), &json!({"reason": "no"})).await.unwrap();
        assert_eq!((reason(&echo().await), spent()), ("approval_denied", 0));
        echo().await;
        person.approve(&person.waiting(&world).await).await;
        assert_eq!((text(&echo().await), spent()), ("x", 1));
        assert_eq!(reason(&echo().await), "budget_exceeded");
    })
    .await;
}

#[tokio::test]
async fn ax_46_what_nobody_would_read_waits_for_nobody() {
    bounded(async {
        let world = World::start(&format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let _person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        let told = client.tool("fx__fx_echo", json!({"text": "x".repeat(256 << 10)})).await;
        assert_eq!(told["error"]["code"], -32602, "{told:.300}");
        assert!(world.gateway.approvals(true).await.unwrap().approvals.is_empty());
    })
    .await;
}

/// A server of the initialize era that dies as soon as its tool is called, and notes each call in a file. With `for good` the server
/// answers the call first, and stays dead.
const DYING: &str = r#"
import json, os, sys
if len(sys.argv) > 2 and os.path.exists(sys.argv[1]):
    sys.exit("gone")
for line in sys.stdin:
    ask = json.loads(line)
    if ask["method"] == "tools/call":
        open(sys.argv[1], "a").write("called\n")
        if len(sys.argv) > 2:
            print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": {"content": []}}), flush=True)
        os._exit(1)
    told = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "dying", "version": "1"}},
            "tools/list": {"tools": [{"name": "wipe", "inputSchema": {"type": "object"}}]}}.get(ask["method"], {})
    if "id" in ask:
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": told}), flush=True)
"#;

#[tokio::test]
async fn ax_46_a_call_whose_server_dies_is_never_repeated() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let (script, calls) = (dir.path().join("dying.py"), dir.path().join("calls"));
        std::fs::write(&script, DYING).unwrap();
        let world = World::start(&format!("{GATED}[mount.srv]\ncommand = \"python3\"\nargs = [{script:?}, {calls:?}]\n")).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        let call = async || client.tool("srv__wipe", json!({})).await;
        assert!(call().await["result"]["isError"] == true);
        person.approve(&person.waiting(&world).await).await;
        assert!(call().await["error"].is_object(), "its server is gone");
        let stands = eventually(async || {
            let all = world.gateway.approvals(true).await.unwrap().approvals;
            all.into_iter().map(|one| one.standing).find(|standing| standing.is_over())
        });
        assert_eq!(stands.await, Standing::OutcomeUnknown);
        world.until("srv", |mount| mount.state == "ready").await;
        assert_eq!(reason(&call().await), "outcome_unknown");
        assert_eq!(std::fs::read_to_string(calls).unwrap(), "called\n");
    })
    .await;
}

#[tokio::test]
async fn ax_46_an_unsent_call_uses_no_grant() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let (script, calls) = (dir.path().join("dying.py"), dir.path().join("calls"));
        std::fs::write(&script, DYING).unwrap();
        let toml = format!("{GATED}[mount.srv]\ncommand = \"python3\"\nargs = [{script:?}, {calls:?}, \"for good\"]\n");
        let world = World::start(&toml).await;
        world.until("srv", |mount| mount.state == "ready").await;
        let person = Person::at(&world, 1, "anna").await;
        let terms =
            json!({"tool": "srv.*", "caller": "local", "arguments": {}, "any_other": true, "expires": 4_000_000_000_u64, "uses": 9});
        let asked = person.admin.post("/-/grants/statement", &json!({"terms": terms})).await.unwrap();
        let asked: Value = serde_json::from_slice(&asked).unwrap();
        let proof = person.proof(asked["text"].as_str().unwrap());
        person.admin.post("/-/grants", &json!({"id": asked["id"], "terms": terms, "proofs": [proof]})).await.unwrap();
        let used = async || person.admin.get::<Value>("/-/grants", &[]).await.unwrap()["grants"][0]["used"].clone();
        let client = plain(&world, Era::Stateless).await;
        assert_eq!((client.tool("srv__wipe", json!({})).await["result"]["content"].clone(), used().await), (json!([]), json!(1)));
        world.until("srv", |mount| mount.state != "ready").await;
        let told = client.tool("srv__wipe", json!({})).await;
        assert!(told.get("error").is_some(), "{told}");
        assert_eq!(used().await, 1);
    })
    .await;
}
