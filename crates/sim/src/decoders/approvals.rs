//! Checks of what agreement is read from: canonical JSON, confirmations, signatures of OpenSSH and answers of passkeys. Makes up no input.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::approval::{
    self, Anchors, Assertion, AssertionResponse, Confirm, Passkey, Proof, PublicKey, RelyingParty, SshSignature, Statement,
};

/// A canonical text is its own, and means what it was made from.
pub(super) fn canonical(data: &[u8]) {
    if let Ok(form) = approval::canonical(data) {
        assert_eq!(approval::canonical(form.as_bytes()).as_deref(), Ok(form.as_str()));
        let (before, after) = (serde_json::from_slice::<serde_json::Value>(data), serde_json::from_str::<serde_json::Value>(&form));
        assert!(before.is_ok() && after.is_ok(), "it was no JSON");
    }
}

/// Whatever is read counts for nothing where nobody is enrolled.
pub(super) fn confirm(data: &[u8]) {
    let statement = Statement { text: String::new(), namespace: "fuzz" };
    let proofs = [Confirm::read(data).map(|confirm| confirm.proof), Proof::read(data)];
    for proof in proofs.into_iter().flatten() {
        assert!(Anchors::default().verify(&proof, &statement, 0).is_err());
    }
}

/// What is read names a key that can be written and read again, and verifies nothing that it was not made for.
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
