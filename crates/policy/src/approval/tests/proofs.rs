//! Each part of a proof by itself: a proof with a single fault is refused for that fault.

use super::*;

const ORIGIN: &str = "http://localhost:1";

fn party() -> RelyingParty {
    RelyingParty { id: "localhost".into(), origins: vec![ORIGIN.into()] }
}

/// A desk where the call of `fresh(1)` waits and anna has a passkey, and the digest of its challenge.
fn asked(keys: &Keys) -> (Desk, [u8; 32]) {
    let mut desk = desk(1);
    let passkey = Passkey { credential: "Y3JlZA".into(), count: 5, relying_party: "localhost".into() };
    desk.enroll(operator("anna", keys.ec(), Some(passkey)));
    desk.set_relying_party(Some(party()));
    desk.trust(vec![service(keys)]);
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
    let digest = desk.approval(&fresh(1).id).unwrap().challenge.statement().digest();
    (desk, digest)
}

/// The answer of a browser and an authenticator with the given parts, correctly signed.
fn said(keys: &Keys, client: &serde_json::Value, party: &str) -> serde_json::Value {
    let data = [&Sha256::digest(party)[..], &[0x05], &6u32.to_be_bytes()].concat();
    let signature = keys.ec.sign(&SystemRandom::new(), &[&data[..], &Sha256::digest(client.to_string())].concat()).unwrap();
    json!({"id": "Y3JlZA", "response": {
        "clientDataJSON": URL_SAFE_NO_PAD.encode(client.to_string()),
        "authenticatorData": URL_SAFE_NO_PAD.encode(data),
        "signature": URL_SAFE_NO_PAD.encode(signature),
    }})
}

fn client(digest: &[u8; 32]) -> serde_json::Value {
    json!({"type": "webauthn.get", "challenge": URL_SAFE_NO_PAD.encode(digest), "origin": ORIGIN, "crossOrigin": false})
}

fn confirmed(desk: &mut Desk, credential: &serde_json::Value) -> Result<Standing, &'static str> {
    let proof = Proof::read(json!({"type": "webauthn", "credential": credential}).to_string().as_bytes()).unwrap();
    desk.confirm(clock(NOW), &fresh(1).id, &proof).map_err(|refusal| refusal.reason())
}

#[test]
fn ax_46_each_part_of_what_a_passkey_says_counts() {
    let keys = keys();
    let other = Keys { ed: Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap(), ..self::keys() };
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let (mut desk, digest) = asked(&keys);
        let mut client = client(&digest);
        change(&mut client);
        confirmed(&mut desk, &said(&keys, &client, "localhost"))
    };
    assert_eq!(with(&|_| ()), Ok(Standing::Released));
    assert_eq!(with(&|client| client["type"] = json!("webauthn.create")), Err("proof_malformed"), "it was made when the passkey was");
    assert_eq!(with(&|client| client["crossOrigin"] = json!(true)), Err("wrong_origin"), "it was asked for from within another page");
    assert_eq!(with(&|client| client["origin"] = json!("http://localhost:2")), Err("wrong_origin"));
    assert_eq!(with(&|client| client["challenge"] = json!(URL_SAFE_NO_PAD.encode([0; 32]))), Err("other_call"));

    let (mut desk, digest) = asked(&keys);
    assert_eq!(
        confirmed(&mut desk, &said(&keys, &client(&digest), "evil.example")),
        Err("wrong_relying_party"),
        "signed for another place"
    );
    assert_eq!(confirmed(&mut desk, &said(&other, &client(&digest), "localhost")), Err("bad_signature"), "by another key");
    let mut unknown = said(&keys, &client(&digest), "localhost");
    unknown["id"] = json!("b3RoZXI");
    assert_eq!(confirmed(&mut desk, &unknown), Err("unknown_key"));
    let mut bent = said(&keys, &client(&digest), "localhost");
    bent["response"]["authenticatorData"] =
        json!(URL_SAFE_NO_PAD.encode([&Sha256::digest("localhost")[..], &[0x05], &[0, 0, 0, 9]].concat()));
    assert_eq!(confirmed(&mut desk, &bent), Err("bad_signature"), "with a count that was not signed");
}

#[test]
fn ax_46_a_passkey_is_enrolled_for_the_credential_that_was_made_and_the_question_that_was_asked() {
    let keys = keys();
    let spki = {
        let PublicKey::P256(point) = keys.ec() else { unreachable!() };
        let head = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE";
        [&STANDARD.decode(head).unwrap()[..], &point[1..]].concat()
    };
    let made = |id: &str, kind: &str, challenge: &[u8; 32], flags: u8| {
        let client = json!({"type": kind, "challenge": URL_SAFE_NO_PAD.encode(challenge), "origin": ORIGIN});
        let credential = [&[0; 16][..], &[0, 4], b"cred"].concat();
        let data = [&Sha256::digest("localhost")[..], &[flags], &[0; 4], &credential].concat();
        let registration: Registration = serde_json::from_value(json!({"id": URL_SAFE_NO_PAD.encode(id), "response": {
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client.to_string()),
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "publicKey": URL_SAFE_NO_PAD.encode(&spki),
        }}))
        .unwrap();
        registration
            .verify(&[7; 32], &party())
            .map(|(key, passkey)| (key == keys.ec(), passkey.relying_party))
            .map_err(|wrong| wrong.reason())
    };
    assert_eq!(made("cred", "webauthn.create", &[7; 32], 0x45), Ok((true, "localhost".to_owned())));
    assert_eq!(made("other", "webauthn.create", &[7; 32], 0x45), Err("proof_malformed"), "of another credential");
    assert_eq!(made("cred", "webauthn.create", &[7; 32], 0x05), Err("proof_malformed"), "of none");
    assert_eq!(made("cred", "webauthn.get", &[7; 32], 0x45), Err("proof_malformed"));
    assert_eq!(made("cred", "webauthn.create", &[8; 32], 0x45), Err("other_call"));
    assert_eq!(made("cred", "webauthn.create", &[7; 32], 0x41), Err("user_not_verified"));
}

#[test]
fn ax_46_a_passkey_signs_in_a_browser_only_where_it_says_who_is_there() {
    let keys = keys();
    let mut desk = desk(1);
    let passkey = Passkey { credential: "Y3JlZA".into(), count: 0, relying_party: "localhost".into() };
    desk.enroll(operator("anna", keys.ed(), Some(passkey)));
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
    let text = desk.approval(&fresh(1).id).unwrap().challenge.text();
    let bare = Proof::Ed25519 { key: keys.ed().fingerprint(), signature: keys.ed.sign(text.as_bytes()).as_ref().to_vec() };
    for proof in [bare, ssh(&keys, Challenge::NAMESPACE, &text)] {
        assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &proof).unwrap_err().reason(), "unknown_key", "{proof:?}");
    }
}

#[test]
fn ax_46_a_token_is_read_by_nobody_who_does_not_understand_its_header() {
    let keys = keys();
    let (mut desk, digest) = asked(&keys);
    let mut with = |header: serde_json::Value| {
        let claims = json!({"iss": "https://desk", "aud": "gate-1", "exp": NOW + 60, "sub": "bert", "digest": hex(&digest)});
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(keys.ed.sign(signed.as_bytes()));
        let proof = Proof::of_text(&format!("{signed}.{signature}")).unwrap();
        desk.confirm(clock(NOW), &fresh(1).id, &proof).map_err(|refusal| refusal.reason())
    };
    assert_eq!(with(json!({"alg": "EdDSA", "crit": ["exp"], "exp": 1})), Err("proof_malformed"));
    for algorithm in ["none", "HS256", "ES256", "eddsa"] {
        assert_eq!(with(json!({"alg": algorithm})), Err("unknown_key"), "{algorithm}");
    }
    assert_eq!(with(json!({"alg": "EdDSA"})), Ok(Standing::Released));
}

#[test]
fn a_grant_is_for_no_call_of_those_who_gave_it_by_whatever_name() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    desk.enroll(Operator { principals: BTreeSet::new(), ..operator("bert", keys.ec(), None) });
    let terms = Terms { tool: "*".into(), caller: "*".into(), arguments: BTreeMap::new(), any_other: true, expires: NOW + 60, uses: None };
    let proof = ssh(&keys, Terms::NAMESPACE, &terms.statement("g", "gate-1").text);
    desk.give(clock(NOW), "g", terms, &[proof]).unwrap();
    for (n, caller) in ["anna", "ANNA@login", "anna-laptop"].into_iter().enumerate() {
        assert_eq!(hold(&mut desk, &call(caller, "{}"), n, false), Held::Waits(fresh(n).id), "{caller}");
    }
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 9, false), Held::Granted("g".into()));
}
