//! A model client that wants its own call to go out, at every door of a gate and at a hop. Each way gets its own refusal, only approved
//! calls reach the server, once, and the record tells all. Cases come from a seed, so that a failing case is found again by number.

mod hops;
mod table;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use futures_util::future::join_all;
use gateway::admin::shapes::AuditEntry;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use crate::held::{Key, Person, reason};
use crate::recorded::{facts, read, recording};
use crate::world::{Client, Era, Recorder, World, bounded, eventually, token};

/// Cases of each way.
const CASES: u64 = 60;
const TOOL: &str = "r__record";

/// Reproducible random numbers.
struct Dice(TestRng);

impl Dice {
    fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0.next_u32() as usize % sides
    }

    fn word(&mut self) -> String {
        format!("{:08x}", self.0.next_u32())
    }
}

/// A try: description, expected and given answer, and the approval.
struct TryOutcome {
    what: String,
    wanted: String,
    told: String,
    id: String,
}

/// A waiting call.
struct WaitingCall {
    id: String,
    challenge: String,
}

/// A gate with a server that keeps its requests, `anna` who may agree, and two models with tokens; a friend of `ann`'s has a key.
struct Stage {
    world: World,
    upstream: Recorder,
    anna: Person,
    model: Key,
    friend: Key,
    ann: Client,
    bob: Client,
    /// Configuration of the gate.
    toml: String,
    /// Calls that may have reached the server.
    agreed: Cell<usize>,
    /// Number of used client addresses.
    addresses: Cell<u16>,
}

impl Stage {
    async fn set(expires: &str, more: &str) -> Self {
        let upstream = Recorder::start(Era::Stateless).await;
        let gate = format!("[gate]\nmode = \"irreversible\"\nexpires = \"{expires}\"\n");
        let tokens = token("ann") + &token("bob");
        let toml = format!("{gate}{more}{tokens}[mount.r]\nurl = \"http://{}/mcp\"\n", upstream.addr);
        let world = recording(tempfile::tempdir().unwrap(), &toml).await;
        let anna = Person::at(&world, 1, "anna").await;
        let (model, friend) = (Key::of(8), Key::of(9));
        anna.enroll_key(&friend, "friend", &["ann", "up"]).await;
        let knowing = json!({"extensions": {"io.banyan/mcpax": {}}});
        let (ann, bob) = (client(&world, "ann", knowing.clone()), client(&world, "bob", knowing));
        let path = world.state.path().join("record");
        let toml = format!("{toml}\n[audit]\npath = {path:?}\n");
        Self { world, upstream, anna, model, friend, ann, bob, toml, agreed: Cell::new(0), addresses: Cell::new(0) }
    }

    async fn held(&self, arguments: Value) -> WaitingCall {
        let told = self.ann.tool(TOOL, arguments).await;
        assert_eq!(reason(&told), "confirmation_required");
        let text = |name: &str| told["error"]["data"][name].as_str().unwrap().to_owned();
        WaitingCall { id: text("id"), challenge: text("challenge") }
    }

    /// Gives an unused address of this machine.
    fn next_address(&self) -> Ipv4Addr {
        self.addresses.set(self.addresses.get() + 1);
        let [high, low] = self.addresses.get().to_be_bytes();
        Ipv4Addr::new(127, 1, high, low)
    }

    /// Agrees as somebody entitled.
    async fn agree(&self, held: &WaitingCall) {
        let told = self.ann.call("mcpax/confirm", json!({"id": held.id, "proof": self.anna.proof(&held.challenge)})).await;
        assert_eq!(told["result"]["standing"], "released", "{told}");
    }

    async fn deny(&self, id: &str) {
        // It may be over.
        drop(self.anna.admin.post(&format!("/-/approvals/{id}/deny"), &json!({"reason": ""})).await);
    }

    /// Chooses a model.
    fn one(&self, dice: &mut Dice) -> &Client {
        if dice.roll(2) == 0 { &self.ann } else { &self.bob }
    }

    /// Counts the calls that have reached the server.
    fn reached(&self) -> usize {
        self.upstream.seen().iter().filter(|(_, body)| body.contains("\"tools/call\"")).count()
    }

    /// Tries a way again and again, and checks that each try got its answer, stands in the record, and did nothing.
    async fn tries(self, answers: &[&str], way: impl AsyncFn(&Self, &mut Dice) -> TryOutcome) {
        let mut all = Vec::new();
        for seed in 0..CASES {
            let tried = way(&self, &mut Dice::of(seed)).await;
            assert_eq!(tried.told, tried.wanted, "case {seed}: {}", tried.what);
            assert_eq!(self.reached(), self.agreed.get(), "case {seed}: {}", tried.what);
            self.deny(&tried.id).await;
            all.push(tried);
        }
        let different: BTreeSet<_> = all.iter().map(|tried| &tried.what).collect();
        assert!(different.len() * 10 > all.len() * 9, "only {} of them differ", different.len());
        assert_eq!(all.iter().map(|tried| &*tried.wanted).collect::<BTreeSet<_>>(), answers.iter().copied().collect());
        let entries = read(self.world).await;
        assert_eq!(entries.iter().filter(|entry| entry.event == "intended").count(), self.agreed.get());
        for TryOutcome { what, wanted, id, .. } in &all {
            let reason = wanted.trim_start_matches("401 ");
            // A call that comes back is not the approval that it names.
            let is_about = |entry: &AuditEntry| entry.approval.as_ref().is_none_or(|of| of == id);
            let event = match reason {
                // Whoever has no business there is not heard, and who comes too early waits.
                "owner" | "waits" => "approval_asked",
                "went out once" => "intended",
                _ => {
                    let tries = all.iter().filter(|tried| tried.wanted.trim_start_matches("401 ") == reason).count();
                    assert!(refusals(&entries, reason) >= tries, "{reason}: {} of {tries} are in the record", refusals(&entries, reason));
                    continue;
                }
            };
            let is_there = entries.iter().any(|entry| is_about(entry) && entry.event == event);
            assert!(is_there, "{what}: {wanted} of {id} is not in the record");
        }
    }
}

/// Counts the recorded refusals for a reason, summed-up refusals included.
fn refusals(entries: &[AuditEntry], reason: &str) -> usize {
    let refused = entries.iter().filter(|entry| entry.event == "refused").map(facts).filter(|facts| facts["reason"] == reason);
    refused.map(|facts| usize::try_from(facts["count"].as_u64().unwrap_or(1)).unwrap()).sum()
}

fn client(world: &World, name: &str, capabilities: Value) -> Client {
    let mut client = Client::new(world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}"));
    client.capabilities = capabilities;
    client
}

/// Makes a client that opens addresses.
fn opening(stage: &Stage, name: &str) -> Client {
    client(&stage.world, name, json!({"elicitation": {"url": {}}}))
}

/// Sums up the answer to a call in a word.
fn word(told: &Value) -> String {
    if told.get("error").is_some() {
        return reason(told).to_owned();
    }
    let waits = told["result"]["resultType"] == "input_required" || told["result"]["isError"] == true;
    if waits { "waits" } else { "went out" }.to_owned()
}

/// Makes a forged proof, with a description and the expected refusal.
fn forged(stage: &Stage, held: &WaitingCall, dice: &mut Dice) -> (String, &'static str, Value) {
    let (right, own) = (stage.anna.proof(&held.challenge), stage.model.proof(&held.challenge));
    let with = |signature: String| json!({"type": "ed25519", "key": right["key"], "signature": signature});
    let signature = right["signature"].as_str().unwrap();
    let word = dice.word();
    match dice.roll(6) {
        0 => (format!("its own key {word}"), "unknown_key", own),
        1 => (format!("another's name {word}"), "bad_signature", with(own["signature"].as_str().unwrap().to_owned())),
        2 => {
            let at = dice.roll(80);
            let other = if &signature[at..=at] == "A" { "B" } else { "A" };
            (format!("bent at {at} {word}"), "bad_signature", with(format!("{}{other}{}", &signature[..at], &signature[at + 1..])))
        }
        3 => {
            let other = held.challenge.replace("\"required\":1", &format!("\"required\":1,\"why\":\"{word}\""));
            (format!("over another challenge {word}"), "bad_signature", stage.anna.proof(&other))
        }
        4 => {
            let none = [json!(word), json!({"type": word}), json!({"approved": true, "by": word}), json!([word]), json!(null)];
            (format!("no proof {word}"), "proof_malformed", none[dice.roll(none.len())].clone())
        }
        _ => (format!("a friend {word}"), "self_approval", stage.friend.proof(&held.challenge)),
    }
}

#[tokio::test]
async fn ax_46_a_model_confirms_nothing_over_mcp() {
    let answers = ["bad_signature", "proof_malformed", "self_approval", "unknown_key"];
    let way = async |stage: &Stage, dice: &mut Dice| {
        let held = stage.held(json!({"n": dice.word()})).await;
        let (what, wanted, proof) = forged(stage, &held, dice);
        let right = stage.anna.proof(&held.challenge);
        let of_nothing = stage.one(dice).call("mcpax/confirm", json!({"id": dice.word(), "proof": right})).await;
        assert_eq!(word(&of_nothing), "unknown_approval");
        let told = stage.one(dice).call("mcpax/confirm", json!({"id": held.id, "proof": proof})).await;
        TryOutcome { what, wanted: wanted.into(), told: word(&told), id: held.id }
    };
    bounded(async { Stage::set("5m", "").await.tries(&answers, way).await }).await;
}

/// Asks below `/-/` without the owner's token.
async fn at_door(stage: &Stage, name: Option<&str>, path: &str, body: Option<Value>) -> String {
    // An address has only so many attempts a minute, which is not what is tried here.
    let mut client = Client::new(&stage.world, Era::Stateless).at(path);
    client.from = Some(stage.next_address());
    if let Some(name) = name {
        client = client.with("authorization", &format!("Bearer secret-of-{name}"));
    }
    let mut reply = match body {
        Some(body) => client.post(&body.to_string(), &[]).await,
        None => client.listen(None).await,
    };
    let told = reply.next().await.unwrap().value;
    let text = told["error"]["message"].as_str().unwrap_or_else(|| panic!("{path}: {told}"));
    let reason = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    format!("{} {}", reply.status.as_u16(), reason.map_or("owner", |(_, reason)| reason))
}

#[tokio::test]
async fn ax_46_a_model_confirms_nothing_by_the_doors_of_people() {
    let answers = ["401 bad_signature", "401 owner", "401 proof_malformed", "401 self_approval", "401 unknown_key"];
    let way = async |stage: &Stage, dice: &mut Dice| {
        let held = stage.held(json!({"n": dice.word()})).await;
        let whoever = [None, Some("ann"), Some("bob")][dice.roll(3)];
        let of = |rest: &str| format!("/-/approvals/{}{rest}", held.id);
        let terms = json!({"tool": "*", "caller": "*", "arguments": {}, "any_other": true, "expires": 4_000_000_000_u64});
        let own = stage.model.proof(&held.challenge);
        let asked = [
            (of("/deny"), Some(json!({"reason": "x"}))),
            ("/-/operators".into(), Some(json!({"name": "model", "key": stage.model.line()}))),
            ("/-/operators/webauthn".into(), Some(json!({"name": "model"}))),
            ("/-/operators/remove".into(), Some(json!({"id": own["key"]}))),
            ("/-/grants/statement".into(), Some(json!({"terms": terms}))),
            ("/-/grants".into(), Some(json!({"id": held.id, "terms": terms, "proofs": [own]}))),
            ("/-/grants/x/revoke".into(), Some(json!({}))),
            ("/-/call".into(), Some(json!({"name": TOOL, "arguments": {"n": held.id}}))),
            (of(""), None),
            (of("/webauthn"), None),
            ("/-/approvals?all=true".into(), None),
            ("/-/approvals/events".into(), None),
            ("/-/operators".into(), None),
            ("/-/grants".into(), None),
        ];
        let (what, wanted, (path, body)) = if dice.roll(2) == 0 {
            ("no token of the owner".into(), "owner", asked[dice.roll(asked.len())].clone())
        } else {
            let (what, wanted, proof) = forged(stage, &held, dice);
            (what, wanted, (of("/confirm"), Some(json!({"proof": proof}))))
        };
        let told = at_door(stage, whoever, &path, body).await;
        TryOutcome { what: format!("{what}: {path} {}", held.id), wanted: format!("401 {wanted}"), told, id: held.id }
    };
    bounded(async { Stage::set("5m", "").await.tries(&answers, way).await }).await;
}

#[tokio::test]
async fn ax_46_a_model_returns_only_with_its_own_calls_state() {
    let answers = ["approval_used", "approval_void", "approval_withdrawn", "waits"];
    let way = async |stage: &Stage, dice: &mut Dice| {
        let (ann, bob) = (opening(stage, "ann"), opening(stage, "bob"));
        let arguments = json!({"n": dice.word()});
        let asked = ann.tool(TOOL, arguments.clone()).await;
        let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
        let (front, seal) = state.rsplit_once('.').unwrap();
        let (mark, id) = front.rsplit_once('-').unwrap();
        let back = async |client: &Client, arguments: &Value, state: &str, action: &str| {
            let answer = json!({"approval": {"action": action}});
            client.call("tools/call", json!({"name": TOOL, "arguments": arguments, "requestState": state, "inputResponses": answer})).await
        };
        let (id, other) = (id.to_owned(), dice.word());
        let (what, wanted, told) = match dice.roll(6) {
            5 => {
                let challenge = stage.world.gateway.approval(&id).await.unwrap().challenge;
                stage.agree(&WaitingCall { id: id.clone(), challenge }).await;
                stage.agreed.set(stage.agreed.get() + 1);
                assert_eq!(word(&back(&ann, &arguments, &state, "accept").await), "went out");
                ("its own, after its call went out".into(), "approval_used", back(&ann, &arguments, &state, "accept").await)
            }
            0 => {
                let at = dice.roll(seal.len());
                let digit = if &seal[at..=at] == "0" { "1" } else { "0" };
                let bent = format!("{front}.{}{digit}{}", &seal[..at], &seal[at + 1..]);
                (format!("a seal bent at {at}"), "waits", back(&ann, &arguments, &bent, "accept").await)
            }
            1 => ("another's id".into(), "waits", back(&ann, &arguments, &format!("{mark}-{other}.{seal}"), "accept").await),
            2 => ("another caller".into(), "waits", back(&bob, &arguments, &state, "accept").await),
            3 => ("another call".into(), "approval_void", back(&ann, &json!({"n": other}), &state, "accept").await),
            _ => ("its own, having declined".into(), "approval_withdrawn", back(&ann, &arguments, &state, "decline").await),
        };
        if wanted == "waits" {
            // Bob's call is one of his own.
            let waiting = stage.world.gateway.approvals(false).await.unwrap().approvals;
            join_all(waiting.iter().filter(|approval| approval.id != id).map(|approval| stage.deny(&approval.id))).await;
        }
        TryOutcome { what: format!("{what}: {state}"), wanted: wanted.into(), told: word(&told), id }
    };
    bounded(async { Stage::set("5m", "").await.tries(&answers, way).await }).await;
}

#[tokio::test]
async fn ax_46_an_approved_call_leaves_once_and_unchanged() {
    let way = async |stage: &Stage, dice: &mut Dice| {
        let (n, other) = (dice.word(), dice.word());
        let arguments = json!({"n": n, "to": {"list": [1, 2]}});
        let held = stage.held(arguments.clone()).await;
        stage.agree(&held).await;
        let edited = [
            json!({"n": other, "to": {"list": [1, 2]}}),
            json!({"n": n, "to": {"list": [2, 1]}}),
            json!({"n": n, "to": {"list": [1, 2]}, "force": other}),
            json!({"n": n}),
            json!({"n": [n], "to": {"list": [1, 2]}}),
        ];
        let edited = &edited[dice.roll(edited.len())];
        let told = stage.ann.tool(TOOL, edited.clone()).await;
        assert_eq!(word(&told), "confirmation_required", "{edited}");
        let instead = told["error"]["data"]["id"].as_str().unwrap();
        let old = stage.ann.call("mcpax/confirm", json!({"id": instead, "proof": stage.anna.proof(&held.challenge)})).await;
        assert_eq!(word(&old), "bad_signature", "{edited}");
        stage.deny(instead).await;
        let of_bob = stage.bob.tool(TOOL, arguments.clone()).await;
        assert_eq!(word(&of_bob), "confirmation_required", "another caller");
        stage.deny(of_bob["error"]["data"]["id"].as_str().unwrap()).await;
        assert_eq!(stage.reached(), stage.agreed.get());
        stage.agreed.set(stage.agreed.get() + 1);
        let calls = join_all((0..2 + dice.roll(3)).map(|_| stage.ann.tool(TOOL, arguments.clone()))).await;
        let out = calls.iter().filter(|told| word(told) == "went out").count();
        let told = if out == 1 { "went out once".into() } else { format!("went out {out} times") };
        for waiting in stage.world.gateway.approvals(false).await.unwrap().approvals {
            stage.deny(&waiting.id).await;
        }
        TryOutcome { what: format!("{edited} of {arguments}"), wanted: "went out once".into(), told, id: held.id }
    };
    bounded(async { Stage::set("5m", "").await.tries(&["went out once"], way).await }).await;
}

#[tokio::test]
async fn ax_46_races_help_no_forged_confirmation() {
    let way = async |stage: &Stage, dice: &mut Dice| {
        let held = stage.held(json!({"n": dice.word()})).await;
        let right = stage.anna.proof(&held.challenge);
        let proofs: Vec<Value> = (0..3 + dice.roll(6))
            .map(|at| if at < 2 || dice.roll(2) == 0 { right.clone() } else { forged(stage, &held, dice).2 })
            .collect();
        let rights = proofs.iter().filter(|proof| **proof == right).count();
        let confirms = proofs.iter().map(|proof| stage.bob.call("mcpax/confirm", json!({"id": held.id, "proof": proof})));
        let told = join_all(confirms).await;
        let released = told.iter().filter(|told| told["result"]["standing"] == "released").count();
        assert_eq!(released, 1, "{told:?}");
        let used = told.iter().filter(|told| told.get("error").is_some() && reason(told) == "approval_used").count();
        assert!(used + 1 >= rights, "{told:?}");
        // Nobody comes to make the call: what was agreed to is not made by anybody else.
        let last = stage.ann.call("mcpax/confirm", json!({"id": held.id, "proof": right})).await;
        TryOutcome {
            what: format!("{rights} of {} for {}", proofs.len(), held.id),
            wanted: "approval_used".into(),
            told: word(&last),
            id: held.id,
        }
    };
    bounded(async { Stage::set("5m", "").await.tries(&["approval_used"], way).await }).await;
}

#[tokio::test]
async fn ax_46_who_agrees_too_late_agrees_to_nothing() {
    bounded(async {
        let stage = Stage::set("1s", "").await;
        let mut late = Vec::new();
        for n in 0..40 {
            late.push((n, stage.held(json!({"n": n})).await));
        }
        for (n, held) in &late {
            eventually(async || stage.world.gateway.approval(&held.id).await.unwrap().standing.is_over().then_some(())).await;
            let proof = json!({"id": held.id, "proof": stage.anna.proof(&held.challenge)});
            assert_eq!(word(&stage.bob.call("mcpax/confirm", proof.clone()).await), "approval_expired", "{n}");
            let at_door = at_door(&stage, None, &format!("/-/approvals/{}/confirm", held.id), Some(proof)).await;
            assert_eq!(at_door, "401 approval_expired");
            assert_eq!(word(&stage.ann.tool(TOOL, json!({"n": n})).await), "approval_expired", "{n}");
        }
        assert_eq!(stage.reached(), 0);
        let entries = read(stage.world).await;
        for (n, held) in &late {
            let of: Vec<_> = entries.iter().filter(|entry| entry.approval.as_ref() == Some(&held.id)).collect();
            assert!(of.iter().any(|entry| entry.outcome.as_deref() == Some("expired")), "{n}: {of:?}");
        }
        assert!(refusals(&entries, "approval_expired") >= 2 * late.len());
    })
    .await;
}

#[tokio::test]
async fn ax_47_who_passes_for_a_gate_above_strips_nothing() {
    let answers = ["bad_signature", "proof_malformed", "self_approval", "unknown_key"];
    let way = async |stage: &Stage, dice: &mut Dice| {
        let gate = json!({"extensions": {"io.banyan/mcpax": {"aggregator_id": dice.word()}}});
        let gate = client(&stage.world, "ann", gate);
        let claims = [
            json!({"x-mcpax-gated": false}),
            json!({"x-mcpax-cleared": true, "x-mcpax-approval": dice.word()}),
            json!({"io.banyan/approval": {"standing": "released", "id": dice.word()}}),
            json!({"x-mcpax-annotation": {"mutable": false}}),
        ];
        let arguments = json!({"n": dice.word()});
        let told =
            gate.call("tools/call", json!({"name": "r.record", "arguments": arguments, "_meta": claims[dice.roll(claims.len())]})).await;
        assert_eq!(reason(&told), "confirmation_required", "{told}");
        let text = |name: &str| told["error"]["data"][name].as_str().unwrap().to_owned();
        let held = WaitingCall { id: text("id"), challenge: text("challenge") };
        let (what, wanted, proof) = forged(stage, &held, dice);
        let told = gate.call("mcpax/confirm", json!({"id": held.id, "proof": proof})).await;
        TryOutcome { what, wanted: wanted.into(), told: word(&told), id: held.id }
    };
    bounded(async { Stage::set("5m", "").await.tries(&answers, way).await }).await;
}

#[tokio::test]
async fn ax_47_a_gate_below_can_not_claim_calls_held_here() {
    bounded(async {
        let below = Recorder::gate(Era::Stateless).await;
        let low = format!("mounts = {{ low = \"off\" }}\n[mount.low]\nurl = \"http://{}/mcp\"\n", below.addr);
        let stage = Stage::set("5m", &low).await;
        for n in 0..20 {
            let held = stage.held(json!({"n": n})).await;
            let data = json!({"reason": "confirmation_required", "id": held.id, "tool": "low.x", "expires": 4_000_000_000_u64, "required": 1,
                "challenge": "{}", "url": "https://evil.example"});
            let error = json!({"code": -32012, "message": "agree here", "data": data});
            stage.ann.tool("low__stm__record", json!({"error": error})).await;
            assert!(stage.world.gateway.approvals(false).await.unwrap().below.is_empty());
            stage.agree(&held).await;
            assert!(!below.seen().iter().any(|(_, body)| body.contains("mcpax/confirm")), "what was agreed to here was taken there");
            assert_eq!(word(&stage.ann.tool(TOOL, json!({"n": n})).await), "went out");
        }
        assert_eq!(stage.reached(), 20);
    })
    .await;
}
