//! Public keys for verifying tokens: read from a JWK set or from PEM, found again by id. Does not read tokens.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Keys of one party for EdDSA, ES256 and RS256; others are left out.
#[derive(Clone, Default)]
pub struct KeySet(Vec<Key>);

/// A key, good for a single algorithm.
#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    pub algorithm: Algorithm,
    pub key: DecodingKey,
}

impl KeySet {
    /// Reads a JWK set, a single JWK, or PEM. The error says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let keys: Vec<Key> = if text.trim_start().starts_with('{') { of_json(text)? } else { of_pem(text)? };
        if keys.is_empty() {
            return Err("there is no key for EdDSA, ES256 or RS256 in it".into());
        }
        Ok(Self(keys))
    }

    /// Keys that a token's header may mean.
    pub fn candidates<'a>(&'a self, id: Option<&'a str>, algorithm: Algorithm) -> impl Iterator<Item = &'a Key> {
        let named = move |key: &&Key| id.is_none() || key.id.is_none() || key.id.as_deref() == id;
        self.0.iter().filter(move |key| key.algorithm == algorithm).filter(named)
    }
}

fn of_json(text: &str) -> Result<Vec<Key>, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.get("keys").is_none() {
        let single: Jwk = serde_json::from_value(value).map_err(|error| error.to_string())?;
        return Ok(of_jwk(&single).into_iter().collect());
    }
    let set: JwkSet = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(set.keys.iter().filter_map(of_jwk).collect())
}

fn of_jwk(jwk: &Jwk) -> Option<Key> {
    // A shared secret is left out: it makes tokens as well as it verifies them.
    let algorithm = if let AlgorithmParameters::RSA(_) = &jwk.algorithm {
        Algorithm::RS256
    } else if let AlgorithmParameters::EllipticCurve(curve) = &jwk.algorithm {
        (curve.curve == EllipticCurve::P256).then_some(Algorithm::ES256)?
    } else if let AlgorithmParameters::OctetKeyPair(pair) = &jwk.algorithm {
        (pair.curve == EllipticCurve::Ed25519).then_some(Algorithm::EdDSA)?
    } else {
        return None;
    };
    let verifies = jwk.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let key = DecodingKey::from_jwk(jwk).ok().filter(|_| verifies)?;
    Some(Key { id: jwk.common.key_id.clone(), algorithm, key })
}

fn of_pem(text: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    for entry in SubjectPublicKeyInfoDer::pem_slice_iter(text.as_bytes()) {
        let der = entry.map_err(|error| error.to_string())?;
        let (_, info) = SubjectPublicKeyInfo::from_der(&der).map_err(|error| error.to_string())?;
        let raw = &info.subject_public_key.data;
        let (algorithm, key) = match info.algorithm.algorithm.to_id_string().as_str() {
            "1.3.101.112" => (Algorithm::EdDSA, DecodingKey::from_ed_der(raw)),
            // An uncompressed point of P-256 has 65 bytes.
            "1.2.840.10045.2.1" if raw.len() == 65 => (Algorithm::ES256, DecodingKey::from_ec_der(raw)),
            "1.2.840.113549.1.1.1" => (Algorithm::RS256, DecodingKey::from_rsa_der(raw)),
            _ => continue,
        };
        keys.push(Key { id: None, algorithm, key });
    }
    Ok(keys)
}
