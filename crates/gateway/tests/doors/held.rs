//! Calls waiting for approval: news for each kind of client, and the ways to release a call or not.

use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway::admin::client::AdminClient;
use gateway::admin::presence::{Presence, PresenceFile};
use gateway::admin::shapes::{ApprovalShown, OperatorShown};
use policy::approval::Standing;
use serde_json::{Value, json};

use crate::asked::text;
use crate::world::{Client, Era, World, bounded, eventually, fixture};

pub(crate) const GATED: &str = "[gate]\nmode = \"irreversible\"\nexpires = \"30s\"\n";

/// A key to sign with.
pub(crate) struct Key(Ed25519KeyPair);

impl Key {
    pub(crate) fn of(seed: u8) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    /// Writes the public key as OpenSSH does.
    pub(crate) fn line(&self) -> String {
        let mut blob = Vec::new();
        for part in [&b"ssh-ed25519"[..], self.0.public_key().as_ref()] {
            blob.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
            blob.extend_from_slice(part);
        }
        format!("ssh-ed25519 {}", STANDARD.encode(blob))
    }

    pub(crate) fn proof(&self, challenge: &str) -> Value {
        let key = policy::approval::PublicKey::parse(&self.line()).unwrap().fingerprint();
        json!({"type": "ed25519", "key": key, "signature": STANDARD.encode(self.0.sign(challenge.as_bytes()))})
    }
}

/// A person with a key, and access to the gate's admin API.
pub(crate) struct Person {
    key: Key,
    pub(crate) admin: AdminClient,
    _published: PresenceFile,
    _dir: tempfile::TempDir,
}

impl Person {
    /// Enrols a person at a gate.
    pub(crate) async fn at(world: &World, seed: u8, name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (published, _commands) = world.gateway.publish(dir.path(), world.addr, "a test".into()).unwrap();
        let admin = AdminClient::new(Presence::all(dir.path()).unwrap().swap_remove(0));
        let person = Self { key: Key::of(seed), admin, _published: published, _dir: dir };
        person.enroll(name, &[]).await;
        person
    }

    pub(crate) async fn enroll(&self, name: &str, principals: &[&str]) -> OperatorShown {
        self.enroll_key(&self.key, name, principals).await
    }

    /// Enrols another key.
    pub(crate) async fn enroll_key(&self, key: &Key, name: &str, principals: &[&str]) -> OperatorShown {
        let body = json!({"name": name, "principals": principals, "key": key.line()});
        serde_json::from_slice(&self.admin.post("/-/operators", &body).await.unwrap()).unwrap()
    }

    pub(crate) fn proof(&self, challenge: &str) -> Value {
        self.key.proof(challenge)
    }

    /// Waits for an approval to be asked for.
    pub(crate) async fn waiting(&self, world: &World) -> ApprovalShown {
        let pending = |approval: &ApprovalShown| approval.standing == Standing::Pending;
        eventually(async || world.gateway.approvals(false).await.unwrap().approvals.into_iter().rfind(pending)).await
    }

    /// Agrees by the admin API.
    pub(crate) async fn approve(&self, approval: &ApprovalShown) {
        let body = json!({"proof": self.proof(&approval.challenge)});
        let answer = self.admin.post(&format!("/-/approvals/{}/confirm", approval.id), &body).await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&answer).unwrap()["standing"], "released");
    }
}

async fn gated(more: &str) -> World {
    World::start(&format!("{GATED}{more}{}", fixture("fx", Era::Initialize))).await
}

/// Makes a client that opens no addresses.
pub(crate) async fn plain(world: &World, era: Era) -> Client {
    let mut client = Client::new(world, era);
    client.capabilities = json!({});
    client.open().await
}

pub(crate) fn reason(told: &Value) -> &str {
    told["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("{told}"))
}

#[tokio::test]
async fn ax_49_a_plain_client_is_told_and_passes_once() {
    bounded(async {
        for era in [Era::Initialize, Era::Stateless] {
            let world = gated("").await;
            let person = Person::at(&world, 1, "anna").await;
            let client = plain(&world, era).await;
            let held = client.tool("fx__fx_echo", json!({"text": "x"})).await;
            assert!(held["result"]["isError"] == true && text(&held).contains("banyan approve"), "{held}");
            let again = client.tool("fx__fx_echo", json!({"text": "x"})).await;
            assert_eq!(again["result"]["_meta"], held["result"]["_meta"], "it is one call, and waits once");
            let approval = person.waiting(&world).await;
            assert_eq!((approval.tool.as_str(), approval.arguments.as_str()), ("fx.fx_echo", r#"{"text":"x"}"#));
            person.approve(&approval).await;
            assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
            let third = client.tool("fx__fx_echo", json!({"text": "x"})).await;
            assert!(third["result"]["isError"] == true, "it was good for one call: {third}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_45_a_confirming_client_gets_the_challenge_and_releases() {
    bounded(async {
        let world = gated("").await;
        let person = Person::at(&world, 1, "anna").await;
        let mut client = Client::new(&world, Era::Stateless);
        client.capabilities = json!({"extensions": {"io.banyan/mcpax": {}}});
        let client = client.open().await;
        let held = client.tool("fx__fx_echo", json!({"text": "x"})).await;
        assert_eq!((reason(&held), held["error"]["code"].as_i64()), ("confirmation_required", Some(-32012)));
        let data = &held["error"]["data"];
        assert_eq!((&data["tool"], &data["arguments"]), (&json!("fx.fx_echo"), &json!({"text": "x"})));
        assert_eq!((&data["route"], &data["annotation"]["mutable"]), (&json!(["fx", "fx_echo"]), &json!(true)));
        let last = world.gateway.overview().last;
        assert_eq!((&*last[0].route, &*last[0].outcome, last[0].refused), ("fx.fx_echo", "held", false));
        let (id, challenge) = (data["id"].clone(), data["challenge"].as_str().unwrap());
        let confirm = async |proof: Value| client.call("mcpax/confirm", json!({"id": id, "proof": proof})).await;
        let mut own = person.proof(challenge);
        own["signature"] = Key::of(9).proof(challenge)["signature"].clone();
        assert_eq!(reason(&confirm(own).await), "bad_signature");
        assert_eq!(reason(&confirm(person.proof("{}")).await), "bad_signature");
        let released = confirm(person.proof(challenge)).await;
        assert_eq!((&released["result"]["standing"], &released["result"]["approvals"]), (&json!("released"), &json!(1)), "{released}");
        assert_eq!(reason(&confirm(person.proof(challenge)).await), "approval_used");
        assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
    })
    .await;
}

#[tokio::test]
async fn ax_45_a_caller_with_progress_hears_the_reason_for_waiting() {
    bounded(async {
        for era in [Era::Initialize, Era::Stateless] {
            let world = gated("").await;
            let person = Person::at(&world, 1, "anna").await;
            let client = plain(&world, era).await;
            let params = json!({"name": "fx__fx_echo", "arguments": {"text": "x"}, "_meta": {"progressToken": "mine"}});
            let mut reply = client.begin("tools/call", params).await;
            // Before anybody agrees: whoever agrees at once leaves nothing to wait for.
            let heard = loop {
                // A stream may begin with an event that says nothing but its id.
                let event = reply.next().await.unwrap().value;
                if !event.is_null() {
                    break event;
                }
            };
            assert_eq!(heard["params"]["progressToken"], "mine", "{heard}");
            assert!(heard["params"]["message"].as_str().unwrap().contains("fx.fx_echo"), "{heard}");
            let approval = person.waiting(&world).await;
            assert!(approval.attended);
            person.approve(&approval).await;
            let (_, told) = reply.finish().await;
            assert_eq!(text(&told.value), "x");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_49_an_address_opening_stateless_client_returns_with_state() {
    bounded(async {
        let world = gated("").await;
        let person = Person::at(&world, 1, "anna").await;
        let mut client = Client::new(&world, Era::Stateless);
        client.capabilities = json!({"elicitation": {"url": {}}});
        let client = client.open().await;
        let held = client.tool("fx__fx_echo", json!({"text": "x"})).await;
        let question = &held["result"]["inputRequests"]["approval"];
        assert_eq!((&held["result"]["resultType"], &question["params"]["mode"]), (&json!("input_required"), &json!("url")), "{held}");
        person.approve(&person.waiting(&world).await).await;
        let back = |arguments: Value| {
            json!({"name": "fx__fx_echo", "arguments": arguments, "requestState": held["result"]["requestState"],
                "inputResponses": {"approval": {"action": "accept"}}})
        };
        let edited = client.call("tools/call", back(json!({"text": "y"}))).await;
        assert_eq!(reason(&edited), "approval_void");
        assert_eq!(text(&client.call("tools/call", back(json!({"text": "x"}))).await), "x");
    })
    .await;
}

#[tokio::test]
async fn ax_49_a_session_is_asked_to_open_the_address() {
    bounded(async {
        let world = gated("").await;
        let person = Person::at(&world, 1, "anna").await;
        let mut client = Client::new(&world, Era::Initialize);
        client.capabilities = json!({"elicitation": {"url": {}}});
        let client = client.open().await;
        let agreeing = async { person.approve(&person.waiting(&world).await).await };
        let dialogue = client.dialogue("fx__fx_echo", json!({"text": "x"}), |_| json!({"action": "accept"}));
        let ((questions, told), ()) = tokio::join!(dialogue, agreeing);
        assert!(questions.iter().all(|q| q["params"]["mode"] == "url"), "{questions:?}");
        assert_eq!(text(&told), "x");
        let (_, told) = client.dialogue("fx__fx_echo", json!({"text": "no"}), |_| json!({"action": "decline"})).await;
        assert_eq!(reason(&told), "approval_withdrawn");
    })
    .await;
}

#[tokio::test]
async fn ax_45_denied_expired_and_nobody_there_are_three_answers() {
    bounded(async {
        let world = World::start(&format!("[gate]\nmode = \"mutable\"\nexpires = \"2s\"\n{}", fixture("fx", Era::Stateless))).await;
        let client = plain(&world, Era::Stateless).await;
        let echo = async || client.tool("fx__fx_echo", json!({"text": "x"})).await;
        assert_eq!(reason(&echo().await), "no_approver");
        let person = Person::at(&world, 1, "anna").await;
        assert!(echo().await["result"]["isError"] == true);
        let approval = person.waiting(&world).await;
        person.admin.post(&format!("/-/approvals/{}/deny", approval.id), &json!({"reason": "not on a Friday"})).await.unwrap();
        let denied = echo().await;
        assert_eq!((reason(&denied), &denied["error"]["data"]["why"]), ("approval_denied", &json!("not on a Friday")));
        assert!(echo().await["result"]["isError"] == true, "once told, it may be asked for again");
        let id = person.waiting(&world).await.id;
        eventually(async || (world.gateway.approval(&id).await.unwrap().standing.is_over()).then_some(())).await;
        assert_eq!(reason(&echo().await), "approval_expired");
        person.enroll("anna", &["local"]).await;
        assert_eq!(reason(&echo().await), "no_approver", "nobody approves a call of its own");
    })
    .await;
}

#[tokio::test]
async fn ax_46_racing_confirmations_release_a_call_once() {
    bounded(async {
        let world = Arc::new(gated("").await);
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        client.tool("fx__fx_echo", json!({"text": "x"})).await;
        let approval = person.waiting(&world).await;
        let params = json!({"id": approval.id, "proof": person.proof(&approval.challenge)});
        let confirms = (0..16).map(|_| client.call("mcpax/confirm", params.clone()));
        let answers = futures_util::future::join_all(confirms).await;
        assert_eq!(answers.iter().filter(|a| a["result"]["standing"] == "released").count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|a| a["error"].is_object() && reason(a) == "approval_used").count(), 15);
        let calls = (0..16).map(|_| client.tool("fx__fx_echo", json!({"text": "x"})));
        let answers = futures_util::future::join_all(calls).await;
        assert_eq!(answers.iter().filter(|a| a["result"].is_object() && a["result"]["isError"] != true).count(), 1, "{answers:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_46_waiting_and_approved_calls_survive_a_restart() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let toml = format!("{GATED}{}", fixture("fx", Era::Stateless));
        let start = async |state| World::kept(state, &toml).await;
        let world = start(state).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        client.tool("fx__fx_echo", json!({"text": "x"})).await;
        let before = person.waiting(&world).await;
        let world = start(world.end_keeping().await).await;
        let person = Person::at(&world, 1, "anna").await;
        let after = person.waiting(&world).await;
        assert_eq!(after, ApprovalShown { url: after.url.clone(), ..before });
        person.approve(&after).await;
        let client = plain(&world, Era::Stateless).await;
        assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
        let world = start(world.end_keeping().await).await;
        let client = plain(&world, Era::Stateless).await;
        assert!(client.tool("fx__fx_echo", json!({"text": "x"})).await["result"]["isError"] == true);
    })
    .await;
}

#[tokio::test]
async fn ax_46_what_can_not_be_written_down_frees_nothing() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("banyan.db");
        let world = World::kept(state, &format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let person = Person::at(&world, 1, "anna").await;
        let client = plain(&world, Era::Stateless).await;
        client.tool("fx__fx_echo", json!({"text": "x"})).await;
        let approval = person.waiting(&world).await;
        rusqlite::Connection::open(file).unwrap().execute_batch("DROP TABLE approvals").unwrap();
        let body = json!({"proof": person.proof(&approval.challenge)});
        let told = person.admin.post(&format!("/-/approvals/{}/confirm", approval.id), &body).await;
        assert!(told.is_err(), "it is not kept that anybody agreed, and somebody was told that it counts");
        for text in ["x", "y"] {
            let told = client.tool("fx__fx_echo", json!({"text": text})).await;
            assert_eq!((reason(&told), told["error"]["code"].as_i64()), ("policy_error", Some(-32016)), "{told}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_47_a_call_held_below_is_confirmed_from_above() {
    bounded(async {
        for link in [Era::Initialize, Era::Stateless] {
            for upper in ["", GATED] {
                let lower = gated("").await;
                let era = if link == Era::Initialize { "initialize" } else { "stateless" };
                let mount = format!("{upper}[mount.low]\nurl = \"http://{}/mcp\"\ngate = true\nera = \"{era}\"\n", lower.addr);
                let root = World::start(&mount).await;
                let (below, above) = (Person::at(&lower, 1, "anna").await, Person::at(&root, 2, "bert").await);
                let client = plain(&root, Era::Stateless).await;
                let echo = async || client.tool("low__fx__fx_echo", json!({"text": "x"})).await;
                assert!(echo().await["result"]["isError"] == true);
                if !upper.is_empty() {
                    above.approve(&above.waiting(&root).await).await;
                    assert!(echo().await["result"]["isError"] == true, "the one above clears nothing for the one below");
                }
                let shown = root.gateway.approvals(false).await.unwrap().below;
                assert_eq!((shown.len(), shown[0].mount.as_str()), (1, "low"));
                let data: Value = serde_json::from_str(shown[0].data.get()).unwrap();
                let challenge = data["challenge"].as_str().unwrap();
                let confirm = async |proof: Value| client.call("mcpax/confirm", json!({"id": shown[0].id, "proof": proof})).await;
                assert_eq!(reason(&confirm(above.proof(challenge)).await), "unknown_key", "those above are not those below");
                assert_eq!(confirm(below.proof(challenge)).await["result"]["standing"], "released");
                assert_eq!(text(&echo().await), "x", "{link:?} {upper}");
                assert!(echo().await["result"]["isError"] == true);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_47_a_gate_is_listed_to_gates_above() {
    bounded(async {
        let lower = gated("").await;
        let root = World::start(&format!("[mount.low]\nurl = \"http://{}/mcp\"\n", lower.addr)).await;
        let mut client = Client::new(&root, Era::Stateless);
        client.capabilities = json!({"extensions": {"io.banyan/mcpax": {}}});
        let client = client.open().await;
        let listed = client.call("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let echo = tools.iter().find(|tool| tool["name"].as_str().unwrap().ends_with("fx_echo")).unwrap();
        assert_eq!(echo["_meta"]["x-mcpax-gated"], true, "{echo}");
    })
    .await;
}

#[tokio::test]
async fn ax_45_reading_passes_and_a_mount_may_override_the_mode() {
    bounded(async {
        let reads = "[mount.fx.tools.\"fx_echo\"]\nmutable = false\ntrust = true\n";
        let world = World::start(&format!("[gate]\nmode = \"mutable\"\n{}{reads}", fixture("fx", Era::Stateless))).await;
        let client = plain(&world, Era::Stateless).await;
        assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
        let world =
            World::start(&format!("[gate]\nmode = \"mutable\"\nmounts = {{ fx = \"off\" }}\n{}", fixture("fx", Era::Stateless))).await;
        let client = plain(&world, Era::Stateless).await;
        assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
    })
    .await;
}
