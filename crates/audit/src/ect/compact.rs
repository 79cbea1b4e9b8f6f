//! The text of a token: a compact JWS (L2), or plain JSON in base64url (L1). Does not verify the signature.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use json::{Duplicates, Members};

use super::claims::EctClaims;
use super::{EctDraft, EctFault, LONGEST_TOKEN};

/// Longest id of a key, in bytes.
const LONGEST_KEY_ID: usize = 256;
/// Most tokens of one message.
const MOST_TOKENS: usize = 64;
/// Most bytes of all tokens of one message.
const MOST_BYTES: usize = 64 << 10;

/// An allowed algorithm of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EctAlgorithm {
    EdDsa,
    Es256,
}

impl EctAlgorithm {
    fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
        }
    }
}

/// A token as carried, of one of two levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarriedEct<'a> {
    /// L1: nobody signed the claims.
    Plain(EctClaims),
    /// L2, once the signature is verified.
    Signed(SignedEct<'a>),
}

/// A signed token whose claims are out of reach until its signature is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedEct<'a> {
    pub algorithm: EctAlgorithm,
    pub key_id: String,
    /// Signed bytes: header, dot and claims, as carried.
    pub signed: &'a str,
    /// Signature in base64url.
    pub signature: &'a str,
    payload: &'a str,
}

impl<'a> CarriedEct<'a> {
    /// Reads a token. A text with a dot is a JWS or nothing: no broken signature makes plain claims of the rest.
    ///
    /// # Errors
    /// When `text` is too long or of neither form, or its header is not that of such a token.
    pub fn read(text: &'a str) -> Result<Self, EctFault> {
        if text.len() > LONGEST_TOKEN {
            return Err(EctFault::Oversized("16384 bytes"));
        }
        if text.contains('.') { SignedEct::read(text).map(Self::Signed) } else { EctClaims::parse(&decoded(text)?).map(Self::Plain) }
    }
}

impl<'a> SignedEct<'a> {
    fn read(text: &'a str) -> Result<Self, EctFault> {
        Self::of_kinds(text, &[EctDraft::Draft00, EctDraft::Draft01].map(EctDraft::kind))
    }

    /// Reads a signed text of one of these kinds (`typ`), by the rules for tokens.
    ///
    /// # Errors
    /// When the text is no such JWS.
    pub fn of_kinds(text: &'a str, kinds: &[&str]) -> Result<Self, EctFault> {
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(EctFault::form("a compact JWS has three parts"));
        };
        let header = decoded(header)?;
        let header = Members::parse(&header, Duplicates::RefuseDeep).map_err(|why| EctFault::form(why.to_string()))?;
        let kind = header.str("typ").unwrap_or_default();
        if !kinds.contains(&&*kind) {
            return Err(EctFault::Type(kind.chars().take(64).collect()));
        }
        let algorithm = match header.str("alg").unwrap_or_default().as_ref() {
            "ES256" => EctAlgorithm::Es256,
            "EdDSA" => EctAlgorithm::EdDsa,
            other => return Err(EctFault::Algorithm(other.chars().take(64).collect())),
        };
        if header.has("crit") || header.has("b64") {
            return Err(EctFault::form("its header has `crit` or `b64`, and no extension of JWS is known here"));
        }
        let key_id = header.str("kid").filter(|id| !id.is_empty()).ok_or_else(|| EctFault::form("`kid` is missing"))?.into_owned();
        if key_id.len() > LONGEST_KEY_ID {
            return Err(EctFault::Oversized("256 bytes in `kid`"));
        }
        let signed = &text[..text.len() - signature.len() - 1];
        Ok(Self { algorithm, key_id, signed, signature, payload })
    }

    /// Reads the claimed issuer, by whom the keys are found. Nobody has verified the claim.
    ///
    /// # Errors
    /// When the payload is no JSON object, or without `iss`.
    pub fn claimed_issuer(&self) -> Result<String, EctFault> {
        let payload = decoded(self.payload)?;
        let members = Members::parse(&payload, Duplicates::RefuseTop).map_err(|why| EctFault::form(why.to_string()))?;
        members.str("iss").map(std::borrow::Cow::into_owned).ok_or_else(|| EctFault::form("`iss` is missing"))
    }

    /// Decodes the payload. For callers that verified the signature.
    ///
    /// # Errors
    /// When the payload is not base64url.
    pub fn payload(&self) -> Result<Vec<u8>, EctFault> {
        decoded(self.payload)
    }

    /// Reads the claims. For callers that verified the signature, or show a token without a key.
    ///
    /// # Errors
    /// As [`EctClaims::parse`]; without `iss`, too.
    pub fn claims(&self) -> Result<EctClaims, EctFault> {
        let claims = EctClaims::parse(&decoded(self.payload)?)?;
        if claims.issuer.is_none() { Err(EctFault::form("`iss` is missing")) } else { Ok(claims) }
    }
}

/// Spells header and claims as they are signed.
pub fn signing_input(draft: EctDraft, algorithm: EctAlgorithm, key_id: &str, claims: &[u8]) -> String {
    let header = format!(r#"{{"alg":"{}","kid":{},"typ":"{}"}}"#, algorithm.name(), json::quote(key_id), draft.kind());
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims))
}

/// Gives header and claims as they were signed. Two signatures over one such text are one token: a signature of ECDSA has a twin that holds
/// as well, and an issuer may sign twice.
pub fn signed_part(text: &str) -> &str {
    text.rsplit_once('.').map_or(text, |(signed, _)| signed)
}

/// Reads claims without a check of the signature, for people and for choosing among tokens.
///
/// # Errors
/// As [`CarriedEct::read`] and [`SignedEct::claims`].
pub fn unverified(text: &str) -> Result<EctClaims, EctFault> {
    match CarriedEct::read(text)? {
        CarriedEct::Plain(claims) => Ok(claims),
        CarriedEct::Signed(token) => token.claims(),
    }
}

/// Splits the values of `Execution-Context` into tokens: lines may be repeated, or joined by commas as intermediaries do.
///
/// # Errors
/// When the tokens are too many or too long together.
pub fn carried<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Vec<&'a str>, EctFault> {
    let mut tokens = Vec::new();
    let mut bytes = 0;
    for line in lines {
        bytes += line.len();
        if bytes > MOST_BYTES {
            return Err(EctFault::Oversized("65536 bytes in `Execution-Context`"));
        }
        tokens.extend(line.split(',').map(|token| token.trim_matches([' ', '\t'])).filter(|token| !token.is_empty()));
        if tokens.len() > MOST_TOKENS {
            return Err(EctFault::Oversized("64 tokens in `Execution-Context`"));
        }
    }
    Ok(tokens)
}

fn decoded(part: &str) -> Result<Vec<u8>, EctFault> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| EctFault::form("a part is not base64url without padding"))
}
