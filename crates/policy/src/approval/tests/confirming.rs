//! A thousand tries of a caller to get its own call out: each is refused with its own answer, and only calls agreed to leave,
//! once. The cases come from a seed, so that a failing case is found again by its number.

use super::*;

const CASES: u64 = 1500;

/// Numbers that look random and are the same each time (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }

    fn word(&mut self) -> String {
        format!("{:x}", self.roll(1 << 30))
    }
}

/// A desk where `anna` and `bert` may agree, a service counts, and a call of `ci` waits under the id of `fresh(1)`.
struct Scene {
    desk: Desk,
    victim: Call,
    challenge: Challenge,
    /// Number of times the call may go out by now.
    may_leave: usize,
}

struct People {
    anna: Keys,
    model: Keys,
}

impl Scene {
    fn new(people: &People, required: u8) -> Self {
        let mut desk = desk(required);
        desk.enroll(operator("anna", people.anna.ed(), None));
        let passkey = Passkey { credential: "Y3JlZA".into(), count: 5, relying_party: "localhost".into() };
        desk.enroll(operator("anna", people.anna.ec(), Some(passkey)));
        let bert = Keys { ed: Ed25519KeyPair::from_seed_unchecked(&[11; 32]).unwrap(), ec: p256() };
        desk.enroll(operator("bert", bert.ed(), None));
        desk.trust(vec![service(&people.anna)]);
        desk.set_relying_party(Some(RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] }));
        let victim = call("ci", "{\"n\":1,\"path\":\"/srv\"}");
        assert_eq!(hold(&mut desk, &victim, 1, false), Held::Waits(fresh(1).id));
        let challenge = desk.approval(&fresh(1).id).unwrap().challenge.clone();
        Self { desk, victim, challenge, may_leave: 0 }
    }

    fn confirm(&mut self, proof: &Proof) -> String {
        let id = self.challenge.id.clone();
        self.desk.confirm(clock(NOW), &id, proof).unwrap_err().reason().to_owned()
    }

    /// Lets an entitled person agree.
    fn agreed(&mut self, people: &People) {
        let (id, proof) = (self.challenge.id.clone(), bare(&people.anna, &self.challenge.text()));
        assert_eq!(self.desk.confirm(clock(NOW), &id, &proof), Ok(Standing::Released));
        self.may_leave = 1;
    }

    /// Checks that the waiting call leaves no more often than agreed, and no other call leaves.
    fn holds(mut self) {
        let id = self.challenge.id.clone();
        let left = (0..3).filter(|_| self.desk.claim(clock(NOW), &id, &self.victim).is_ok()).count();
        assert!(left <= self.may_leave, "it went out {left} times, and {} were agreed to", self.may_leave);
    }
}

fn p256() -> EcdsaKeyPair {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).unwrap()
}

fn bare(keys: &Keys, text: &str) -> Proof {
    Proof::Ed25519 { key: keys.ed().fingerprint(), signature: keys.ed.sign(text.as_bytes()).as_ref().to_vec() }
}

/// Changes one part of the challenge to the liking of the caller.
fn edited(challenge: &Challenge, dice: &mut Dice) -> (String, Challenge) {
    let mut other = challenge.clone();
    let word = dice.word();
    let what = dice.roll(11);
    match what {
        0 => other.id = word.clone(),
        1 => other.gate = word.clone(),
        2 => other.nonce = word.clone(),
        3 => other.expires += 1 + u64::try_from(dice.roll(1 << 20)).unwrap(),
        4 => other.required = other.required.wrapping_add(1 + u8::try_from(dice.roll(200)).unwrap()),
        5 => other.call.caller = word.clone(),
        6 => other.call.tool = word.clone(),
        7 => other.call.route = vec![word.clone()],
        8 => other.call.definition = word.clone(),
        9 => other.call.policy = word.clone(),
        _ => other.call.arguments = format!("{{\"path\":{word:?}}}"),
    }
    (format!("{what} {word}"), other)
}

/// A try: description, expected answer, actual answer.
type Tried = (String, &'static str, String);
type Way = fn(&People, &mut Dice) -> Tried;

fn with_keys_of_its_own(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let (text, model) = (scene.challenge.text(), &people.model);
    let claims = json!({"digest": hex(&scene.challenge.statement().digest()), "sub": dice.word()});
    let (what, wanted, proof) = match dice.roll(4) {
        0 => ("a key of its own", "unknown_key", bare(model, &text)),
        1 => ("an SSH key of its own", "unknown_key", ssh(model, Challenge::NAMESPACE, &text)),
        2 => ("a token of its own", "bad_signature", Proof::of_text(&token(model, &claims)).unwrap()),
        _ => {
            let signature = model.ed.sign(text.as_bytes()).as_ref().to_vec();
            ("another's name on its own signature", "bad_signature", Proof::Ed25519 { key: people.anna.ed().fingerprint(), signature })
        }
    };
    let told = scene.confirm(&proof);
    scene.holds();
    (format!("{what} {}", claims["sub"]), wanted, told)
}

fn with_a_signature_over_something_else(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let (what, other) = edited(&scene.challenge, dice);
    let digest = other.statement().digest();
    let (how, wanted, proof) = match dice.roll(4) {
        0 => ("bare", "bad_signature", bare(&people.anna, &other.text())),
        1 => ("ssh", "bad_signature", ssh(&people.anna, Challenge::NAMESPACE, &other.text())),
        2 => ("token", "other_call", Proof::of_text(&token(&people.anna, &json!({"digest": hex(&digest)}))).unwrap()),
        _ => {
            let credential = assertion(&people.anna, &digest, "http://localhost:1", 0x05, 6);
            let written = json!({"type": "webauthn", "credential": credential}).to_string();
            ("passkey", "other_call", Proof::read(written.as_bytes()).unwrap())
        }
    };
    let told = scene.confirm(&proof);
    scene.holds();
    (format!("{how} over {what}"), wanted, told)
}

fn with_a_signature_that_was_bent(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let Proof::Ed25519 { key, mut signature } = bare(&people.anna, &scene.challenge.text()) else { unreachable!() };
    let (at, bit) = (dice.roll(64), dice.roll(8));
    let what = dice.roll(3);
    match what {
        0 => signature[at] ^= 1 << bit,
        1 => signature.truncate(at),
        _ => signature.extend(vec![u8::try_from(bit).unwrap(); at + 1]),
    }
    let told = scene.confirm(&Proof::Ed25519 { key, signature });
    scene.holds();
    (format!("{what} at {at}.{bit}"), "bad_signature", told)
}

fn with_what_is_no_proof(people: &People, dice: &mut Dice) -> Tried {
    let scene = Scene::new(people, 1);
    let word = dice.word();
    let raw = match dice.roll(8) {
        0 => json!(word),
        1 => json!({ "type": word }),
        2 => json!({"type": "ed25519", "key": word}),
        3 => json!({"type": "ed25519", "key": people.anna.ed().fingerprint(), "signature": format!("{word}!")}),
        4 => json!([word]),
        5 => json!({"type": "sshsig", "signature": word}),
        6 => json!({"type": "webauthn", "credential": {"id": word}}),
        _ => json!({"approved": true, "by": "anna", "note": word}),
    };
    let params = json!({"id": scene.challenge.id, "proof": raw}).to_string();
    let told = Confirm::read(params.as_bytes()).unwrap_err().reason().to_owned();
    scene.holds();
    (raw.to_string(), "proof_malformed", told)
}

fn with_a_token_of_another_kind(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let word = dice.word();
    let late = NOW + 120 + u64::try_from(dice.roll(1 << 20)).unwrap();
    let mut claims = json!({"digest": hex(&scene.challenge.statement().digest()), "jti": word});
    let (member, value, wanted) = match dice.roll(6) {
        0 => ("aud", json!(word), "wrong_audience"),
        1 => ("aud", json!([word, "gate-2"]), "wrong_audience"),
        2 => ("iss", json!(format!("https://{word}")), "unknown_issuer"),
        3 => ("exp", json!(NOW - u64::try_from(dice.roll(1 << 16)).unwrap()), "token_expired"),
        4 => ("nbf", json!(late), "token_not_yet_valid"),
        _ => ("sub", json!(*dice.pick(&["ci", "CI", "ci@login", "Ci@x"])), "self_approval"),
    };
    claims[member] = value;
    let told = scene.confirm(&Proof::of_text(&token(&people.anna, &claims)).unwrap());
    scene.holds();
    (claims.to_string(), wanted, told)
}

fn again(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let proof = bare(&people.anna, &scene.challenge.text());
    scene.agreed(people);
    let how = dice.roll(3);
    if how > 0 {
        let id = scene.challenge.id.clone();
        assert!(scene.desk.claim(clock(NOW), &id, &scene.victim).is_ok());
        scene.may_leave = 0;
        if how > 1 {
            scene.desk.finish(clock(NOW), &id, End::Answered);
        }
    }
    let times = 1 + dice.roll(40);
    let told = (0..times).map(|_| scene.confirm(&proof)).last().unwrap();
    scene.holds();
    (format!("{how}, {times} times"), "approval_used", told)
}

/// The same proof, for the same call made once more.
fn of_the_call_before(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let proof = bare(&people.anna, &scene.challenge.text());
    scene.agreed(people);
    let id = scene.challenge.id.clone();
    assert!(scene.desk.claim(clock(NOW), &id, &scene.victim).is_ok());
    scene.desk.finish(clock(NOW), &id, End::Answered);
    let n = 2 + dice.roll(1000);
    assert_eq!(hold(&mut scene.desk, &scene.victim, n, false), Held::Waits(fresh(n).id));
    let told = scene.desk.confirm(clock(NOW), &fresh(n).id, &proof).unwrap_err().reason().to_owned();
    assert!(scene.desk.claim(clock(NOW), &fresh(n).id, &scene.victim).is_err());
    (format!("{n}"), "bad_signature", told)
}

fn when_it_is_over(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let (id, late) = (scene.challenge.id.clone(), 300 + u64::try_from(dice.roll(1 << 20)).unwrap());
    let word = dice.word();
    let (wanted, now) = match dice.roll(4) {
        0 => ("approval_expired", NOW + late),
        1 => {
            scene.desk.deny(clock(NOW), &id, &word).unwrap();
            ("approval_denied", NOW)
        }
        2 => {
            scene.desk.withdraw(clock(NOW), &id);
            ("approval_withdrawn", NOW)
        }
        _ => {
            scene.desk.set_policy(clock(NOW), &word);
            ("approval_void", NOW)
        }
    };
    let proof = bare(&people.anna, &scene.challenge.text());
    let told = scene.desk.confirm(clock(now), &id, &proof).unwrap_err().reason().to_owned();
    // A clock that is set back makes nothing good again.
    assert_eq!(scene.confirm(&proof), told);
    scene.holds();
    (format!("{wanted} {late} {word}"), wanted, told)
}

fn by_another_id(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let id = match dice.roll(4) {
        0 => dice.word(),
        1 => scene.challenge.id[..dice.roll(32)].to_owned(),
        2 => format!("{} {}", scene.challenge.id, dice.word()),
        _ => format!("../{}", dice.word()),
    };
    let told = scene.desk.confirm(clock(NOW), &id, &bare(&people.anna, &scene.challenge.text())).unwrap_err().reason().to_owned();
    scene.holds();
    (id, "unknown_approval", told)
}

fn one_person_as_two(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 2);
    let (id, text) = (scene.challenge.id.clone(), scene.challenge.text());
    let digest = hex(&scene.challenge.statement().digest());
    assert_eq!(scene.desk.confirm(clock(NOW), &id, &bare(&people.anna, &text)), Ok(Standing::Pending));
    let count = u32::try_from(6 + dice.roll(1000)).unwrap();
    let (how, proof) = match dice.roll(3) {
        0 => ("the same key".to_owned(), ssh(&people.anna, Challenge::NAMESPACE, &text)),
        1 => {
            let credential = assertion(&people.anna, &scene.challenge.statement().digest(), "http://localhost:1", 0x05, count);
            let written = json!({"type": "webauthn", "credential": credential}).to_string();
            (format!("a passkey, {count}"), Proof::read(written.as_bytes()).unwrap())
        }
        _ => {
            let name = *dice.pick(&["anna", "Anna", "ANNA", "anna@desk", "Anna@x"]);
            (
                format!("as {name}, {count}"),
                Proof::of_text(&token(&people.anna, &json!({"digest": digest, "sub": name, "jti": count}))).unwrap(),
            )
        }
    };
    let told = scene.confirm(&proof);
    scene.holds();
    (how, "second_person_needed", told)
}

/// Sends another call after agreement.
fn with_another_call(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    scene.agreed(people);
    let (id, word, what) = (scene.challenge.id.clone(), dice.word(), dice.roll(6));
    let mut other = scene.victim.clone();
    match what {
        0 => other.arguments = format!("{{\"n\":1,\"path\":{word:?}}}"),
        1 => other.arguments = format!("{{\"n\":1,\"path\":\"/srv\",\"x\":{word:?}}}"),
        2 => other.caller = word.clone(),
        3 => other.tool = word.clone(),
        4 => other.definition = word.clone(),
        _ => other.policy = word.clone(),
    }
    let told = scene.desk.claim(clock(NOW), &id, &other).unwrap_err().reason().to_owned();
    // Nor does the one that was agreed to, any more.
    scene.may_leave = 0;
    scene.holds();
    (format!("{what} {word}"), "approval_void", told)
}

/// Sends the call before anybody has agreed.
fn without_waiting(people: &People, dice: &mut Dice) -> Tried {
    let required = 1 + u8::try_from(dice.roll(2)).unwrap();
    let mut scene = Scene::new(people, required);
    let (id, later) = (scene.challenge.id.clone(), u64::try_from(dice.roll(299)).unwrap());
    let told = scene.desk.claim(clock(NOW + later), &id, &scene.victim).unwrap_err().reason().to_owned();
    scene.holds();
    (format!("{required} after {later}"), "confirmation_required", told)
}

/// Uses a grant given for another call.
fn by_a_grant_for_something_else(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let word = dice.word();
    let plain = || BTreeMap::from([("path".to_owned(), "/srv".to_owned()), ("n".to_owned(), "1".to_owned())]);
    let mut terms =
        Terms { tool: "files.wipe".into(), caller: "ci".into(), arguments: plain(), any_other: false, expires: NOW + 60, uses: Some(1) };
    let what = dice.roll(7);
    match what {
        0 => terms.tool = format!("files.{word}"),
        1 => terms.caller = format!("{word}*"),
        2 => drop(terms.arguments.insert("path".into(), format!("/srv/{word}*"))),
        3 => drop(terms.arguments.remove("n")),
        4 => drop(terms.arguments.insert(word.clone(), "*".into())),
        5 => terms.uses = Some(0),
        _ => terms.caller = "anna*".into(),
    }
    let proof = bare(&people.anna, &terms.statement("g", "gate-1").text);
    scene.desk.give(clock(NOW), "g", terms, &[proof]).unwrap();
    // As it is, or as the one who gave the grant.
    let caller = if what == 6 { "anna" } else { "ci" };
    let held = hold(&mut scene.desk, &Call { caller: caller.into(), ..scene.victim.clone() }, 7, false);
    let told = if matches!(held, Held::Granted(_)) { "granted" } else { "waits" }.to_owned();
    scene.holds();
    (format!("{what} {word}"), "waits", told)
}

/// Shows a proof for another kind of statement.
fn with_a_proof_for_a_grant(people: &People, dice: &mut Dice) -> Tried {
    let mut scene = Scene::new(people, 1);
    let word = dice.word();
    let terms = Terms {
        tool: "*".into(),
        caller: "*".into(),
        arguments: BTreeMap::new(),
        any_other: true,
        expires: NOW + 1 + u64::try_from(dice.roll(1 << 20)).unwrap(),
        uses: None,
    };
    let statement = terms.statement(&word, "gate-1");
    if dice.roll(2) == 0 {
        let told = scene.confirm(&ssh(&people.anna, statement.namespace, &statement.text));
        scene.holds();
        return (format!("a call by {}", statement.text), "wrong_namespace", told);
    }
    let proof = bare(&people.anna, &scene.challenge.text());
    let told = scene.desk.give(clock(NOW), &word, terms, &[proof]).unwrap_err().reason().to_owned();
    assert!(!matches!(hold(&mut scene.desk, &call("ci", "{}"), 9, false), Held::Granted(_)));
    scene.holds();
    (format!("a grant by {word}"), "bad_signature", told)
}

#[test]
fn ax_46_a_thousand_ways_to_confirm_oneself_are_refused_each_with_its_own_answer() {
    let people = People { anna: keys(), model: Keys { ed: Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap(), ..keys() } };
    let ways: [(&str, Way); 14] = [
        ("with keys of its own", with_keys_of_its_own),
        ("with a signature over something else", with_a_signature_over_something_else),
        ("with a signature that was bent", with_a_signature_that_was_bent),
        ("with what is no proof", with_what_is_no_proof),
        ("with a token of another kind", with_a_token_of_another_kind),
        ("again", again),
        ("of the call before", of_the_call_before),
        ("when it is over", when_it_is_over),
        ("by another id", by_another_id),
        ("one person as two", one_person_as_two),
        ("with another call", with_another_call),
        ("without waiting", without_waiting),
        ("by a grant for something else", by_a_grant_for_something_else),
        ("with a proof for a grant", with_a_proof_for_a_grant),
    ];
    let (mut different, mut answers) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..CASES {
        let (name, way) = ways[usize::try_from(seed).unwrap() % ways.len()];
        let (what, wanted, told) = way(&people, &mut Dice(seed));
        assert_eq!(told, wanted, "case {seed}: {name}: {what}");
        different.insert((name, what));
        answers.insert(told);
    }
    assert!(different.len() >= 1000, "only {} of them differ", different.len());
    assert!(answers.len() >= 17, "{answers:?}");
}

#[test]
fn a_grant_where_two_have_to_agree_takes_two_people() {
    let keys = keys();
    let mut desk = desk(2);
    desk.enroll(operator("anna", keys.ed(), None));
    desk.enroll(operator("Bert", keys.ec(), None));
    let terms =
        Terms { tool: "files.*".into(), caller: "*".into(), arguments: BTreeMap::new(), any_other: true, expires: NOW + 1000, uses: None };
    let text = terms.statement("g", "gate-1").text;
    let first = ssh(&keys, Terms::NAMESPACE, &text);
    let second = armored(&keys.ec(), Terms::NAMESPACE, text.as_bytes(), |signed| pair(&keys, signed));
    let second = Proof::of_text(&second).unwrap();
    let give = |desk: &mut Desk, proofs: &[&Proof]| {
        let proofs: Vec<Proof> = proofs.iter().map(|proof| (*proof).clone()).collect();
        desk.give(clock(NOW), "g", terms.clone(), &proofs).map(|grant| grant.given.len())
    };
    assert_eq!(give(&mut desk, &[&first]), Err(Refusal::Over(Standing::Pending)));
    assert_eq!(give(&mut desk, &[&first, &first]).unwrap_err().reason(), "second_person_needed");
    assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, true), Held::Waits(fresh(1).id), "none was given so far");
    desk.withdraw(clock(NOW), &fresh(1).id);
    assert_eq!(give(&mut desk, &[&second, &first]), Ok(2));
    assert_eq!(hold(&mut desk, &call("ci", "{\"n\":1}"), 2, true), Held::Granted("g".into()));
    let own = hold(&mut desk, &call("bert", "{\"n\":1}"), 3, true);
    assert_eq!(own, Held::NoApprover { reachable: 1, required: 2 }, "nobody's own call goes out by it");
}
