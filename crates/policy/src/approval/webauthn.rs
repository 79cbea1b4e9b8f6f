//! Passkeys (WebAuthn level 3): a browser's answers to making a passkey and to signing. No attestation is asked for, so none is read.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::key::{PublicKey, Spelling};
use super::proof::Wrong;

const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const ATTESTED: u8 = 0x40;
/// Longest part that is read, in bytes.
const LONGEST: usize = 16 << 10;

/// Whom passkeys are for (WebAuthn, 5.1.3): a host name, and the origins of pages that may use them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelyingParty {
    /// A host name without scheme and port.
    pub id: String,
    /// `https://host[:port]`, or `http://localhost:port`.
    pub origins: Vec<String>,
}

/// A browser's result of `navigator.credentials.get()`, as written by `PublicKeyCredential.toJSON()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    /// The credential, in base64url.
    pub id: String,
    pub response: AssertionResponse,
}

/// The answer of a signing authenticator. Everything is base64url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssertionResponse {
    /// The request as the browser saw it.
    #[serde(rename = "clientDataJSON")]
    pub client_data: String,
    /// The authenticator's report.
    pub authenticator_data: String,
    /// Signature over both.
    pub signature: String,
}

/// A browser's result of `navigator.credentials.create()`, as written by `PublicKeyCredential.toJSON()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The credential, in base64url.
    pub id: String,
    pub response: RegistrationResponse,
}

/// The answer of an authenticator that made a passkey. Everything is base64url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationResponse {
    /// The request as the browser saw it.
    #[serde(rename = "clientDataJSON")]
    pub client_data: String,
    /// The authenticator's report.
    pub authenticator_data: String,
    /// The key, as SubjectPublicKeyInfo.
    pub public_key: String,
}

/// The passkey side of an operator's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// The credential, in base64url.
    pub credential: String,
    /// Signature counter, as the passkey reports it; 0 for a passkey that does not count.
    pub count: u32,
    pub relying_party: String,
}

impl Assertion {
    /// Verifies an assertion and gives the passkey's signature counter.
    ///
    /// # Errors
    /// The fault, one variant each.
    pub fn verify(&self, key: &PublicKey, passkey: &Passkey, digest: &[u8; 32], party: &RelyingParty) -> Result<u32, Wrong> {
        let client_data = bytes(&self.response.client_data)?;
        let data = bytes(&self.response.authenticator_data)?;
        let signature = bytes(&self.response.signature)?;
        let spoken = ClientData::parse(&client_data)?;
        let told = AuthenticatorData::parse(&data).ok_or(Wrong::Malformed("the authenticator data is too short"))?;
        let signed = [&data[..], &Sha256::digest(&client_data)[..]].concat();
        if !key.verifies(&signed, &signature, Spelling::Der) {
            return Err(Wrong::Signature);
        }
        spoken.check("webauthn.get", digest, party)?;
        told.check(&passkey.relying_party)?;
        if passkey.relying_party != party.id {
            return Err(Wrong::RelyingParty);
        }
        if (told.count > 0 || passkey.count > 0) && told.count <= passkey.count {
            return Err(Wrong::Counter);
        }
        Ok(told.count)
    }
}

impl Registration {
    /// Verifies a registration against its challenge and gives the key and its passkey part.
    ///
    /// # Errors
    /// The fault, one variant each.
    pub fn verify(&self, challenge: &[u8; 32], party: &RelyingParty) -> Result<(PublicKey, Passkey), Wrong> {
        let client_data = bytes(&self.response.client_data)?;
        let data = bytes(&self.response.authenticator_data)?;
        ClientData::parse(&client_data)?.check("webauthn.create", challenge, party)?;
        let told = AuthenticatorData::parse(&data).ok_or(Wrong::Malformed("the authenticator data is too short"))?;
        told.check(&party.id)?;
        if told.credential(&data) != Some(&bytes(&self.id)?[..]) {
            return Err(Wrong::Malformed("the authenticator data is of another credential"));
        }
        let key = PublicKey::of_spki(&bytes(&self.response.public_key)?);
        let key = key.map_err(|_| Wrong::Malformed("the passkey is neither of ES256 nor of EdDSA"))?;
        Ok((key, Passkey { credential: self.id.clone(), count: told.count, relying_party: party.id.clone() }))
    }
}

/// `clientDataJSON` (WebAuthn, 5.8.1).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
}

impl ClientData {
    fn parse(bytes: &[u8]) -> Result<Self, Wrong> {
        serde_json::from_slice(bytes).map_err(|_| Wrong::Malformed("clientDataJSON is not what a browser writes"))
    }

    fn check(&self, kind: &str, challenge: &[u8; 32], party: &RelyingParty) -> Result<(), Wrong> {
        if self.kind != kind {
            return Err(Wrong::Malformed("it is a passkey's answer to another question"));
        }
        if URL_SAFE_NO_PAD.decode(&self.challenge).ok().as_deref() != Some(challenge) {
            return Err(Wrong::Digest);
        }
        if self.cross_origin || !party.origins.contains(&self.origin) {
            return Err(Wrong::Origin(self.origin.chars().take(100).collect()));
        }
        Ok(())
    }
}

/// Authenticator data (WebAuthn, 6.1).
struct AuthenticatorData {
    party: [u8; 32],
    flags: u8,
    count: u32,
}

impl AuthenticatorData {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (party, rest) = bytes.split_first_chunk::<32>()?;
        let (flags, rest) = rest.split_first()?;
        let (count, _) = rest.split_first_chunk::<4>()?;
        Some(Self { party: *party, flags: *flags, count: u32::from_be_bytes(*count) })
    }

    fn check(&self, party: &str) -> Result<(), Wrong> {
        if self.party[..] != Sha256::digest(party.as_bytes())[..] {
            return Err(Wrong::RelyingParty);
        }
        if self.flags & (PRESENT | VERIFIED) != PRESENT | VERIFIED {
            return Err(Wrong::Unverified);
        }
        Ok(())
    }

    /// Gives the id of the new credential (WebAuthn, 6.5.1).
    fn credential<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        if self.flags & ATTESTED == 0 {
            return None;
        }
        let (length, rest) = data.get(37 + 16..)?.split_first_chunk::<2>()?;
        rest.get(..usize::from(u16::from_be_bytes(*length)))
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, Wrong> {
    let text = text.trim_end_matches('=');
    if text.len() > LONGEST {
        return Err(Wrong::Malformed("a part of the passkey's answer is too long"));
    }
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Wrong::Malformed("a part of the passkey's answer is not base64url"))
}
