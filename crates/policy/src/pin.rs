//! Definitions, pinned: what was seen first or agreed to is known again, and what is another one waits until somebody looks at it.
//!
//! Where pins are kept is not known here, nor what a client is shown.

mod concern;
mod definition;
mod kind;
mod others;
mod phrase;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use concern::{Concern, concerns};
pub use definition::{Definition, Difference, differences};
pub use kind::Kind;
pub use others::{Other, Others};

/// What is done with definitions that nobody has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All are taken, and none is remembered.
    Trust,
    /// The first is taken and remembered; another one waits.
    #[default]
    Pin,
    /// The first waits as well.
    Hold,
}

/// How one definition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It is good.
    Accepted,
    /// It waits until somebody looks at it.
    Held,
    /// Somebody looked at it, and it is not.
    Refused,
}

/// Why a definition waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its server says that it is a gate, which it was not when it was first seen.
    BecameGate,
    /// There was another one of that name.
    Changed,
    /// Nothing of that name was seen before.
    New,
    /// It came when another one of its kind and server went: it may be that one under another name.
    Replaced,
}

/// One definition that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its hash ([`Definition::hash`]).
    pub hash: [u8; 32],
    /// How it stands.
    pub standing: Standing,
    /// Why it waits, or did.
    pub why: Why,
}

/// What becomes of one that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How its definition stands; only one that is accepted is shown.
    pub standing: Standing,
    /// Why it waits.
    pub why: Why,
    /// Whether it has to be remembered.
    pub is_new: bool,
}

impl Standing {
    /// The word in the store and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Held => "held",
            Self::Refused => "refused",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Accepted, Self::Held, Self::Refused].into_iter().find(|one| one.as_str() == word)
    }
}

impl Why {
    /// The word in the store and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BecameGate => "became_gate",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Replaced => "replaced",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::BecameGate, Self::Changed, Self::New, Self::Replaced].into_iter().find(|one| one.as_str() == word)
    }
}

/// Says what becomes of each of a list, by what is known of its kind at its server. What is not listed any more stays known: when it comes
/// back as another one, that is a change. What comes and goes waits as something new only until one of its kind was taken.
pub fn judge(mode: Mode, kind: Kind, known: &BTreeMap<String, Vec<Known>>, listed: &[(&str, [u8; 32])]) -> Vec<Verdict> {
    let accepted = |all: &[Known]| all.iter().any(|one| one.standing == Standing::Accepted);
    let there: BTreeSet<&str> = listed.iter().map(|(name, _)| *name).collect();
    let has_gone = !kind.comes_and_goes() && known.iter().any(|(name, all)| accepted(all) && !there.contains(name.as_str()));
    let takes_new = mode == Mode::Pin || (kind.comes_and_goes() && known.values().any(|all| accepted(all)));
    let one = |(name, hash): &(&str, [u8; 32])| {
        let before = known.get(*name).map_or(&[][..], Vec::as_slice);
        if let Some(seen) = before.iter().find(|one| one.hash == *hash) {
            return Verdict { standing: seen.standing, why: seen.why, is_new: false };
        }
        let why = match (accepted(before), has_gone) {
            (true, _) => Why::Changed,
            (false, true) => Why::Replaced,
            (false, false) => Why::New,
        };
        let is_taken = takes_new && why == Why::New;
        Verdict { standing: if is_taken { Standing::Accepted } else { Standing::Held }, why, is_new: true }
    };
    if mode == Mode::Trust {
        return vec![Verdict { standing: Standing::Accepted, why: Why::New, is_new: false }; listed.len()];
    }
    listed.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
