//! Signed tokens (JWT): checks that a token is genuine, meant for this gate and unexpired. Does not know which signer may name which
//! subject.

use std::time::{Duration, SystemTime};

use policy::jws::{self, LEEWAY, Token, Unverified};
use serde::{Deserialize, Deserializer};

use crate::keys::KeySet;
use call::words::granted::Place;
use runtime::wall;

/// Most keys tried for one token.
const MOST_KEYS: usize = 8;

/// Claims of a token, as far as this gate reads them.
#[derive(Debug, Deserialize)]
pub struct Claims {
    /// Subject.
    pub sub: String,
    exp: u64,
    scope: Option<Scopes>,
    /// Scopes under the name that some servers use instead of `scope`.
    scp: Option<Scopes>,
    /// Groups of the holder, as OpenID Connect servers write them. A value other than a list of texts is ignored.
    #[serde(default, deserialize_with = "lenient")]
    groups: Names,
    /// Roles of the holder (RFC 9068, section 7.2.1.1).
    #[serde(default, deserialize_with = "lenient")]
    roles: Names,
    #[serde(flatten)]
    pub place: Place,
}

/// A text or a list of texts.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Names {
    Listed(Vec<String>),
    One(String),
    #[default]
    None,
}

impl Names {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Listed(all) => all.as_slice(),
            Self::One(one) => std::slice::from_ref(one),
            Self::None => &[],
        };
        names.iter().map(String::as_str).filter(|name| !name.is_empty())
    }
}

/// Ignores an optional claim of the wrong shape instead of refusing its token.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Scopes, space-separated in one text (RFC 9068) or in a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scopes {
    Listed(Vec<String>),
    Spaced(String),
}

impl Scopes {
    fn has(&self, wanted: &str) -> bool {
        match self {
            Self::Listed(all) => all.iter().any(|scope| scope == wanted),
            Self::Spaced(all) => all.split(' ').any(|scope| scope == wanted),
        }
    }
}

impl Scopes {
    fn iter(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Listed(all) => Box::new(all.iter().map(String::as_str)),
            Self::Spaced(all) => Box::new(all.split(' ').filter(|scope| !scope.is_empty())),
        }
    }
}

impl Claims {
    /// Groups of the holder.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter()
    }

    /// Roles of the holder.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter()
    }

    /// Scopes of the holder.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.iter().chain(&self.scp).flat_map(Scopes::iter)
    }

    /// Checks for a scope.
    pub fn has_scope(&self, wanted: &str) -> bool {
        self.scope.iter().chain(&self.scp).any(|scopes| scopes.has(wanted))
    }

    /// Expiry, leeway included.
    pub fn until(&self) -> SystemTime {
        over_at(self.exp)
    }
}

/// Checks the expiry to the same moment at which open streams end, so that an expired holder is not let in again.
pub fn is_good_until(until: SystemTime) -> Result<(), Wrong> {
    if wall::now() < until { Ok(()) } else { Err(Wrong::Over) }
}

/// Expiry of a token with this `exp`, leeway included.
pub fn over_at(exp: u64) -> SystemTime {
    let lasts = Duration::from_secs(exp.saturating_add(LEEWAY).min(1 << 40));
    SystemTime::UNIX_EPOCH.checked_add(lasts).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Checks that a token may fail. No text shows any part of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The audience is another.
    #[error("it is meant for another resource: ask for one whose audience (`aud`) is this gate's `resource`")]
    Audience,
    /// The token is not valid yet.
    #[error("it is not good yet (`nbf`): check the clocks of both machines")]
    Early,
    /// The text is no token of the expected form.
    #[error("it is no signed token (JWT) with `sub`, `aud` and `exp`")]
    Form,
    /// The issuer is unknown.
    #[error("its issuer (`iss`) is none that this gate takes tokens of")]
    Issuer,
    /// The signature is of another key, or of an algorithm that is not accepted.
    #[error("no key that this gate knows for its issuer has signed it with EdDSA, ES256 or RS256")]
    Key,
    /// The token has expired.
    #[error("it has expired (`exp`): get a new one")]
    Over,
    /// A scope is missing.
    #[error("it lacks a scope that is needed here: sign in again and ask for it")]
    Scope,
    /// The signature is of another secret, or of another algorithm.
    #[error("the secret of this gate's rooms (`rooms.secret`) has not signed it, or not with HS256")]
    Secret,
}

/// Requirements on a token.
pub struct TokenExpectation<'a> {
    /// Required `aud`.
    pub audience: &'a str,
    /// Required `iss`; `None` accepts any.
    pub issuer: Option<&'a str>,
}

/// Verifies a token and returns its claims.
pub fn verify(token: &str, keys: &KeySet, expected: &TokenExpectation<'_>) -> Result<Claims, Wrong> {
    let token = Token::read(token).map_err(wrong)?;
    let expected = jws::Expected { audience: Some(expected.audience), issuer: expected.issuer, claims: &["exp", "aud", "sub"] };
    for key in keys.candidates(token.key_id(), token.algorithm()).take(MOST_KEYS) {
        match token.verified::<Claims>(&key.key, &expected, seconds()) {
            Ok(claims) => {
                is_good_until(claims.until())?;
                return Ok(claims);
            }
            Err(Unverified::Signature) => {}
            Err(why) => return Err(wrong(why)),
        }
    }
    Err(Wrong::Key)
}

/// Seconds since 1970, as tokens count time.
pub fn seconds() -> u64 {
    wall::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Reads the `iss` that a token claims, without any proof.
pub fn claimed_issuer(token: &str) -> Result<String, Wrong> {
    #[derive(Deserialize)]
    struct ClaimedIssuer {
        iss: String,
    }
    Token::read(token).and_then(|token| token.claimed()).map(|ClaimedIssuer { iss }| iss).map_err(wrong)
}

/// Verifies any text as a token by these keys, for fuzzing; `None` for texts that are no keys.
pub fn is_good(token: &str, keys: &str, audience: &str, issuer: &str) -> Option<bool> {
    let keys = KeySet::parse(keys).ok()?;
    let expected = TokenExpectation { audience, issuer: Some(issuer) };
    Some(claimed_issuer(token).is_ok() && verify(token, &keys, &expected).is_ok())
}

/// Reads groups, roles and scopes from any JSON, for fuzzing; `None` for JSON without claims.
pub fn given(json: &[u8]) -> Option<Vec<String>> {
    let claims: Claims = serde_json::from_slice(json).ok()?;
    let given: Vec<String> = claims.groups().chain(claims.roles()).chain(claims.scopes()).map(str::to_owned).collect();
    (claims.until() > SystemTime::UNIX_EPOCH).then_some(given)
}

/// Converts the failed check of a token.
pub fn wrong(why: Unverified) -> Wrong {
    match why {
        Unverified::Audience => Wrong::Audience,
        Unverified::Algorithm | Unverified::Critical | Unverified::Form => Wrong::Form,
        Unverified::Early => Wrong::Early,
        Unverified::Issuer => Wrong::Issuer,
        Unverified::Signature => Wrong::Key,
    }
}
