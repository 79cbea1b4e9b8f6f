//! Signed tokens (JWT): whether one is genuine, meant for this gate and still good. Who may sign what is not decided here.

use std::time::{Duration, SystemTime};

use policy::jws::{self, LEEWAY, Token, Unverified};
use serde::{Deserialize, Deserializer};

use crate::keys::KeySet;
use call::words::granted::Place;
use runtime::wall;

/// More keys than this are not tried for one token.
const MOST_KEYS: usize = 8;

/// What a token says, as far as anybody here asks.
#[derive(Debug, Deserialize)]
pub struct Claims {
    /// Whose it is.
    pub sub: String,
    exp: u64,
    scope: Option<Scopes>,
    /// The same, as some servers call it.
    scp: Option<Scopes>,
    /// The groups its holder is in, as OpenID Connect servers tell them. What is no list of texts says nothing.
    #[serde(default, deserialize_with = "lenient")]
    groups: Names,
    /// The roles it has (RFC 9068, section 7.2.1.1).
    #[serde(default, deserialize_with = "lenient")]
    roles: Names,
    #[serde(flatten)]
    pub place: Place,
}

/// A list of texts, or one.
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

/// A token is not refused for what it says beyond what is asked of every token.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Scopes as one text (RFC 9068) or as a list.
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
    /// The groups of its holder.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter()
    }

    /// The roles of its holder.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter()
    }

    /// Its scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.iter().chain(&self.scp).flat_map(Scopes::iter)
    }

    /// Whether it has a scope.
    pub fn has_scope(&self, wanted: &str) -> bool {
        self.scope.iter().chain(&self.scp).any(|scopes| scopes.has(wanted))
    }

    /// When it is over, the leeway included.
    pub fn until(&self) -> SystemTime {
        over_at(self.exp)
    }
}

/// A request is judged to the moment at which what stands open ends: whoever was let go is not let in once more.
pub fn is_good_until(until: SystemTime) -> Result<(), Wrong> {
    if wall::now() < until { Ok(()) } else { Err(Wrong::Over) }
}

/// When a token with this `exp` is over, the leeway included.
pub fn over_at(exp: u64) -> SystemTime {
    let lasts = Duration::from_secs(exp.saturating_add(LEEWAY).min(1 << 40));
    SystemTime::UNIX_EPOCH.checked_add(lasts).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Which check a token did not pass. None of the texts shows anything of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It is for somebody else.
    #[error("it is meant for another resource: ask for one whose audience (`aud`) is this gate's `resource`")]
    Audience,
    /// Its time has not come.
    #[error("it is not good yet (`nbf`): check the clocks of both machines")]
    Early,
    /// It is none.
    #[error("it is no signed token (JWT) with `sub`, `aud` and `exp`")]
    Form,
    /// Nobody here is known by that name.
    #[error("its issuer (`iss`) is none that this gate takes tokens of")]
    Issuer,
    /// It was signed by somebody else, or with an algorithm that is not taken.
    #[error("no key that this gate knows for its issuer has signed it with EdDSA, ES256 or RS256")]
    Key,
    /// Its time is over.
    #[error("it has expired (`exp`): get a new one")]
    Over,
    /// It may do less than is needed here.
    #[error("it lacks a scope that is needed here: sign in again and ask for it")]
    Scope,
    /// It was signed with another secret, or with another algorithm.
    #[error("the secret of this gate's rooms (`rooms.secret`) has not signed it, or not with HS256")]
    Secret,
}

/// What a token has to be.
pub struct Expected<'a> {
    /// Its `aud`.
    pub audience: &'a str,
    /// Its `iss`; `None`: whatever it is.
    pub issuer: Option<&'a str>,
}

/// Verifies a token, and gives what it says.
pub fn verify(token: &str, keys: &KeySet, expected: &Expected<'_>) -> Result<Claims, Wrong> {
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

/// Time now, as tokens have it.
pub fn seconds() -> u64 {
    wall::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The `iss` that a token claims, which nothing proves yet.
pub fn claimed_issuer(token: &str) -> Result<String, Wrong> {
    #[derive(Deserialize)]
    struct Claimed {
        iss: String,
    }
    Token::read(token).and_then(|token| token.claimed()).map(|Claimed { iss }| iss).map_err(wrong)
}

/// Whether a token is good by these keys; `None`: they are no keys. Checks hold any texts against it.
pub fn is_good(token: &str, keys: &str, audience: &str, issuer: &str) -> Option<bool> {
    let keys = KeySet::parse(keys).ok()?;
    let expected = Expected { audience, issuer: Some(issuer) };
    Some(claimed_issuer(token).is_ok() && verify(token, &keys, &expected).is_ok())
}

/// The groups, roles and scopes that the claims of a token give; `None`: they are no claims. Checks hold any JSON against it.
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
