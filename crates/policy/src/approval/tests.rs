use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use banyan_model::{Machine, Now};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256, Sha512};

use super::wire::put;
use super::*;

mod confirming;
mod ended;
mod model;
mod previewed;
mod proofs;
mod put_back;
mod rounds;
mod taken_back;

const NOW: u64 = 1_000_000;

/// Both clocks, so many seconds after 1970.
#[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
fn clock(seconds: u64) -> Now {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let passed = Duration::from_secs(seconds);
    Now { instant: *START + passed, wall: SystemTime::UNIX_EPOCH + passed }
}

struct Keys {
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
}

fn keys() -> Keys {
    let ed = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).unwrap();
    Keys { ed, ec }
}

impl Keys {
    fn ed(&self) -> PublicKey {
        PublicKey::Ed25519(self.ed.public_key().as_ref().try_into().unwrap())
    }

    fn ec(&self) -> PublicKey {
        PublicKey::P256(Box::new(self.ec.public_key().as_ref().try_into().unwrap()))
    }
}

fn operator(name: &str, key: PublicKey, passkey: Option<Passkey>) -> Operator {
    Operator { id: key.fingerprint(), name: name.into(), principals: BTreeSet::from(["anna-laptop".into()]), key, passkey, enrolled: NOW }
}

fn call(caller: &str, arguments: &str) -> Call {
    Call {
        caller: caller.into(),
        tool: "files.wipe".into(),
        route: vec!["files".into(), "wipe".into()],
        definition: "d1".into(),
        arguments: arguments.into(),
        policy: "p1".into(),
        ..Call::default()
    }
}

fn fresh(n: usize) -> Fresh {
    Fresh { id: format!("{n:032x}"), nonce: format!("{n:032x}") }
}

fn desk(required: u8) -> Desk {
    Desk::new(Settings { gate: "gate-1".into(), patience: 300, required, warning: 60 })
}

fn hold(desk: &mut Desk, call: &Call, n: usize, attends: bool) -> Held {
    desk.hold(clock(NOW), call.clone(), (vec![Cause::Mode], "{}".into()), fresh(n), attends)
}

/// A desk with one operator, and the challenge of a call of `ci`.
fn waiting(keys: &Keys) -> (Desk, Challenge) {
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    assert_eq!(hold(&mut desk, &call("ci", "{\"path\":\"/\"}"), 1, false), Held::Waits(fresh(1).id));
    let challenge = desk.approval(&fresh(1).id).unwrap().challenge.clone();
    (desk, challenge)
}

fn armored(key: &PublicKey, namespace: &str, message: &[u8], sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let mut signed = b"SSHSIG".to_vec();
    for part in [namespace.as_bytes(), b"", b"sha512", &Sha512::digest(message)] {
        put(&mut signed, part);
    }
    let mut inner = Vec::new();
    put(&mut inner, key.ssh_kind().as_bytes());
    put(&mut inner, &sign(&signed));
    let mut blob = b"SSHSIG\0\0\0\x01".to_vec();
    let public = STANDARD.decode(key.line().split(' ').nth(1).unwrap()).unwrap();
    for part in [&public[..], namespace.as_bytes(), b"", b"sha512", &inner] {
        put(&mut blob, part);
    }
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(blob))
}

fn ssh(keys: &Keys, namespace: &str, text: &str) -> Proof {
    Proof::of_text(&armored(&keys.ed(), namespace, text.as_bytes(), |signed| keys.ed.sign(signed).as_ref().to_vec())).unwrap()
}

/// Output of `ssh-keygen -Y sign -n banyan-approval-v1` of OpenSSH 9.2 for "hello" without a line end.
const BY_OPENSSH: (&str, &str) = (include_str!("testdata/ed25519.pub"), include_str!("testdata/hello.sig"));

#[test]
fn ax_46_a_signature_of_openssh_is_read_and_verified() {
    let signature = SshSignature::parse(BY_OPENSSH.1).unwrap();
    assert_eq!(signature.key, PublicKey::parse(BY_OPENSSH.0).unwrap());
    assert_eq!(signature.namespace, Challenge::NAMESPACE);
    assert!(signature.verifies(b"hello") && !signature.verifies(b"hello\n"));
}

#[test]
fn ax_46_every_kind_of_proof_releases_the_call_it_was_made_for() {
    let keys = keys();
    let party = RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] };
    let passkey = Passkey { credential: "Y3JlZA".into(), count: 0, relying_party: "localhost".into() };
    for kind in ["ed25519", "sshsig", "sshsig by P-256", "webauthn", "jws"] {
        let mut desk = desk(1);
        desk.enroll(operator("anna", keys.ed(), None));
        desk.enroll(operator("anna", keys.ec(), (kind == "webauthn").then(|| passkey.clone())));
        desk.trust(vec![service(&keys)]);
        desk.set_relying_party(Some(party.clone()));
        assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
        let challenge = desk.approval(&fresh(1).id).unwrap().challenge.clone();
        let (text, digest) = (challenge.text(), challenge.statement().digest());
        let written = match kind {
            "ed25519" => json!({"type": kind, "key": keys.ed().fingerprint(), "signature": STANDARD.encode(keys.ed.sign(text.as_bytes()))}),
            "sshsig" => {
                json!({"type": kind, "signature": armored(&keys.ed(), Challenge::NAMESPACE, text.as_bytes(), |s| keys.ed.sign(s).as_ref().to_vec())})
            }
            "sshsig by P-256" => json!(armored(&keys.ec(), Challenge::NAMESPACE, text.as_bytes(), |s| pair(&keys, s))),
            "webauthn" => json!({"type": kind, "credential": assertion(&keys, &digest, "http://localhost:1", 0x05, 1)}),
            _ => json!(token(&keys, &json!({"sub": "bert", "digest": hex(&digest)}))),
        };
        let confirm = Confirm::read(json!({"id": fresh(1).id, "proof": written, "_meta": {}}).to_string().as_bytes()).unwrap();
        assert_eq!(desk.confirm(clock(NOW), &confirm.id, &confirm.proof), Ok(Standing::Released), "{kind}");
        assert!(desk.claim(clock(NOW), &fresh(1).id, &call("ci", "{}")).is_ok());
        assert_eq!(desk.confirm(clock(NOW), &confirm.id, &confirm.proof), Err(Refusal::Over(Standing::Dispatched)), "{kind}");
    }
}

/// Spells a signature by P-256 as SSH does.
fn pair(keys: &Keys, signed: &[u8]) -> Vec<u8> {
    let der = keys.ec.sign(&SystemRandom::new(), signed).unwrap();
    let mut numbers = &der.as_ref()[2..];
    let mut out = Vec::new();
    for _ in 0..2 {
        let length = usize::from(numbers[1]);
        put(&mut out, &numbers[2..2 + length]);
        numbers = &numbers[2 + length..];
    }
    out
}

fn assertion(keys: &Keys, digest: &[u8; 32], origin: &str, flags: u8, count: u32) -> serde_json::Value {
    let client = json!({"type": "webauthn.get", "challenge": URL_SAFE_NO_PAD.encode(digest), "origin": origin, "crossOrigin": false});
    let data = [&Sha256::digest("localhost")[..], &[flags], &count.to_be_bytes()].concat();
    let signed = [&data[..], &Sha256::digest(client.to_string())].concat();
    let signature = keys.ec.sign(&SystemRandom::new(), &signed).unwrap();
    json!({"id": "Y3JlZA", "rawId": "Y3JlZA", "type": "public-key", "response": {
        "clientDataJSON": URL_SAFE_NO_PAD.encode(client.to_string()),
        "authenticatorData": URL_SAFE_NO_PAD.encode(data),
        "signature": URL_SAFE_NO_PAD.encode(signature),
    }})
}

fn service(keys: &Keys) -> Service {
    Service { name: "desk".into(), issuer: "https://desk".into(), audience: "gate-1".into(), keys: vec![(None, keys.ed())] }
}

fn token(keys: &Keys, claims: &serde_json::Value) -> String {
    let mut all = json!({"iss": "https://desk", "aud": ["gate-1"], "exp": NOW + 60});
    all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    let encode = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(json!({"alg": "EdDSA"})), encode(all));
    let signature = URL_SAFE_NO_PAD.encode(keys.ed.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

#[test]
fn ax_46_each_wrong_proof_has_its_own_answer() {
    let (keys, other) = (keys(), Keys { ed: Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap(), ..keys() });
    let (mut desk, challenge) = waiting(&keys);
    let passkey = Passkey { credential: "Y3JlZA".into(), count: 5, relying_party: "localhost".into() };
    desk.enroll(operator("anna", keys.ec(), Some(passkey)));
    let party = RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] };
    desk.trust(vec![service(&keys)]);
    desk.set_relying_party(Some(party));
    let (text, digest) = (challenge.text(), challenge.statement().digest());
    let edited = Challenge { call: call("ci", "{\"path\":\"/tmp\"}"), ..challenge.clone() };
    let webauthn = |digest: &[u8; 32], origin: &str, flags, count| {
        Proof::read(json!({"type": "webauthn", "credential": assertion(&keys, digest, origin, flags, count)}).to_string().as_bytes())
            .unwrap()
    };
    let jws = |claims: serde_json::Value| Proof::of_text(&token(&keys, &claims)).unwrap();
    let right = "http://localhost:1";
    let bare = |keys: &Keys, text: &str| Proof::Ed25519 {
        key: keys.ed().fingerprint(),
        signature: keys.ed.sign(text.as_bytes()).as_ref().to_vec(),
    };
    for (proof, reason) in [
        (ssh(&other, Challenge::NAMESPACE, &text), "unknown_key"),
        (ssh(&keys, "file", &text), "wrong_namespace"),
        (ssh(&keys, Challenge::NAMESPACE, &edited.text()), "bad_signature"),
        (bare(&other, &text), "unknown_key"),
        (bare(&keys, &edited.text()), "bad_signature"),
        (webauthn(&edited.statement().digest(), right, 0x05, 6), "other_call"),
        (webauthn(&digest, "https://evil.example", 0x05, 6), "wrong_origin"),
        (webauthn(&digest, right, 0x01, 6), "user_not_verified"),
        (webauthn(&digest, right, 0x05, 5), "counter_went_back"),
        (jws(json!({"digest": hex(&digest), "aud": "gate-2"})), "wrong_audience"),
        (jws(json!({"digest": hex(&digest), "exp": NOW})), "token_expired"),
        (jws(json!({"digest": hex(&digest), "nbf": NOW + 600})), "token_not_yet_valid"),
        (jws(json!({"digest": hex(&digest), "iss": "https://other"})), "unknown_issuer"),
        (jws(json!({"digest": hex(&edited.statement().digest())})), "other_call"),
        (jws(json!({"digest": hex(&digest), "sub": "ci"})), "self_approval"),
        (Proof::of_text(&token(&other, &json!({"digest": hex(&digest)}))).unwrap(), "bad_signature"),
    ] {
        let refusal = desk.confirm(clock(NOW), &challenge.id, &proof).unwrap_err();
        assert_eq!(refusal.reason(), reason, "{proof:?}");
        assert!(refusal.to_string().len() > 30, "{refusal}");
    }
    assert_eq!(desk.approval(&challenge.id).unwrap().votes, []);
    for params in
        ["{}", "[]", r#"{"id":"x"}"#, r#"{"id":"x","proof":{}}"#, r#"{"id":"x","proof":"a.b"}"#, r#"{"id":"x","id":"y","proof":"a.b.c"}"#]
    {
        assert_eq!(Confirm::read(params.as_bytes()).unwrap_err().reason(), "proof_malformed", "{params}");
    }
}

#[test]
fn ax_46_nobody_approves_a_call_of_its_own_by_whatever_name() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    desk.enroll(operator("bert", keys.ec(), None));
    for (n, caller) in ["anna", "Anna@issuer", "anna-laptop"].into_iter().enumerate() {
        desk.remove(clock(NOW), &keys.ec().fingerprint());
        assert_eq!(hold(&mut desk, &call(caller, "{}"), n, false), Held::NoApprover { reachable: 0, required: 1 }, "{caller}");
        desk.enroll(operator("bert", keys.ec(), None));
        desk.anchors.operators.get_mut(&keys.ec().fingerprint()).unwrap().principals.clear();
        assert_eq!(hold(&mut desk, &call(caller, "{}"), n, false), Held::Waits(fresh(n).id), "{caller}");
        let text = desk.approval(&fresh(n).id).unwrap().challenge.text();
        let refusal = desk.confirm(clock(NOW), &fresh(n).id, &ssh(&keys, Challenge::NAMESPACE, &text));
        assert_eq!(refusal, Err(Refusal::SelfApproval("anna".into())), "{caller}");
    }
}

#[test]
fn ax_46_two_people_are_two_people() {
    let keys = keys();
    let mut desk = desk(2);
    desk.enroll(operator("anna", keys.ed(), None));
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, true), Held::NoApprover { reachable: 1, required: 2 });
    desk.enroll(operator("Bert", keys.ec(), None));
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, true), Held::Waits(fresh(1).id));
    let text = desk.approval(&fresh(1).id).unwrap().challenge.text();
    let first = ssh(&keys, Challenge::NAMESPACE, &text);
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &first), Ok(Standing::Pending));
    assert_eq!(desk.claim(clock(NOW), &fresh(1).id, &call("ci", "{}")), Err(Refusal::Over(Standing::Pending)));
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &first).unwrap_err().reason(), "second_person_needed");
    let second = armored(&keys.ec(), Challenge::NAMESPACE, text.as_bytes(), |signed| pair(&keys, signed));
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &Proof::of_text(&second).unwrap()), Ok(Standing::Released));
}

#[test]
fn ax_45_a_caller_that_comes_back_hears_how_it_ended_and_then_may_ask_again() {
    let keys = keys();
    let (mut desk, challenge) = waiting(&keys);
    let call = challenge.call.clone();
    assert_eq!(hold(&mut desk, &call, 2, false), Held::Waits(challenge.id.clone()));
    desk.deny(clock(NOW), &challenge.id, "not on a Friday").unwrap();
    assert_eq!(hold(&mut desk, &call, 2, false), Held::Over(challenge.id.clone()));
    assert_eq!(hold(&mut desk, &call, 2, false), Held::Waits(fresh(2).id));
    desk.handle_timeout(clock(NOW + 299));
    assert_eq!(desk.approval(&fresh(2).id).unwrap().standing, Standing::Pending);
    desk.handle_timeout(clock(NOW + 300));
    assert_eq!(desk.approval(&fresh(2).id).unwrap().standing, Standing::Expired);
    assert_eq!(desk.claim(clock(NOW), &fresh(2).id, &call), Err(Refusal::Over(Standing::Expired)), "the clock was set back");
}

#[test]
fn ax_46_what_changed_since_it_was_shown_makes_it_void() {
    for (change, what) in [
        (Call { kind: "certificate".into(), ..call("ci", "{\"path\":\"/\"}") }, "caller"),
        (Call { arguments: "{}".into(), ..call("ci", "{\"path\":\"/\"}") }, "arguments"),
        (Call { definition: "d2".into(), ..call("ci", "{\"path\":\"/\"}") }, "definition"),
        (Call { policy: "p2".into(), ..call("ci", "{\"path\":\"/\"}") }, "policy"),
        (Call { others: "{\"task\":{}}".into(), ..call("ci", "{\"path\":\"/\"}") }, "other members"),
        (Call { server: "s2".into(), ..call("ci", "{\"path\":\"/\"}") }, "server"),
        (Call { client: "c2".into(), ..call("ci", "{\"path\":\"/\"}") }, "client"),
        (Call { route: vec!["disk".into(), "wipe".into()], ..call("ci", "{\"path\":\"/\"}") }, "tool"),
        (call("cd", "{\"path\":\"/\"}"), "caller"),
    ] {
        let keys = keys();
        let (mut desk, challenge) = waiting(&keys);
        desk.confirm(clock(NOW), &challenge.id, &ssh(&keys, Challenge::NAMESPACE, &challenge.text())).unwrap();
        assert_eq!(desk.claim(clock(NOW), &challenge.id, &change), Err(Refusal::Changed(what)));
        assert_eq!(desk.claim(clock(NOW), &challenge.id, &challenge.call), Err(Refusal::Over(Standing::Void)));
    }
}

#[test]
fn ax_46_a_gate_that_died_does_not_know_and_says_so() {
    let keys = keys();
    let (mut before, challenge) = waiting(&keys);
    let call = challenge.call.clone();
    let pending = before.approval(&challenge.id).unwrap().clone();
    before.confirm(clock(NOW), &challenge.id, &ssh(&keys, Challenge::NAMESPACE, &challenge.text())).unwrap();
    before.claim(clock(NOW), &challenge.id, &call).unwrap();
    let dispatched = before.approval(&challenge.id).unwrap().clone();
    let after = |kept: Approval| {
        let mut desk = desk(1);
        desk.enroll(operator("anna", keys.ed(), None));
        desk.restore(clock(NOW + 1), vec![kept]);
        desk
    };
    let mut desk = after(dispatched);
    assert_eq!(desk.approval(&challenge.id).unwrap().standing, Standing::OutcomeUnknown);
    assert_eq!(hold(&mut desk, &call, 2, true), Held::Over(challenge.id.clone()), "its caller is told, and nothing goes out");
    assert_eq!(desk.claim(clock(NOW + 1), &challenge.id, &call).unwrap_err().reason(), "outcome_unknown");
    let mut desk = after(pending);
    assert_eq!(desk.confirm(clock(NOW + 2), &challenge.id, &ssh(&keys, Challenge::NAMESPACE, &challenge.text())), Ok(Standing::Released));
}

#[test]
fn a_grant_lets_through_as_many_calls_as_it_says_and_none_once_it_is_revoked() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    let terms = Terms {
        tool: "files.*".into(),
        caller: "*".into(),
        arguments: BTreeMap::from([("path".to_owned(), "/tmp/*".to_owned())]),
        any_other: false,
        expires: NOW + 1000,
        uses: Some(2),
    };
    let proof = ssh(&keys, Terms::NAMESPACE, &terms.statement("g", "gate-1").text);
    let elsewhere = ssh(&keys, Terms::NAMESPACE, &terms.statement("g", "gate-2").text);
    assert_eq!(desk.give(clock(NOW), "g", terms.clone(), &[elsewhere]).unwrap_err().reason(), "bad_signature");
    assert_eq!(desk.give(clock(NOW), "g", terms.clone(), &[]).unwrap_err(), Refusal::Over(Standing::Pending));
    desk.give(clock(NOW), "g", terms.clone(), std::slice::from_ref(&proof)).unwrap();
    let inside = call("ci", "{\"path\":\"/tmp/x\"}");
    assert_eq!(hold(&mut desk, &inside, 1, true), Held::Granted("g".into()));
    assert_eq!(hold(&mut desk, &call("ci", "{\"path\":\"/etc\"}"), 2, true), Held::Waits(fresh(2).id));
    assert_eq!(hold(&mut desk, &call("anna", "{\"path\":\"/tmp/x\"}"), 3, true), Held::NoApprover { reachable: 0, required: 1 });
    assert_eq!(hold(&mut desk, &inside, 4, true), Held::Granted("g".into()));
    assert_eq!(hold(&mut desk, &inside, 5, true), Held::Waits(fresh(5).id), "it was for two calls");
    assert!(desk.give(clock(NOW), "g", terms, &[proof]).is_err(), "a grant is given once");
    assert!(desk.revoke(clock(NOW), "g") && !desk.holds(desk.grant("g").unwrap()));
}

#[test]
fn the_next_timer_follows_the_clock_on_the_wall() {
    let keys = keys();
    let mut desk = desk(1);
    assert_eq!(desk.poll_timeout(), None);
    desk.enroll(operator("anna", keys.ed(), None));
    hold(&mut desk, &call("ci", "{}"), 1, false);
    let at = |desk: &Desk| desk.poll_timeout().map(|(at, _)| at);
    assert_eq!(at(&desk), Some(clock(NOW + 240).instant), "a minute before its end it is told of again");
    desk.handle_timeout(clock(NOW + 240));
    assert_eq!(at(&desk), Some(clock(NOW + 300).instant));
    // The clock on the wall is set back by a day: what is to come is a day further away.
    let (now, day) = (clock(NOW + 241), Duration::from_secs(86_400));
    desk.handle_timeout(Now { wall: now.wall - day, ..now });
    assert_eq!(at(&desk), Some(clock(NOW + 300).instant + day));
}
