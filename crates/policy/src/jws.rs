//! Signed tokens (JWS, RFC 7515; JWT, RFC 7519), verified by a library at a time given as an argument. Trust in issuers is not
//! decided here.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, dangerous, decode, decode_header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Tolerated seconds between clocks.
pub const LEEWAY: u64 = 30;
/// Longest token, in bytes.
const LONGEST: usize = 16 << 10;

/// The check failed by a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    /// An algorithm unknown here.
    Algorithm,
    /// Another `aud`.
    Audience,
    /// Critical headers (RFC 7515, 4.1.11), none of which is known here.
    Critical,
    /// Before its `nbf`.
    Early,
    /// No token, or a token without a required claim.
    Form,
    /// Another `iss`.
    Issuer,
    /// Not signed by this key, or with another algorithm.
    Signature,
}

/// Required claims of a token.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// `None`: any `aud`.
    pub audience: Option<&'a str>,
    /// `None`: any `iss`.
    pub issuer: Option<&'a str>,
    /// Registered claims that must be present.
    pub claims: &'a [&'a str],
}

/// A token with its header read.
#[derive(Debug)]
pub struct Token<'a> {
    text: &'a str,
    header: Header,
}

impl<'a> Token<'a> {
    /// Reads the header, as yet unproven.
    ///
    /// # Errors
    /// When `text` has no header, or critical headers.
    pub fn read(text: &'a str) -> Result<Self, Unverified> {
        if text.len() > LONGEST {
            return Err(Unverified::Form);
        }
        let header = decode_header(text).map_err(|_| unread(text))?;
        if header.crit.is_some() { Err(Unverified::Critical) } else { Ok(Self { text, header }) }
    }

    /// Gives the id of the named key.
    pub fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Gives the named algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.header.alg
    }

    /// Reads the claims, as yet unproven.
    ///
    /// # Errors
    /// When the claims have another form.
    pub fn claimed<T: DeserializeOwned>(&self) -> Result<T, Unverified> {
        claimed(self.text)
    }

    /// Reads the claims of a token signed by this key and begun at `now` (Unix time, seconds). Expiry is left to the caller.
    ///
    /// # Errors
    /// The first check failed.
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

/// Reads the claims of a token, as yet unproven, without its header.
///
/// # Errors
/// When `text` is no token, or the claims have another form.
pub fn claimed<T: DeserializeOwned>(text: &str) -> Result<T, Unverified> {
    if text.len() > LONGEST {
        return Err(Unverified::Form);
    }
    dangerous::insecure_decode_claims(text).map_err(|_| Unverified::Form)
}

/// Finds the fault of an unreadable header: the library does not distinguish a missing header from an unknown algorithm.
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
