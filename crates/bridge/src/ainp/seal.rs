//! Signatures of AINP envelopes, of either mode, and the names of keys. Keeps no key, and judges no time.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use json::canonical::{Numbers, members};
use sha2::{Digest, Sha256};

use crate::error::BridgeError;

/// Member for the signature.
const SIG: &str = "sig";
const DID: &str = "did:key:z";
/// Mark of an Ed25519 key among the keys of all kinds.
const ED25519_MARK: [u8; 2] = [0xed, 0x01];
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Longest name of a key: 34 bytes are 46 or 47 digits.
const MOST_DIGITS: usize = 48;

/// Modes of signing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeSeal {
    /// Over the SHA-256 hash of the canonical form, as the specification has it.
    Spec,
    /// Over the canonical form itself, as the reference implementation has it.
    Sdk,
}

/// Key of a signer.
pub struct EnvelopeKey(Ed25519KeyPair);

impl EnvelopeKey {
    /// Makes a key of a seed; `None`: the seed makes none.
    pub fn of_seed(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// Name of the public key.
    pub fn did(&self) -> String {
        self.0.public_key().as_ref().try_into().map(did_of_key).unwrap_or_default()
    }
}

impl EnvelopeSeal {
    fn bytes(self, form: String) -> Vec<u8> {
        match self {
            Self::Spec => Sha256::digest(form).to_vec(),
            Self::Sdk => form.into_bytes(),
        }
    }
}

/// The canonical form (RFC 8785) of an envelope without its signature, and the raw signature.
fn parts(envelope: &[u8]) -> Result<(String, Option<String>), BridgeError> {
    let wrong = |why: String| BridgeError::Malformed { at: "envelope", why: why.into() };
    let found = members(envelope, Numbers::Exact).map_err(|error| wrong(error.to_string()))?;
    let mut found = found.ok_or(BridgeError::malformed("envelope", "an object is expected"))?;
    let sig = found.iter().position(|(name, _)| name == SIG).map(|place| found.remove(place).1);
    let mut form = String::from("{");
    for (name, value) in found {
        let comma = if form.len() > 1 { "," } else { "" };
        form.push_str(&format!("{comma}{}:{value}", json::quote(&name)));
    }
    form.push('}');
    Ok((form, sig))
}

/// Signs an envelope without a signature.
///
/// # Errors
/// When a number of the envelope would be rounded by the canonical form, or a text is half of a surrogate pair.
pub fn seal(envelope: &[u8], mode: EnvelopeSeal, key: &EnvelopeKey) -> Result<Vec<u8>, BridgeError> {
    let (form, sig) = parts(envelope)?;
    let open = envelope.trim_ascii_end().strip_suffix(b"}").filter(|_| sig.is_none());
    let open = open.ok_or(BridgeError::malformed("envelope", "the envelope has a signature already"))?;
    let sig = STANDARD.encode(key.0.sign(&mode.bytes(form)));
    Ok([open, b",\"sig\":\"", sig.as_bytes(), b"\"}"].concat())
}

/// Checks the signature of an envelope, and tells the mode of the signer; `None`: the key has not signed the envelope.
///
/// # Errors
/// As [`seal`].
pub fn seal_of(envelope: &[u8], key: &[u8; 32]) -> Result<Option<EnvelopeSeal>, BridgeError> {
    let (form, sig) = parts(envelope)?;
    let sig = sig.and_then(|raw| json::as_str(raw.as_bytes()).and_then(|text| STANDARD.decode(text.as_bytes()).ok()));
    let Some(sig) = sig else { return Ok(None) };
    let has_signed = |mode: &EnvelopeSeal| UnparsedPublicKey::new(&ED25519, key).verify(&mode.bytes(form.clone()), &sig).is_ok();
    Ok([EnvelopeSeal::Spec, EnvelopeSeal::Sdk].into_iter().find(has_signed))
}

/// Names a public key as a `did:key`.
pub fn did_of_key(key: &[u8; 32]) -> String {
    let mut digits: Vec<u8> = Vec::new();
    for byte in ED25519_MARK.iter().chain(key) {
        let mut carry = usize::from(*byte);
        for digit in &mut digits {
            carry += usize::from(*digit) << 8;
            *digit = u8::try_from(carry % 58).unwrap_or_default();
            carry /= 58;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 58).unwrap_or_default());
            carry /= 58;
        }
    }
    let digit = |digit: &u8| ALPHABET.get(usize::from(*digit)).map_or('1', |byte| char::from(*byte));
    DID.chars().chain(digits.iter().rev().map(digit)).collect()
}

/// The Ed25519 key named by a `did:key`; `None`: the name is of another kind.
pub fn key_of_did(did: &str) -> Option<[u8; 32]> {
    let digits = did.strip_prefix(DID).filter(|digits| digits.len() <= MOST_DIGITS)?;
    let mut bytes: Vec<u8> = Vec::new();
    for digit in digits.bytes() {
        let mut carry = ALPHABET.iter().position(|known| *known == digit)?;
        for byte in &mut bytes {
            carry += usize::from(*byte) * 58;
            *byte = u8::try_from(carry & 0xff).unwrap_or_default();
            carry >>= 8;
        }
        if carry > 0 {
            bytes.push(u8::try_from(carry).ok()?);
        }
    }
    bytes.reverse();
    bytes.strip_prefix(&ED25519_MARK)?.try_into().ok()
}
