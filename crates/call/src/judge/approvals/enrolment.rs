//! Passkeys: requests to a browser, and open challenges for new passkeys. Does not verify answers.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::approval::{Anchors, Passkey, PublicKey, Registration, RelyingParty, Wrong};
use runtime::random;
use serde_json::{Value, json};

use crate::judge::approvals::shown::base;
use crate::judge::gate::Gate;

/// Longest time for a browser to make a passkey or to sign with one, in seconds.
const PATIENCE: u64 = 300;
/// Most open challenges.
const MOST: usize = 64;

/// Open challenges for new passkeys, with the names of their owners.
#[derive(Debug, Default)]
pub struct Passkeys(BTreeMap<[u8; 32], (String, u64)>);

impl Passkeys {
    /// `PublicKeyCredentialCreationOptionsJSON` (WebAuthn level 3, 5.1.8) for a new passkey of `name`.
    pub fn begin(&mut self, name: &str, anchors: &Anchors, party: &RelyingParty, now: u64) -> Value {
        self.0.retain(|_, (_, until)| *until > now);
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        let challenge = random::seed();
        self.0.insert(challenge, (name.to_owned(), now + PATIENCE));
        let own = anchors.operators.values().filter(|operator| operator.name == name).filter_map(|operator| operator.passkey.as_ref());
        json!({
            "challenge": URL_SAFE_NO_PAD.encode(challenge),
            "rp": { "id": party.id, "name": "Banyan" },
            "user": { "id": URL_SAFE_NO_PAD.encode(name), "name": name, "displayName": name },
            "pubKeyCredParams": [{ "type": "public-key", "alg": -8 }, { "type": "public-key", "alg": -7 }],
            "authenticatorSelection": { "userVerification": "required", "residentKey": "preferred" },
            "attestation": "none",
            "timeout": PATIENCE * 1000,
            "excludeCredentials": own.map(|passkey| named(&passkey.credential)).collect::<Vec<_>>(),
        })
    }

    /// Accepts the new passkey of `name`, once.
    pub fn finish(&mut self, name: &str, made: &Registration, party: &RelyingParty, now: u64) -> Result<(PublicKey, Passkey), Wrong> {
        self.0.retain(|_, (_, until)| *until > now);
        let open: Vec<[u8; 32]> = self.0.iter().filter(|(_, (own, _))| own == name).map(|(challenge, _)| *challenge).collect();
        let mut why = Wrong::Digest;
        for challenge in open {
            match made.verify(&challenge, party) {
                Ok(passkey) => {
                    self.0.remove(&challenge);
                    return Ok(passkey);
                }
                Err(Wrong::Digest) => {}
                Err(wrong) => why = wrong,
            }
        }
        Err(why)
    }
}

/// Whom passkeys are for: the host where people approve; `None`: the gate does not listen.
pub fn relying_party(gate: &Gate) -> Option<RelyingParty> {
    let url = url::Url::parse(&base(gate)?).ok()?;
    Some(RelyingParty { id: url.host_str()?.to_owned(), origins: vec![url.origin().ascii_serialization()] })
}

/// `PublicKeyCredentialRequestOptionsJSON` (WebAuthn level 3, 5.1.9) for signing a statement until `until`: Unix time, in seconds.
pub fn request(anchors: &Anchors, digest: [u8; 32], party: &RelyingParty, (now, until): (u64, u64)) -> Value {
    let passkeys = anchors.operators.values().filter_map(|operator| operator.passkey.as_ref());
    let passkeys = passkeys.filter(|passkey| passkey.relying_party == party.id);
    json!({
        "challenge": URL_SAFE_NO_PAD.encode(digest),
        "rpId": party.id,
        "allowCredentials": passkeys.map(|passkey| named(&passkey.credential)).collect::<Vec<_>>(),
        "userVerification": "required",
        "timeout": until.saturating_sub(now).min(PATIENCE) * 1000,
    })
}

fn named(credential: &str) -> Value {
    json!({ "type": "public-key", "id": credential })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn party() -> RelyingParty {
        RelyingParty { id: "localhost".into(), origins: vec!["http://localhost:1".into()] }
    }

    /// Makes a browser's answer to `asked`. Making a passkey signs nothing.
    fn made(asked: &Value) -> Registration {
        let client = json!({"type": "webauthn.create", "challenge": asked["challenge"], "origin": "http://localhost:1"});
        let data = [&Sha256::digest("localhost")[..], &[0x45], &[0; 4], &[0; 16], &[0, 4], b"cred"].concat();
        // The generator of P-256.
        let point = "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==";
        let point = [&[4][..], &base64::engine::general_purpose::STANDARD.decode(point).unwrap()].concat();
        let head = base64::engine::general_purpose::STANDARD.decode("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgA=").unwrap();
        serde_json::from_value(json!({"id": URL_SAFE_NO_PAD.encode("cred"), "response": {
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client.to_string()),
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "publicKey": URL_SAFE_NO_PAD.encode([head, point].concat()),
        }}))
        .unwrap()
    }

    #[test]
    fn a_passkey_is_accepted_once_within_five_minutes() {
        let (mut passkeys, anchors) = (Passkeys::default(), Anchors::default());
        let asked = passkeys.begin("anna", &anchors, &party(), 1000);
        let answer = made(&asked);
        assert_eq!(passkeys.finish("mallory", &answer, &party(), 1000), Err(Wrong::Digest), "it was asked for somebody else");
        assert!(passkeys.finish("anna", &answer, &party(), 1000).is_ok());
        assert_eq!(passkeys.finish("anna", &answer, &party(), 1000), Err(Wrong::Digest), "it was taken");
        let answer = made(&passkeys.begin("anna", &anchors, &party(), 1000));
        assert_eq!(passkeys.finish("anna", &answer, &party(), 1000 + PATIENCE), Err(Wrong::Digest), "too late");
    }

    #[test]
    fn challenges_for_new_passkeys_do_not_pile_up() {
        let (mut passkeys, anchors) = (Passkeys::default(), Anchors::default());
        for number in 0..2 * MOST {
            passkeys.begin(&number.to_string(), &anchors, &party(), 1000);
        }
        assert_eq!(passkeys.0.len(), MOST);
        let newest = passkeys.begin("anna", &anchors, &party(), 1000);
        assert!(passkeys.finish("anna", &made(&newest), &party(), 1000).is_ok(), "whoever begins now can finish");
        passkeys.begin("anna", &anchors, &party(), 1000 + PATIENCE);
        assert_eq!(passkeys.0.len(), 1, "those that are over are forgotten");
    }
}
