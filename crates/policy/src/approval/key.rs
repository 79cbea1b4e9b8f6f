//! Public keys for approval: Ed25519 and ECDSA on P-256, in the spellings of OpenSSH, PEM, DER and JWK. The owner of a key is not known
//! here.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::wire::{Reader, put};

/// The SubjectPublicKeyInfo of an Ed25519 key before the key itself (RFC 8410).
const ED25519_SPKI: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The same of a P-256 key (RFC 5480), before an uncompressed point.
const P256_SPKI: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01,
    0x07, 0x03, 0x42, 0x00,
];
const SSH_ED25519: &str = "ssh-ed25519";
const SSH_P256: &str = "ecdsa-sha2-nistp256";
const NISTP256: &str = "nistp256";

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PublicKey {
    /// Ed25519 (RFC 8032).
    Ed25519([u8; 32]),
    /// ECDSA on P-256: an uncompressed point.
    P256(Box<[u8; 65]>),
}

/// Spelling of an ECDSA signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// DER, as in WebAuthn.
    Der,
    /// `r` and `s` behind each other, 64 bytes, as in JWS.
    Fixed,
}

/// A text without a usable public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is no public key of the kinds that are taken: give a line of `ssh-ed25519` or `ecdsa-sha2-nistp256` (a file that ends in .pub), \
     or PEM that begins with `-----BEGIN PUBLIC KEY-----`"
)]
pub struct NoKey;

impl PublicKey {
    /// Reads a line of OpenSSH, or PEM.
    ///
    /// # Errors
    /// When it is neither, or holds another kind of key.
    pub fn parse(text: &str) -> Result<Self, NoKey> {
        let text = text.trim();
        if let Some(pem) = text.strip_prefix("-----BEGIN PUBLIC KEY-----") {
            let body: String = pem.split("-----END").next().unwrap_or_default().split_ascii_whitespace().collect();
            return Self::of_spki(&STANDARD.decode(body).map_err(|_| NoKey)?);
        }
        let mut words = text.split_ascii_whitespace();
        let (kind, body) = (words.next().ok_or(NoKey)?, words.next().ok_or(NoKey)?);
        let blob = STANDARD.decode(body).map_err(|_| NoKey)?;
        let key = Self::of_ssh(&blob)?;
        if key.ssh_kind() == kind { Ok(key) } else { Err(NoKey) }
    }

    /// Reads a SubjectPublicKeyInfo in DER.
    ///
    /// # Errors
    /// When `der` holds another kind of key.
    pub fn of_spki(der: &[u8]) -> Result<Self, NoKey> {
        if let Some(key) = der.strip_prefix(ED25519_SPKI) {
            return Ok(Self::Ed25519(key.try_into().map_err(|_| NoKey)?));
        }
        Self::of_point(der.strip_prefix(P256_SPKI).ok_or(NoKey)?)
    }

    /// Reads an SSH key (RFC 4253, 6.6; RFC 5656, 3.1; RFC 8709, 4).
    ///
    /// # Errors
    /// When `blob` holds another kind of key.
    pub fn of_ssh(blob: &[u8]) -> Result<Self, NoKey> {
        let mut reader = Reader(blob);
        let kind = reader.text().ok_or(NoKey)?;
        let key = match kind {
            SSH_ED25519 => Self::Ed25519(reader.string().and_then(|key| key.try_into().ok()).ok_or(NoKey)?),
            SSH_P256 if reader.text() == Some(NISTP256) => Self::of_point(reader.string().ok_or(NoKey)?)?,
            _ => return Err(NoKey),
        };
        if reader.0.is_empty() { Ok(key) } else { Err(NoKey) }
    }

    /// Reads id and key of a JWK (RFC 7517; RFC 8037).
    ///
    /// # Errors
    /// When `jwk` holds another kind of key.
    pub fn of_jwk(jwk: &serde_json::Value) -> Result<(Option<String>, Self), NoKey> {
        let member = |name: &str| jwk.get(name).and_then(serde_json::Value::as_str);
        let bytes = |name: &str| member(name).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).ok_or(NoKey);
        let key = match (member("kty"), member("crv")) {
            (Some("OKP"), Some("Ed25519")) => Self::Ed25519(bytes("x")?.try_into().map_err(|_| NoKey)?),
            (Some("EC"), Some("P-256")) => Self::of_point(&[&[4], &bytes("x")?[..], &bytes("y")?[..]].concat())?,
            _ => return Err(NoKey),
        };
        Ok((member("kid").map(str::to_owned), key))
    }

    /// The line of OpenSSH, without a comment.
    pub fn line(&self) -> String {
        format!("{} {}", self.ssh_kind(), STANDARD.encode(self.ssh()))
    }

    /// Writes `SHA256:…`, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(self.ssh())))
    }

    /// Verifies a signature over `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8], spelling: Spelling) -> bool {
        let verified = match (self, spelling) {
            (Self::Ed25519(key), _) => UnparsedPublicKey::new(&ED25519, &key[..]).verify(message, signature),
            (Self::P256(key), Spelling::Der) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key[..]).verify(message, signature),
            (Self::P256(key), Spelling::Fixed) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key[..]).verify(message, signature),
        };
        verified.is_ok()
    }

    /// Names the algorithm for a JWS (RFC 7518, 3.1; RFC 8037, 3.1).
    pub(super) fn jws_algorithm(&self) -> Algorithm {
        match self {
            Self::Ed25519(_) => Algorithm::EdDSA,
            Self::P256(_) => Algorithm::ES256,
        }
    }

    /// Converts the key for the verification of tokens.
    pub(super) fn decoding(&self) -> DecodingKey {
        match self {
            Self::Ed25519(key) => DecodingKey::from_ed_der(key),
            Self::P256(point) => DecodingKey::from_ec_der(&point[..]),
        }
    }

    pub(super) fn ssh_kind(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => SSH_ED25519,
            Self::P256(_) => SSH_P256,
        }
    }

    fn ssh(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.ssh_kind().as_bytes());
        match self {
            Self::Ed25519(key) => put(&mut out, key),
            Self::P256(key) => {
                put(&mut out, NISTP256.as_bytes());
                put(&mut out, &key[..]);
            }
        }
        out
    }

    fn of_point(point: &[u8]) -> Result<Self, NoKey> {
        let point: [u8; 65] = point.try_into().map_err(|_| NoKey)?;
        if point[0] == 4 { Ok(Self::P256(Box::new(point))) } else { Err(NoKey) }
    }
}

impl TryFrom<String> for PublicKey {
    type Error = NoKey;

    fn try_from(line: String) -> Result<Self, NoKey> {
        Self::parse(&line)
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSH: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6TpJdUdtdLMbcr+uG4RPKwpWBKGHVUNmWNUOpmpYmz";

    #[test]
    fn a_key_reads_the_same_from_every_spelling() {
        let key = PublicKey::parse(&format!("{SSH} somebody@somewhere\n")).unwrap();
        assert_eq!(key.line(), SSH);
        let PublicKey::Ed25519(raw) = &key else { unreachable!("it is one of Ed25519") };
        let spki = [ED25519_SPKI, raw].concat();
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(&spki));
        assert_eq!(PublicKey::parse(&pem), Ok(key.clone()));
        let jwk = serde_json::json!({"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": URL_SAFE_NO_PAD.encode(raw)});
        assert_eq!(PublicKey::of_jwk(&jwk), Ok((Some("k".into()), key)));
    }

    #[test]
    fn what_is_no_key_of_the_kinds_that_are_taken_is_none() {
        let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==";
        let renamed = SSH.replacen("ed25519", "rsa", 1);
        for text in ["", "x", rsa, &renamed, &SSH[..40], "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
            assert_eq!(PublicKey::parse(text), Err(NoKey), "{text}");
        }
        assert_eq!(PublicKey::of_spki(&[P256_SPKI, &[2; 65]].concat()), Err(NoKey));
    }
}
