//! Join tokens: a fingerprint that authenticates the authority to the joining gate, and a secret that authenticates the gate. Does not know
//! which tokens are used up.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::ca::CaError;

/// First part of every token; marks the shape of the rest.
const SHAPE: &str = "banyan1";

/// A join token, as text `banyan1.FINGERPRINT.ID.SECRET`. `Display` writes the secret, `Debug` does not.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// SHA-256 of the authority's certificate.
    pub authority: [u8; 32],
    /// Id of the token in the ledger.
    pub id: String,
    secret: String,
}

/// A text is no join token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no join token: copy the whole text that begins with `banyan1.` from `banyan ca init` or `banyan ca token`")]
pub struct NoJoinToken;

impl JoinToken {
    /// Makes a token with a random secret for joining under an authority.
    pub fn new(authority: [u8; 32]) -> Result<Self, CaError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| CaError::Made(error.to_string()))?;
        let id = runtime::random::token()[..8].to_owned();
        Ok(Self { authority, id, secret: URL_SAFE_NO_PAD.encode(secret) })
    }

    /// Secret, for the one request that carries it.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Hashes a secret as the ledger keeps it.
    pub fn digest(secret: &str) -> [u8; 32] {
        Sha256::digest(secret.as_bytes()).into()
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SHAPE}.{}.{}.{}", URL_SAFE_NO_PAD.encode(self.authority), self.id, self.secret)
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({})", self.id)
    }
}

impl FromStr for JoinToken {
    type Err = NoJoinToken;

    fn from_str(text: &str) -> Result<Self, NoJoinToken> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [SHAPE, authority, id, secret] = parts[..] else { return Err(NoJoinToken) };
        let authority = URL_SAFE_NO_PAD.decode(authority).ok().and_then(|bytes| bytes.try_into().ok()).ok_or(NoJoinToken)?;
        if id.is_empty() || secret.is_empty() {
            return Err(NoJoinToken);
        }
        Ok(Self { authority, id: id.to_owned(), secret: secret.to_owned() })
    }
}
