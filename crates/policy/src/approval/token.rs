//! Signed tokens (JWS, RFC 7515) of approval services and policy engines, saying that somebody agreed to one call.
//! The number of agreements needed is not decided here.

use serde::Deserialize;

use super::key::PublicKey;
use super::proof::Wrong;
use crate::jws::{self, Expected, Token, Unverified};

/// An approval service, or a policy engine, that may agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The name in the configuration.
    pub name: String,
    /// The `iss` of tokens.
    pub issuer: String,
    /// The `aud` of tokens for this gate.
    pub audience: String,
    /// Keys with their ids.
    pub keys: Vec<(Option<String>, PublicKey)>,
}

impl Service {
    /// Tells if the service owns the key of this fingerprint.
    pub(super) fn has(&self, fingerprint: &str) -> bool {
        self.keys.iter().any(|(_, key)| key.fingerprint() == fingerprint)
    }
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: Option<String>,
    exp: u64,
    digest: String,
}

/// Verifies a token over `digest` at `now` (Unix time, seconds); gives the service, its key, and the person who agreed.
///
/// # Errors
/// The fault, one variant each.
pub(super) fn verify<'a>(
    token: &str,
    services: &'a [Service],
    digest: &[u8; 32],
    now: u64,
) -> Result<(&'a Service, &'a PublicKey, Option<String>), Wrong> {
    // A stranger's token is a stranger's, whatever its header says.
    let claimed: Claims = jws::claimed(token).map_err(wrong)?;
    let service = services.iter().find(|service| service.issuer == claimed.iss).ok_or(Wrong::Issuer)?;
    let token = Token::read(token).map_err(wrong)?;
    let named = service.keys.iter().filter(|(id, _)| token.key_id().is_none() || id.is_none() || id.as_deref() == token.key_id());
    let mut fitting = named.map(|(_, key)| key).filter(|key| key.jws_algorithm() == token.algorithm()).peekable();
    if fitting.peek().is_none() {
        return Err(Wrong::Key);
    }
    let expected = Expected { audience: Some(&service.audience), issuer: Some(&service.issuer), claims: &["aud", "exp", "iss"] };
    for key in fitting {
        let claims: Claims = match token.verified(&key.decoding(), &expected, now) {
            Ok(claims) => claims,
            Err(Unverified::Signature) => continue,
            Err(why) => return Err(wrong(why)),
        };
        if claims.exp <= now {
            return Err(Wrong::Over);
        }
        let is_meant = claims.digest.eq_ignore_ascii_case(&super::hex(digest));
        return if is_meant { Ok((service, key, claims.sub)) } else { Err(Wrong::Digest) };
    }
    Err(Wrong::Signature)
}

fn wrong(why: Unverified) -> Wrong {
    match why {
        Unverified::Algorithm => Wrong::Key,
        Unverified::Audience => Wrong::Audience,
        Unverified::Critical => Wrong::Malformed("the token has critical headers, which nobody here understands"),
        Unverified::Early => Wrong::Early,
        Unverified::Form => Wrong::Malformed("the token is no JWS with `iss`, `aud`, `exp` and `digest`"),
        Unverified::Issuer => Wrong::Issuer,
        Unverified::Signature => Wrong::Signature,
    }
}
