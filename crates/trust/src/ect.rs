//! Signatures of Execution Context Tokens: by a key of this machine, and against the keys of known issuers. Does not fetch keys, nor
//! follow any address in a token.

use std::collections::BTreeMap;

use audit::ect::claims::EctClaims;
use audit::ect::compact::{CarriedEct, EctAlgorithm, SignedEct, signing_input};
use audit::ect::work::WitnessedWork;
use audit::ect::{EctDraft, EctFault};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use crate::keys::KeySet;

/// Most keys of the claimed issuer that are tried for one token.
const MOST_KEYS: usize = 8;

/// An assurance level of draft -01, from the lower to the higher. The third needs a ledger's receipt and is left to its keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EctLevel {
    /// L1.
    Unsigned,
    /// L2.
    Signed,
}

/// A token for this verifier, with the level that its checks reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedEct {
    pub level: EctLevel,
    pub claims: EctClaims,
}

/// A signer: a private key of P-256, with the id by which others find its public half. ES256 is the one
/// algorithm that both known implementations read.
pub struct EctSigner {
    key: EncodingKey,
    key_id: String,
}

/// Issuers of tokens, each with the keys that may sign for its name.
#[derive(Default)]
pub struct EctIssuers(BTreeMap<String, Vec<KeySet>>);

impl std::fmt::Debug for EctSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EctSigner").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for EctIssuers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl EctSigner {
    /// Reads a private key of P-256 (PKCS #8 in PEM). The error says what is wrong with the text.
    pub fn from_pem(pem: &str, key_id: &str) -> Result<Self, String> {
        let wrong = || "there is no private key of P-256 (PKCS #8 in PEM) in it".to_owned();
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| wrong())?;
        let signer = Self { key: EncodingKey::from_ec_der(der.secret_pkcs8_der()), key_id: key_id.to_owned() };
        // The library takes any bytes for a key: a key of another curve shows here, and not with the first token.
        signer.public().map_err(|_| wrong()).map(|_| signer)
    }

    /// Makes a key, with the thumbprint (RFC 7638) of its public half as its id. Gives the key in PEM as well, to be kept.
    pub fn generate() -> Result<(Self, String), String> {
        let pem = rcgen::KeyPair::generate().map_err(|error| error.to_string())?.serialize_pem();
        Ok((Self::by_thumbprint(&pem)?, pem))
    }

    /// Reads a private key as [`Self::from_pem`] does, with the thumbprint (RFC 7638) of its public half as its id.
    pub fn by_thumbprint(pem: &str) -> Result<Self, String> {
        let mut signer = Self::from_pem(pem, "")?;
        let jwk = Jwk::from_encoding_key(&signer.key, Algorithm::ES256).map_err(|error| error.to_string())?;
        signer.key_id = jwk.thumbprint(ThumbprintHash::SHA256).map_err(|error| error.to_string())?;
        Ok(signer)
    }

    /// Signs a JWT of another kind: raw claims under a `typ`.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn sign_document(&self, kind: &str, claims: &[u8]) -> Result<String, EctFault> {
        let header = format!(r#"{{"alg":"ES256","kid":{},"typ":{}}}"#, mcp_proto::json::quote(&self.key_id), mcp_proto::json::quote(kind));
        self.signed(&format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims)))
    }

    /// Writes the public half as a JWK. The error says what is wrong with the key.
    pub fn public(&self) -> Result<String, String> {
        let mut jwk = Jwk::from_encoding_key(&self.key, Algorithm::ES256).map_err(|error| error.to_string())?;
        jwk.common.key_id = Some(self.key_id.clone());
        serde_json::to_string(&jwk).map_err(|error| error.to_string())
    }

    /// Makes the token of a task.
    ///
    /// # Errors
    /// When a reader would refuse the claims, or the key cannot sign.
    pub fn sign(&self, work: &WitnessedWork<'_>, draft: EctDraft) -> Result<String, EctFault> {
        self.signed(&signing_input(draft, EctAlgorithm::Es256, &self.key_id, &work.claims(draft)?))
    }

    fn signed(&self, input: &str) -> Result<String, EctFault> {
        let signature = crypto::sign(input.as_bytes(), &self.key, Algorithm::ES256).map_err(|_| EctFault::Signature)?;
        Ok(format!("{input}.{signature}"))
    }
}

impl EctIssuers {
    /// Adds an issuer.
    pub fn add(&mut self, name: &str, keys: KeySet) {
        self.0.entry(name.to_owned()).or_default().push(keys);
    }

    /// Verifies a token made for a verifier with these names, of at least the level `least`, at `now` (seconds since 1970). A text with a dot is signed or
    /// nothing, so a broken signature never lowers the level. Replays and predecessors are left to the caller.
    ///
    /// # Errors
    /// The first check failed, in the order of the draft.
    pub fn verify(&self, text: &str, least: EctLevel, verifier: &[&str], now: u64) -> Result<JudgedEct, EctFault> {
        let judged = match CarriedEct::read(text)? {
            CarriedEct::Plain(_) if least > EctLevel::Unsigned => return Err(EctFault::Level),
            CarriedEct::Plain(claims) => JudgedEct { level: EctLevel::Unsigned, claims },
            CarriedEct::Signed(token) => JudgedEct { level: EctLevel::Signed, claims: self.of_issuer(&token)? },
        };
        judged.claims.judge(verifier, now).map(|()| judged)
    }

    /// Verifies the signature and the issuer of a token, at whatever time and for whomever: for an export.
    ///
    /// # Errors
    /// The first check failed.
    pub fn signed(&self, text: &str) -> Result<EctClaims, EctFault> {
        let CarriedEct::Signed(token) = CarriedEct::read(text)? else { return Err(EctFault::Level) };
        self.of_issuer(&token)
    }

    /// Verifies a signed text of another kind (`typ`) with an `iss`, and gives the name of its signer with the payload.
    ///
    /// # Errors
    /// When no known issuer has signed the text.
    pub fn document(&self, text: &str, kind: &str) -> Result<(String, Vec<u8>), EctFault> {
        let token = SignedEct::of_kinds(text, &[kind])?;
        let issuer = token.claimed_issuer()?;
        self.check_signature(&token, &issuer)?;
        Ok((issuer, token.payload()?))
    }

    fn of_issuer(&self, token: &SignedEct<'_>) -> Result<EctClaims, EctFault> {
        self.check_signature(token, &token.claimed_issuer()?)?;
        token.claims()
    }

    /// Checks that a key of the issuer signed the token. Without a key of the issuer, the keys of others are tried for the right words.
    fn check_signature(&self, token: &SignedEct<'_>, issuer: &str) -> Result<(), EctFault> {
        let own = self.0.get(issuer).into_iter().flatten();
        match has_signed(own, token) {
            Some(true) => Ok(()),
            Some(false) => Err(EctFault::Signature),
            None if has_signed(self.0.values().flatten(), token) == Some(true) => Err(EctFault::Issuer),
            None => Err(EctFault::Key(token.key_id.clone())),
        }
    }
}

/// Tells if one of the keys signed the token; `None`: none of them is meant.
fn has_signed<'a>(sets: impl Iterator<Item = &'a KeySet>, token: &SignedEct<'_>) -> Option<bool> {
    let algorithm = of_library(token.algorithm);
    let mut meant = sets.flat_map(|keys| keys.candidates(Some(&token.key_id), algorithm)).take(MOST_KEYS).peekable();
    meant.peek()?;
    Some(meant.any(|key| crypto::verify(token.signature, token.signed.as_bytes(), &key.key, algorithm).unwrap_or_default()))
}

fn of_library(algorithm: EctAlgorithm) -> Algorithm {
    match algorithm {
        EctAlgorithm::EdDsa => Algorithm::EdDSA,
        EctAlgorithm::Es256 => Algorithm::ES256,
    }
}

#[cfg(test)]
mod tests;
