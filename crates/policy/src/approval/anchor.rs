//! Parties who may agree: people with enrolled keys, and services named by the configuration. The calls they may agree to are not decided
//! here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::key::{PublicKey, Spelling};
use super::proof::{Proof, Statement, Wrong};
use super::standing::{SERVICE, Vote};
use super::token::{self, Service};
use super::webauthn::{Passkey, RelyingParty};

/// An enrolled key of a person who may approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The key's fingerprint.
    pub id: String,
    /// The person. Several keys may belong to one person.
    pub name: String,
    /// The principals used by this person, whose calls this person may not approve.
    pub principals: BTreeSet<String>,
    pub key: PublicKey,
    /// Set for a passkey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passkey: Option<Passkey>,
    /// Time of enrolment: Unix time, in seconds.
    pub enrolled: u64,
}

/// Everybody who may agree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Anchors {
    /// Operators by fingerprint.
    pub operators: BTreeMap<String, Operator>,
    /// Services in the order of the configuration.
    pub services: Vec<Service>,
    /// The relying party of passkeys; `None`: no passkeys are taken.
    pub relying_party: Option<RelyingParty>,
}

/// A verified agreement of a person. Only [`Anchors::verify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub(super) person: String,
    pub(super) by: String,
    /// The key of the service, for an agreement by a service.
    pub(super) key: String,
    pub(super) principals: BTreeSet<String>,
    /// Id and signature counter of a passkey.
    pub(super) counted: Option<(String, u32)>,
    /// Digest of the proof ([`Proof::digest`]).
    pub(super) proof: String,
}

impl Verified {
    /// Gives the person who agreed.
    pub fn person(&self) -> &str {
        &self.person
    }

    /// Makes the vote to be kept.
    pub(super) fn vote(self, at: u64) -> Vote {
        let Self { person, by, key, proof, .. } = self;
        Vote { person, by, at, key, proof }
    }

    /// Tells if this person calls as `principal`.
    pub(super) fn is(&self, principal: &str) -> bool {
        is_same(&self.person, principal) || self.principals.contains(principal)
    }
}

impl Anchors {
    /// Verifies a proof over `statement` at `now` (Unix time, seconds).
    ///
    /// # Errors
    /// The fault of the proof, one variant each.
    pub fn verify(&self, proof: &Proof, statement: &Statement, now: u64) -> Result<Verified, Wrong> {
        Ok(Verified { proof: proof.digest(), ..self.verified(proof, statement, now)? })
    }

    fn verified(&self, proof: &Proof, statement: &Statement, now: u64) -> Result<Verified, Wrong> {
        match proof {
            Proof::Ed25519 { key, signature } => {
                let operator = self.operators.get(key).filter(|operator| operator.passkey.is_none()).ok_or(Wrong::Key)?;
                if !matches!(operator.key, PublicKey::Ed25519(_)) {
                    return Err(Wrong::Key);
                }
                if !operator.key.verifies(statement.text.as_bytes(), signature, Spelling::Fixed) {
                    return Err(Wrong::Signature);
                }
                Ok(by(operator, None))
            }
            Proof::Jws(token) => {
                let (service, key, subject) = token::verify(token, &self.services, &statement.digest(), now)?;
                let person = subject.unwrap_or_else(|| service.name.clone());
                let by = format!("{SERVICE}{}", service.name);
                Ok(Verified { person, by, key: key.fingerprint(), principals: BTreeSet::new(), counted: None, proof: String::new() })
            }
            Proof::Ssh(signature) => {
                let operator = self.operators.get(&signature.key.fingerprint()).filter(|operator| operator.passkey.is_none());
                let operator = operator.ok_or(Wrong::Key)?;
                if signature.namespace != statement.namespace {
                    return Err(Wrong::Namespace(signature.namespace.chars().take(100).collect(), statement.namespace));
                }
                if !signature.verifies(statement.text.as_bytes()) {
                    return Err(Wrong::Signature);
                }
                Ok(by(operator, None))
            }
            Proof::WebAuthn(assertion) => {
                let of_credential = |operator: &&Operator| operator.passkey.as_ref().is_some_and(|own| own.credential == assertion.id);
                let operator = self.operators.values().find(of_credential).ok_or(Wrong::Key)?;
                let (Some(passkey), Some(party)) = (&operator.passkey, &self.relying_party) else { return Err(Wrong::RelyingParty) };
                let count = assertion.verify(&operator.key, passkey, &statement.digest(), party)?;
                Ok(by(operator, Some((operator.id.clone(), count))))
            }
        }
    }

    /// Tells if a vote still counts: by a trusted service with the voting key, or by a key enrolled ever since.
    pub(super) fn counts(&self, vote: &Vote) -> bool {
        match vote.by.strip_prefix(SERVICE) {
            Some(name) => self.services.iter().any(|service| service.name == name && service.has(&vote.key)),
            None => self.operators.get(&vote.by).is_some_and(|operator| operator.enrolled <= vote.at),
        }
    }

    /// Counts the people who could agree to a call of `caller`. A service speaks for many and so counts for any number.
    pub fn reachable(&self, caller: &str) -> usize {
        if !self.services.is_empty() {
            return usize::MAX;
        }
        let may = self.operators.values().map(|operator| by(operator, None)).filter(|verified| !verified.is(caller));
        may.map(|verified| verified.person.to_lowercase()).collect::<BTreeSet<_>>().len()
    }
}

/// Tells if two names belong to one person. Text behind `@` only says who vouches for a name.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let bare = |name: &str| name.split_once('@').map_or(name, |(bare, _)| bare).to_lowercase();
    bare(one) == bare(other)
}

fn by(operator: &Operator, counted: Option<(String, u32)>) -> Verified {
    // Whichever of a person's keys signs, it is the same person.
    let (person, principals) = (operator.name.clone(), operator.principals.clone());
    Verified { person, by: operator.id.clone(), key: String::new(), principals, counted, proof: String::new() }
}
