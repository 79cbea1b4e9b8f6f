//! Agreement that no longer counts: by removed keys, by too few people, by passkeys of another place, or past its end.

use super::*;

const EVERYTHING: u64 = NOW + 1000;

fn terms(expires: u64) -> Terms {
    Terms { tool: "files.*".into(), caller: "*".into(), arguments: BTreeMap::new(), any_other: true, expires, uses: None }
}

/// Two people with a key each: `anna` by Ed25519, `bert` by P-256.
fn two(keys: &Keys, required: u8) -> Desk {
    let mut desk = desk(required);
    desk.enroll(operator("anna", keys.ed(), None));
    desk.enroll(operator("bert", keys.ec(), None));
    desk
}

fn by_bert(keys: &Keys, namespace: &str, text: &str) -> Proof {
    Proof::of_text(&armored(&keys.ec(), namespace, text.as_bytes(), |signed| pair(keys, signed))).unwrap()
}

fn given(desk: &mut Desk, keys: &Keys, expires: u64) {
    let proof = ssh(keys, Terms::NAMESPACE, &terms(expires).statement("g", "gate-1").text);
    desk.give(clock(NOW), "g", terms(expires), &[proof]).unwrap();
}

#[test]
fn ax_46_a_key_that_is_taken_away_takes_back_what_it_agreed_to() {
    let keys = keys();
    let mut desk = two(&keys, 2);
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
    let text = desk.approval(&fresh(1).id).unwrap().challenge.text();
    let (anna, bert) = (ssh(&keys, Challenge::NAMESPACE, &text), by_bert(&keys, Challenge::NAMESPACE, &text));
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &anna), Ok(Standing::Pending));
    desk.remove(clock(NOW), &keys.ed().fingerprint()).unwrap();
    assert_eq!(desk.approval(&fresh(1).id).unwrap().votes, [], "a vote of nobody");
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &anna).unwrap_err().reason(), "unknown_key");
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &bert), Ok(Standing::Pending), "one is too few");

    desk.enroll(operator("anna", keys.ed(), None));
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &anna), Ok(Standing::Released));
    desk.remove(clock(NOW), &keys.ec().fingerprint()).unwrap();
    let refusal = desk.claim(clock(NOW), &fresh(1).id, &call("ci", "{}")).unwrap_err();
    assert_eq!(refusal, Refusal::Over(Standing::Void));
    assert!(desk.approval(&fresh(1).id).unwrap().reason.as_deref().unwrap().contains("bert"));
    assert_eq!(desk.remove(clock(NOW), &keys.ec().fingerprint()), None);
}

#[test]
fn ax_46_a_key_that_is_taken_away_changes_nothing_of_what_went_out_or_others_agreed_to() {
    let keys = keys();
    let mut desk = two(&keys, 1);
    for n in [1, 2] {
        let call = call("ci", &format!("{{\"n\":{n}}}"));
        assert_eq!(hold(&mut desk, &call, n, false), Held::Waits(fresh(n).id));
        let text = desk.approval(&fresh(n).id).unwrap().challenge.text();
        let proof = if n == 1 { ssh(&keys, Challenge::NAMESPACE, &text) } else { by_bert(&keys, Challenge::NAMESPACE, &text) };
        assert_eq!(desk.confirm(clock(NOW), &fresh(n).id, &proof), Ok(Standing::Released));
    }
    desk.claim(clock(NOW), &fresh(1).id, &call("ci", "{\"n\":1}")).unwrap();
    desk.remove(clock(NOW), &keys.ed().fingerprint()).unwrap();
    assert_eq!(desk.approval(&fresh(1).id).unwrap().standing, Standing::Dispatched);
    assert!(desk.claim(clock(NOW), &fresh(2).id, &call("ci", "{\"n\":2}")).is_ok(), "bert agreed to this one");
}

#[test]
fn a_grant_holds_while_enough_of_those_who_gave_it_count() {
    let keys = keys();
    let mut desk = two(&keys, 1);
    given(&mut desk, &keys, EVERYTHING);
    assert_eq!(hold(&mut desk, &call("ci", "{\"n\":1}"), 1, true), Held::Granted("g".into()));
    let holds = |desk: &Desk| desk.holds(desk.grant("g").unwrap());
    desk.set(Settings { required: 2, ..desk.settings.clone() });
    assert!(!holds(&desk), "two have to agree now, and one gave it");
    assert_eq!(hold(&mut desk, &call("ci", "{\"n\":2}"), 2, true), Held::Waits(fresh(2).id));
    desk.set(Settings { required: 1, ..desk.settings.clone() });
    assert!(holds(&desk));
    desk.remove(clock(NOW), &keys.ed().fingerprint()).unwrap();
    assert!(!holds(&desk), "its key was taken away");
    assert_eq!(hold(&mut desk, &call("ci", "{\"n\":3}"), 3, true), Held::Waits(fresh(3).id));
}

#[test]
fn a_grant_of_a_service_holds_while_the_service_is_trusted() {
    let keys = keys();
    let mut desk = desk(1);
    desk.trust(vec![service(&keys)]);
    let digest = terms(EVERYTHING).statement("g", "gate-1").digest();
    let proof = Proof::of_text(&token(&keys, &json!({"sub": "carl", "digest": hex(&digest)}))).unwrap();
    desk.give(clock(NOW), "g", terms(EVERYTHING), &[proof]).unwrap();
    assert!(desk.holds(desk.grant("g").unwrap()));
    desk.trust(Vec::new());
    assert!(!desk.holds(desk.grant("g").unwrap()));
}

#[test]
fn a_grant_ends_when_it_says_so() {
    let keys = keys();
    let mut desk = two(&keys, 1);
    let late = desk.give(clock(NOW), "g", terms(NOW), &[]).unwrap_err();
    assert_eq!(late, Refusal::Over(Standing::Expired));
    given(&mut desk, &keys, NOW + 10);
    let at = |desk: &mut Desk, now, n| desk.hold(clock(now), call("ci", "{}"), (vec![Cause::Mode], "{}".into()), fresh(n), true);
    assert_eq!(at(&mut desk, NOW + 9, 1), Held::Granted("g".into()));
    assert_eq!(at(&mut desk, NOW + 10, 2), Held::Waits(fresh(2).id));
    assert_eq!(at(&mut desk, NOW, 3), Held::Waits(fresh(3).id), "the clock was set back");
}

fn with_passkey(keys: &Keys, relying_party: &str) -> Desk {
    let mut desk = desk(1);
    let passkey = Passkey { credential: "Y3JlZA".into(), count: 5, relying_party: relying_party.into() };
    desk.enroll(operator("anna", keys.ec(), Some(passkey)));
    desk.set_relying_party(Some(RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] }));
    desk
}

fn signed(keys: &Keys, digest: &[u8; 32], count: u32) -> Proof {
    let credential = assertion(keys, digest, "http://localhost:1", 0x05, count);
    Proof::read(json!({"type": "webauthn", "credential": credential}).to_string().as_bytes()).unwrap()
}

#[test]
fn ax_46_a_passkey_that_gave_a_grant_has_signed_once_more() {
    let keys = keys();
    let mut desk = with_passkey(&keys, "localhost");
    let digest = terms(EVERYTHING).statement("g", "gate-1").digest();
    desk.give(clock(NOW), "g", terms(EVERYTHING), &[signed(&keys, &digest, 6)]).unwrap();
    assert!(desk.changes().any(|change| *change == Change::Operator(keys.ec().fingerprint())), "it has to be kept");
    desk.revoke(clock(NOW), "g");
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
    let digest = desk.approval(&fresh(1).id).unwrap().challenge.statement().digest();
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &signed(&keys, &digest, 6)).unwrap_err().reason(), "counter_went_back");
    assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &signed(&keys, &digest, 7)), Ok(Standing::Released));
}

#[test]
fn ax_46_a_passkey_of_another_place_counts_for_nothing() {
    let keys = keys();
    let refused = |desk: &mut Desk| {
        assert_eq!(hold(desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
        let digest = desk.approval(&fresh(1).id).unwrap().challenge.statement().digest();
        desk.confirm(clock(NOW), &fresh(1).id, &signed(&keys, &digest, 6)).map_err(|refusal| refusal.reason())
    };
    assert_eq!(refused(&mut with_passkey(&keys, "localhost")), Ok(Standing::Released));
    assert_eq!(refused(&mut with_passkey(&keys, "gate.example.com")), Err("wrong_relying_party"), "it was made for another address");
    let mut moved = with_passkey(&keys, "localhost");
    moved.set_relying_party(Some(RelyingParty { id: "gate.example.com".into(), origins: vec!["http://localhost:1".into()] }));
    assert_eq!(refused(&mut moved), Err("wrong_relying_party"), "people approve elsewhere now");
    let mut nowhere = with_passkey(&keys, "localhost");
    nowhere.set_relying_party(None);
    assert_eq!(refused(&mut nowhere), Err("wrong_relying_party"), "nobody approves in a browser");
}

#[test]
fn ax_46_what_was_agreed_to_by_a_key_that_its_service_has_given_up_is_not_agreed_to_any_more() {
    let keys = keys();
    let other = Keys { ed: Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap(), ..self::keys() };
    let with = |keys: &[&Keys]| Service { keys: keys.iter().map(|keys| (None, keys.ed())).collect(), ..service(keys[0]) };
    for (by, standing) in [(with(&[&other, &keys]), Standing::Released), (with(&[&other]), Standing::Void)] {
        let mut desk = desk(1);
        desk.trust(vec![service(&keys)]);
        assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, false), Held::Waits(fresh(1).id));
        let digest = hex(&desk.approval(&fresh(1).id).unwrap().challenge.statement().digest());
        let proof = Proof::of_text(&token(&keys, &json!({"sub": "anna", "digest": digest}))).unwrap();
        assert_eq!(desk.confirm(clock(NOW), &fresh(1).id, &proof), Ok(Standing::Released));
        desk.trust(vec![by]);
        assert_eq!(desk.approval(&fresh(1).id).unwrap().standing, standing);
    }
}

#[test]
fn ax_46_a_grant_lets_through_as_many_calls_as_it_says_and_those_that_never_left_are_none() {
    let keys = keys();
    let mut desk = two(&keys, 1);
    let few = Terms { uses: Some(2), ..terms(EVERYTHING) };
    let proof = ssh(&keys, Terms::NAMESPACE, &few.statement("g", "gate-1").text);
    desk.give(clock(NOW), "g", few, &[proof]).unwrap();
    let mut ask = |n: usize, has_left: bool| {
        let held = hold(&mut desk, &call("ci", &format!("{{\"n\":{n}}}")), n, false);
        if !has_left {
            desk.give_back("g");
        }
        held == Held::Granted("g".into())
    };
    let let_through = [false, true, false, false, true].map(|has_left| ask(1, has_left));
    assert_eq!((let_through, ask(2, true)), ([true; 5], false));
}
