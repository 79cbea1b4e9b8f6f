use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SigningKey};

use super::*;
use audit::ect::compact::signed_part;

const NOW: u64 = 1_772_064_150;
const GATE: &str = "spiffe://example.com/gate";
const WORK: WitnessedWork<'static> = WitnessedWork {
    issuer: GATE,
    audience: &["b"],
    issued: NOW,
    expires: NOW + 300,
    id: "550e8400-e29b-41d4-a716-446655440000",
    workflow: None,
    action: "aepb:translate",
    parents: &[],
    input: None,
    output: None,
    extension: None,
};

fn signer(id: &str) -> EctSigner {
    EctSigner::from_pem(&KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap().serialize_pem(), id).unwrap()
}

/// Signs with a new key of Ed25519, which other makers of tokens may have, and gives the token with the issuers that know the key.
fn edwards(draft: EctDraft) -> (String, EctIssuers) {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let signed = signing_input(draft, EctAlgorithm::EdDsa, "e", &WORK.claims(draft).unwrap());
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()).unwrap()));
    let mut issuers = EctIssuers::default();
    issuers.add(GATE, KeySet::parse(&key.public_key_pem()).unwrap());
    (token, issuers)
}

fn issuers(known: &[(&str, &EctSigner)]) -> EctIssuers {
    let mut issuers = EctIssuers::default();
    for (name, signer) in known {
        issuers.add(name, KeySet::parse(&signer.public().unwrap()).unwrap());
    }
    issuers
}

#[test]
fn ae_40_a_token_is_verified_with_either_algorithm() {
    let signer = signer("k");
    for draft in [EctDraft::Draft00, EctDraft::Draft01] {
        for (token, known) in [(signer.sign(&WORK, draft).unwrap(), issuers(&[(GATE, &signer)])), edwards(draft)] {
            let judged = known.verify(&token, EctLevel::Unsigned, &["b"], NOW).unwrap();
            assert_eq!(judged.level, EctLevel::Signed);
            assert_eq!((judged.claims.draft, judged.claims.id.as_str(), judged.claims.action.as_str()), (draft, WORK.id, WORK.action));
        }
    }
}

#[test]
fn ae_40_a_token_of_nobody_known_is_refused() {
    let (signer, other) = (signer("k"), signer("k"));
    let token = signer.sign(&WORK, EctDraft::Draft00).unwrap();
    let of = |known: &EctIssuers, verifier: &[&str], now| known.verify(&token, EctLevel::Signed, verifier, now).map(drop);
    assert_eq!(of(&issuers(&[(GATE, &other)]), &["b"], NOW), Err(EctFault::Signature));
    assert_eq!(of(&issuers(&[(GATE, &self::signer("other"))]), &["b"], NOW), Err(EctFault::Key("k".into())));
    // A key is good for a single algorithm.
    assert_eq!(of(&edwards(EctDraft::Draft00).1, &["b"], NOW), Err(EctFault::Key("k".into())));
    assert_eq!(of(&issuers(&[]), &["b"], NOW), Err(EctFault::Key("k".into())));
    assert_eq!(of(&issuers(&[("spiffe://example.com/other", &signer)]), &["b"], NOW), Err(EctFault::Issuer));
    let known = issuers(&[(GATE, &other), (GATE, &signer)]);
    assert_eq!(of(&known, &["b"], NOW), Ok(()));
    assert_eq!(of(&known, &["c"], NOW), Err(EctFault::Audience));
    assert_eq!(of(&known, &["b"], NOW + 400), Err(EctFault::Expired));
}

#[test]
fn ae_40_no_changed_byte_of_a_token_passes() {
    let signer = signer("k");
    let own = (signer.sign(&WORK, EctDraft::Draft01).unwrap(), issuers(&[(GATE, &signer)]));
    for (token, known) in [own, edwards(EctDraft::Draft01)] {
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(known.verify(&changed, EctLevel::Unsigned, &["b"], NOW).is_err(), "{changed}");
        }
        let cut = token.rsplit_once('.').unwrap().0;
        for cut in [format!("{cut}."), cut.to_owned()] {
            assert!(known.verify(&cut, EctLevel::Unsigned, &["b"], NOW).is_err(), "{cut}");
        }
    }
}

#[test]
fn ae_40_plain_claims_pass_at_the_lowest_level_alone() {
    let signer = signer("k");
    let known = issuers(&[(GATE, &signer)]);
    let plain = URL_SAFE_NO_PAD.encode(WORK.claims(EctDraft::Draft00).unwrap());
    assert_eq!(known.verify(&plain, EctLevel::Signed, &["b"], NOW), Err(EctFault::Level));
    assert_eq!(known.signed(&plain), Err(EctFault::Level));
    assert_eq!(known.verify(&plain, EctLevel::Unsigned, &["b"], NOW).unwrap().level, EctLevel::Unsigned);
    assert_eq!(known.verify(&plain, EctLevel::Unsigned, &["c"], NOW), Err(EctFault::Audience));
    assert_eq!(known.verify(&plain, EctLevel::Unsigned, &["b"], NOW + 400), Err(EctFault::Expired));
}

#[test]
fn ae_40_keys_of_many_issuers_hide_no_other() {
    let (signer, mut known) = (signer("k"), EctIssuers::default());
    for number in 0..20 {
        known.add(&format!("spiffe://example.com/{number}"), KeySet::parse(&self::signer("k").public().unwrap()).unwrap());
    }
    known.add(GATE, KeySet::parse(&signer.public().unwrap()).unwrap());
    assert_eq!(known.signed(&signer.sign(&WORK, EctDraft::Draft01).unwrap()).map(drop), Ok(()));
}

#[test]
fn ae_40_the_twin_of_a_signature_is_the_same_token() {
    let signer = signer("k");
    let token = signer.sign(&WORK, EctDraft::Draft01).unwrap();
    let again = signer.sign(&WORK, EctDraft::Draft01).unwrap();
    assert_ne!(token, again);
    assert_eq!(signed_part(&token), signed_part(&again));
}

#[test]
fn a_key_of_another_curve_is_refused() {
    for algorithm in [&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        let pem = KeyPair::generate_for(algorithm).unwrap().serialize_pem();
        assert!(EctSigner::from_pem(&pem, "k").is_err());
    }
    assert!(EctSigner::from_pem("", "k").is_err());
}

#[test]
fn ae_40_a_made_key_is_read_again_under_its_thumbprint() {
    let (signer, pem) = EctSigner::generate().unwrap();
    let again = EctSigner::by_thumbprint(&pem).unwrap();
    assert_eq!(signer.public().unwrap(), again.public().unwrap());
    let token = again.sign(&WORK, EctDraft::Draft01).unwrap();
    assert_eq!(issuers(&[(GATE, &signer)]).signed(&token).unwrap().id, WORK.id);
    let payload = format!("{{\"iss\":\"{GATE}\"}}");
    let document = signer.sign_document("aepb-capability+jwt", payload.as_bytes()).unwrap();
    let known = issuers(&[(GATE, &signer)]);
    assert!(known.signed(&document).is_err(), "a document is no token");
    assert_eq!(known.document(&document, "aepb-capability+jwt"), Ok((GATE.to_owned(), payload.into_bytes())));
    let other = signer.sign_document("aepb-capability+jwt", b"{\"iss\":\"spiffe://example.com/other\"}").unwrap();
    assert_eq!(known.document(&other, "aepb-capability+jwt").map(drop), Err(EctFault::Issuer));
    assert!(known.document(&token, "aepb-capability+jwt").is_err(), "and a token no document");
}
