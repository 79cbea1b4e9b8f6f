use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, SigningKey};
use serde_json::{Value, json};

use crate::issuers::*;

const AUDIENCE: &str = "https://gate.example.com/mcp";

fn signed(algorithm: Algorithm, key: &EncodingKey, claims: &Value) -> Proof {
    Proof::new(&encode(&Header::new(algorithm), claims, key).unwrap()).unwrap()
}

fn claims(subject: &str) -> Value {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    json!({"sub": subject, "aud": AUDIENCE, "exp": now + 60})
}

/// Makes a gate that takes proofs of names below example.com by these keys.
fn proved_by(keys: &[&KeyPair]) -> Issuers {
    let dir = tempfile::tempdir().unwrap();
    let authorities = keys.iter().enumerate().map(|(i, key)| {
        let file = dir.path().join(format!("{i}.pem"));
        std::fs::write(&file, key.public_key_pem()).unwrap();
        AuthorityKeys { name: i.to_string().into(), keys: Keys::File(file), names: vec!["*.example.com".into()] }
    });
    let trust = Trust { resource: Some(AUDIENCE.into()), authorities: authorities.collect(), ..Trust::default() };
    Issuers::new(&trust, &Issuers::default(), &Arc::default())
}

#[test]
fn ax_13_a_proof_takes_keys_allowed_to_prove_its_name() {
    let [ours, others] = [(); 2].map(|()| KeyPair::generate_for(&PKCS_ED25519).unwrap());
    let key = |pair: &KeyPair| EncodingKey::from_ed_der(pair.serialized_der());
    let issuers = proved_by(&[&KeyPair::generate_for(&PKCS_ED25519).unwrap(), &ours]);
    let prove = |pair: &KeyPair, claims: &Value| issuers.prove(&signed(Algorithm::EdDSA, &key(pair), claims));

    let proven = Authority::of_dns_name("edge.example.com").unwrap();
    assert_eq!(prove(&ours, &claims("edge.example.com")), Ok(proven.clone()));
    assert_eq!(prove(&ours, &claims("dns:Edge.Example.com")), Ok(proven));
    assert_eq!(prove(&ours, &claims("edge.example.org")), Err(ProofRefusal::NotAllowed));
    assert_eq!(prove(&ours, &claims("no name")), Err(ProofRefusal::Name));
    assert_eq!(prove(&others, &claims("edge.example.com")), Err(ProofRefusal::Token(Wrong::Key.into())));

    let mut elsewhere = claims("edge.example.com");
    elsewhere["aud"] = "https://other.example.com/mcp".into();
    assert_eq!(prove(&ours, &elsewhere), Err(ProofRefusal::Token(Wrong::Audience.into())), "a proof is of no use at another hop");
    let mut endless = claims("edge.example.com");
    endless.as_object_mut().unwrap().remove("exp");
    assert_eq!(prove(&ours, &endless), Err(ProofRefusal::Token(Wrong::Form.into())));
    assert_eq!(Issuers::default().prove(&signed(Algorithm::EdDSA, &key(&ours), &claims("a"))), Err(ProofRefusal::NotTaken));
}

#[test]
fn each_pem_key_is_good_for_its_own_algorithm() {
    let ed = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let ec = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let rsa = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let issuers = proved_by(&[&ed, &ec, &rsa]);
    let prove = |algorithm, key: &EncodingKey| issuers.prove(&signed(algorithm, key, &claims("a.example.com")));
    assert!(prove(Algorithm::EdDSA, &EncodingKey::from_ed_der(ed.serialized_der())).is_ok());
    assert!(prove(Algorithm::ES256, &EncodingKey::from_ec_der(ec.serialized_der())).is_ok());
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({"alg": "RS256"})), part(&claims("a.example.com")));
    let signature = URL_SAFE_NO_PAD.encode(rsa.sign(text.as_bytes()).unwrap());
    assert!(issuers.prove(&Proof::new(&format!("{text}.{signature}")).unwrap()).is_ok());
    // The public key as a shared secret: the oldest trick there is.
    let public = EncodingKey::from_secret(rsa.public_key_pem().as_bytes());
    assert_eq!(prove(Algorithm::HS256, &public), Err(ProofRefusal::Token(Wrong::Key.into())));
}
