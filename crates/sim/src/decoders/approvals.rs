//! Checks of what agreement is read from: canonical JSON, confirmations, signatures of OpenSSH and answers of passkeys. Makes up no input.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::approval::{
    self, Anchors, Assertion, AssertionResponse, Confirm, Operator, Passkey, Proof, PublicKey, Registration, RegistrationResponse,
    RelyingParty, Service, SshSignature, Statement,
};

/// A canonical text is its own canonical form, and keeps the meaning of its source.
pub(super) fn canonical(data: &[u8]) {
    if let Ok(form) = approval::canonical(data) {
        assert_eq!(approval::canonical(form.as_bytes()).as_deref(), Ok(form.as_str()));
        let (before, after) = (serde_json::from_slice::<serde_json::Value>(data), serde_json::from_str::<serde_json::Value>(&form));
        assert!(before.is_ok() && after.is_ok(), "it was no JSON");
    }
}

/// Nothing read here counts as agreement: neither the enrolled key nor the known service has signed.
pub(super) fn confirm(data: &[u8]) {
    let statement = Statement { text: String::new(), namespace: "fuzz" };
    let key = PublicKey::Ed25519([9; 32]);
    let service = Service { name: "s".into(), issuer: "fuzz".into(), audience: "gate".into(), keys: vec![(Some("k".into()), key.clone())] };
    let operator = Operator { id: "k".into(), name: "ann".into(), principals: [].into(), key, passkey: None, enrolled: 0 };
    let anchors = Anchors { operators: [("k".to_owned(), operator)].into(), services: vec![service], relying_party: None };
    let proofs = [Confirm::read(data).map(|confirm| confirm.proof), Proof::read(data)];
    for proof in proofs.into_iter().flatten() {
        assert!(anchors.verify(&proof, &statement, 0).is_err());
        assert!(Anchors::default().verify(&proof, &statement, 0).is_err());
    }
}

/// A signature read here names a key that survives writing and reading, and verifies no foreign message.
pub(super) fn sshsig(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let raw =
        format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----", base64::engine::general_purpose::STANDARD.encode(data));
    for signature in [SshSignature::parse(&text), SshSignature::parse(&raw)].into_iter().flatten() {
        assert_eq!(PublicKey::parse(&signature.key.line()).as_ref(), Ok(&signature.key));
        assert!(!signature.verifies(b"nobody has signed this text"));
    }
}

/// An answer that no authenticator made is never taken. The first byte says how long the client data is.
pub(super) fn webauthn(data: &[u8]) {
    let (length, rest) = data.split_first().map_or((0, data), |(length, rest)| (usize::from(*length), rest));
    let (client, rest) = rest.split_at(length.min(rest.len()));
    let (told, signature) = rest.split_at(rest.len() / 2);
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let response = AssertionResponse { client_data: encode(client), authenticator_data: encode(told), signature: encode(signature) };
    let assertion = Assertion { id: "x".into(), response };
    let passkey = Passkey { credential: "x".into(), count: 0, relying_party: "localhost".into() };
    let party = RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] };
    assert!(assertion.verify(&PublicKey::Ed25519([9; 32]), &passkey, &[0; 32], &party).is_err());
}

/// A registration of a passkey. The first two bytes give the lengths of its name and key; the
/// browser's report is correct, so that the rest is read.
pub(super) fn passkey(data: &[u8]) {
    let [id, key, rest @ ..] = data else { return };
    let (id, rest) = rest.split_at(usize::from(*id).min(rest.len()));
    let (key, told) = rest.split_at(usize::from(*key).min(rest.len()));
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let client =
        format!(r#"{{"type":"webauthn.create","challenge":"{}","origin":"http://localhost:1","crossOrigin":false}}"#, encode(&[0; 32]));
    let party = RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] };
    let response =
        RegistrationResponse { client_data: encode(client.as_bytes()), authenticator_data: encode(told), public_key: encode(key) };
    let registration = Registration { id: encode(id), response };
    assert!(registration.verify(&[1; 32], &party).is_err(), "it answers another challenge");
    if let Ok((key, passkey)) = registration.verify(&[0; 32], &party) {
        assert_eq!(PublicKey::parse(&key.line()), Ok(key));
        assert!(passkey.credential == encode(id) && told.windows(id.len().max(1)).any(|part| part == id) | id.is_empty());
    }
}
