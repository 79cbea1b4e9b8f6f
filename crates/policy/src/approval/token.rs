//! Signed tokens (JWS, RFC 7515) of approval services and policy engines, which say that somebody agreed to one call.
//! Whether that is enough is not decided here.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::key::{PublicKey, Spelling};
use super::proof::Wrong;

/// Longest token, in bytes.
const LONGEST: usize = 16 << 10;
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 30;

/// An approval service, or a policy engine, whose word counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name in the configuration.
    pub name: String,
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` of tokens for this gate.
    pub audience: String,
    /// Its keys, with their ids.
    pub keys: Vec<(Option<String>, PublicKey)>,
}

impl Service {
    /// Whether the key of this fingerprint is one of its own.
    pub(super) fn has(&self, fingerprint: &str) -> bool {
        self.keys.iter().any(|(_, key)| key.fingerprint() == fingerprint)
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: Option<String>,
    aud: Audience,
    exp: u64,
    nbf: Option<u64>,
    digest: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Verifies a token over `digest` at `now` (Unix time, seconds); gives the service, its key, and who agreed by its word.
///
/// # Errors
/// What is wrong with it, each for its own.
pub(super) fn verify<'a>(
    token: &str,
    services: &'a [Service],
    digest: &[u8; 32],
    now: u64,
) -> Result<(&'a Service, &'a PublicKey, Option<String>), Wrong> {
    const FORM: Wrong = Wrong::Malformed("the token is no JWS with `iss`, `aud`, `exp` and `digest`");
    if token.len() > LONGEST {
        return Err(FORM);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(FORM)?;
    let (header, claims) = signed.split_once('.').ok_or(FORM)?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| FORM);
    let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| FORM)?;
    let claims: Claims = serde_json::from_slice(&decoded(claims)?).map_err(|_| FORM)?;
    let signature = decoded(signature)?;
    if header.crit.is_some() {
        return Err(Wrong::Malformed("the token has critical headers, which nobody here understands"));
    }
    let service = services.iter().find(|service| service.issuer == claims.iss).ok_or(Wrong::Issuer)?;
    let named = service.keys.iter().filter(|(id, _)| header.kid.is_none() || id.is_none() || *id == header.kid);
    let mut fitting = named.filter(|(_, key)| key.jws_algorithm() == header.alg).peekable();
    if fitting.peek().is_none() {
        return Err(Wrong::Key);
    }
    let verifying = fitting.find(|(_, key)| key.verifies(signed.as_bytes(), &signature, Spelling::Fixed));
    let (_, key) = verifying.ok_or(Wrong::Signature)?;
    let is_meant = match &claims.aud {
        Audience::One(one) => *one == service.audience,
        Audience::Many(many) => many.contains(&service.audience),
    };
    if !is_meant {
        return Err(Wrong::Audience);
    }
    if claims.exp <= now {
        return Err(Wrong::Over);
    }
    if claims.nbf.is_some_and(|from| from > now + LEEWAY) {
        return Err(Wrong::Early);
    }
    if !claims.digest.eq_ignore_ascii_case(&super::hex(digest)) {
        return Err(Wrong::Digest);
    }
    Ok((service, key, claims.sub))
}
