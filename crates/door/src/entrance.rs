//! Admission at every door: credentials of callers, the owner's token, and sign-ins at the console. No call is passed on here.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use subtle::ConstantTimeEq;

use crate::sign_in::{SignIn, SignIns};
use call::judge::gate::Gate;
use trust::Trust;

/// Credentials at every door.
pub struct Entrance {
    pub gate: Arc<Gate>,
    pub trust: Arc<Trust>,
    pub owner: OwnerToken,
    pub sign_ins: SignIns,
}

impl Entrance {
    /// Makes the entrance of a gate.
    pub fn new(gate: &Arc<Gate>, trust: &Arc<Trust>) -> Arc<Self> {
        let (owner, sign_ins) = (OwnerToken::default(), SignIns::of_node(&gate.node));
        Arc::new(Self { gate: Arc::clone(gate), trust: Arc::clone(trust), owner, sign_ins })
    }

    /// Checks that the owner asks: by the token, or from a signed-in page of the console.
    pub fn is_owner(&self, parts: &Parts) -> bool {
        self.owner.is_owner(&parts.headers) || self.signed_in(parts).is_some()
    }

    /// Sign-in of the request, if from a page of this gate with a sign-in.
    pub fn signed_in(&self, parts: &Parts) -> Option<SignIn> {
        self.sign_ins.session(&self.gate.config.load(), parts)
    }
}

/// Token of the presence file, once written.
#[derive(Default)]
pub struct OwnerToken(OnceLock<String>);

impl std::fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnerToken")
    }
}

impl OwnerToken {
    /// Sets the token of the presence file; `false` if set before.
    pub fn set(&self, token: String) -> bool {
        self.0.set(token).is_ok()
    }

    /// Checks that the request carries the owner's token.
    pub fn is_owner(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION).and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
        sent.is_some_and(|sent| self.is_owners(sent))
    }

    /// Compares `sent` with the owner's token.
    pub fn is_owners(&self, sent: &[u8]) -> bool {
        self.0.get().is_some_and(|token| sent.ct_eq(token.as_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn bearer(token: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap())])
    }

    #[test]
    fn only_the_token_of_the_file_makes_an_owner() {
        let owner = OwnerToken::default();
        assert!(!owner.is_owner(&bearer("")), "nothing is published");
        assert!(owner.set("right".into()));
        assert!(owner.is_owner(&bearer("right")));
        for wrong in ["", "righ", "right2", "Right"] {
            assert!(!owner.is_owner(&bearer(wrong)), "{wrong}");
        }
        assert!(!owner.is_owner(&HeaderMap::new()));
    }
}
