//! Signed tokens (JWS, RFC 7515; JWT, RFC 7519), verified by a library at a time that comes in as an argument. Whose word counts, and for
//! what, is not decided here.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, dangerous, decode, decode_header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Seconds that clocks may be apart.
pub const LEEWAY: u64 = 30;
/// Longest token, in bytes.
const LONGEST: usize = 16 << 10;

/// Check that a token did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    /// Algorithm that nobody here knows.
    Algorithm,
    /// Its `aud` is another one.
    Audience,
    /// Critical headers (RFC 7515, 4.1.11), which nobody here understands.
    Critical,
    /// Its `nbf` has not come.
    Early,
    /// No token, or one that lacks a claim.
    Form,
    /// Its `iss` is another one.
    Issuer,
    /// This key has not signed it, or not with this algorithm.
    Signature,
}

/// Claims that a token has to make.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Its `aud`; `None`: whatever it is.
    pub audience: Option<&'a str>,
    /// Its `iss`; `None`: whatever it is.
    pub issuer: Option<&'a str>,
    /// The registered claims that it must have.
    pub claims: &'a [&'a str],
}

/// A token whose header was read.
#[derive(Debug)]
pub struct Token<'a> {
    text: &'a str,
    header: Header,
}

impl<'a> Token<'a> {
    /// Reads the header, which nothing proves yet.
    ///
    /// # Errors
    /// When it is none, or has critical headers.
    pub fn read(text: &'a str) -> Result<Self, Unverified> {
        if text.len() > LONGEST {
            return Err(Unverified::Form);
        }
        let header = decode_header(text).map_err(|_| unread(text))?;
        if header.crit.is_some() { Err(Unverified::Critical) } else { Ok(Self { text, header }) }
    }

    /// The id of the key that it names.
    pub fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// The algorithm that it names.
    pub fn algorithm(&self) -> Algorithm {
        self.header.alg
    }

    /// Reads what it claims, which nothing proves yet.
    ///
    /// # Errors
    /// When it claims something else.
    pub fn claimed<T: DeserializeOwned>(&self) -> Result<T, Unverified> {
        claimed(self.text)
    }

    /// Reads what it claims, once this key has signed it and it has begun at `now` (Unix time, seconds). When it is over is for its reader to ask.
    ///
    /// # Errors
    /// The first check that it did not pass.
    pub fn verified<T: DeserializeOwned>(&self, key: &DecodingKey, expected: &Expected<'_>, now: u64) -> Result<T, Unverified> {
        #[derive(Deserialize)]
        struct Begins {
            nbf: Option<f64>,
        }
        let mut validation = Validation::new(self.header.alg);
        // The library would ask a clock of its own.
        (validation.validate_exp, validation.validate_nbf) = (false, false);
        validation.validate_aud = expected.audience.is_some();
        if let Some(audience) = expected.audience {
            validation.set_audience(&[audience]);
        }
        if let Some(issuer) = expected.issuer {
            validation.set_issuer(&[issuer]);
        }
        validation.set_required_spec_claims(expected.claims);
        let claims = decode(self.text, key, &validation).map_err(|error| unverified(&error))?.claims;
        let Begins { nbf } = self.claimed()?;
        if nbf.is_some_and(|from| from > now.saturating_add(LEEWAY) as f64) { Err(Unverified::Early) } else { Ok(claims) }
    }
}

/// The claims of a token, which nothing proves yet; its header is not read.
///
/// # Errors
/// When it is no token, or claims something else.
pub fn claimed<T: DeserializeOwned>(text: &str) -> Result<T, Unverified> {
    if text.len() > LONGEST {
        return Err(Unverified::Form);
    }
    dangerous::insecure_decode_claims(text).map_err(|_| Unverified::Form)
}

/// Why a header was not read: the library says the same of a header that is none and of one with an algorithm that it does not know.
fn unread(text: &str) -> Unverified {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "alg")]
        _algorithm: String,
    }
    let parts: Vec<&str> = text.split('.').take(4).collect();
    let header = parts.first().filter(|_| parts.len() == 3).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let is_named = header.is_some_and(|header| serde_json::from_slice::<Named>(&header).is_ok());
    if is_named { Unverified::Algorithm } else { Unverified::Form }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library names more ways in which a signature is none than anybody reacts to")]
fn unverified(error: &Error) -> Unverified {
    match error.kind() {
        ErrorKind::InvalidAudience => Unverified::Audience,
        ErrorKind::InvalidIssuer => Unverified::Issuer,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) | ErrorKind::Utf8(_) => Unverified::Form,
        // A signature of another key, or a key that is none.
        _ => Unverified::Signature,
    }
}
