//! Pinned definitions: definitions seen first or agreed to are recognised, and changed ones wait until somebody looks at them.
//!
//! The store of pins, and a client's view, are not known here.

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

/// The treatment of definitions that nobody has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All are taken, and none is remembered.
    Trust,
    /// The first is taken and remembered; a changed one waits.
    #[default]
    Pin,
    /// The first waits as well.
    Hold,
}

/// The standing of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Accepted,
    /// Waits until somebody looks at it.
    Held,
    /// Turned down by somebody.
    Refused,
}

/// Reasons for a definition to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The server now calls itself a gate, unlike at first sight.
    BecameGate,
    /// Another definition had the name before.
    Changed,
    /// Nothing of that name was seen before.
    New,
    /// Appeared when another of its kind and server vanished: perhaps the same under another name.
    Replaced,
}

/// A remembered definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Hash of the definition ([`Definition::hash`]).
    pub hash: [u8; 32],
    pub standing: Standing,
    /// Reason for waiting, past or present.
    pub why: Why,
}

/// The judgement of a listed definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Standing of the definition; only accepted ones are shown.
    pub standing: Standing,
    pub why: Why,
    /// The definition has to be remembered.
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

/// Judges each definition of a list by the remembered ones of its kind and server. Unlisted definitions stay remembered: a different one
/// under the name is a change. Kinds that come and go wait as new only until one of the kind was accepted.
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
