//! A rule accepted by a person: pattern, limits, standing and acts. Does not choose the time to act; makes only the request, signed with
//! the rule's name.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::Bytes;
use json::Members;
use serde::{Deserialize, Serialize};

use super::Fulfil;
use super::argument::Argument;
use super::case::{Case, Subject};
use super::offer::{Evidence, Offer, Verdict};
use crate::chain::{Outcome, RULE, with_meta};
use crate::envelope::Envelope;

const HOUR: u64 = 3_600;
/// Longest life of a rule: 366 days.
const MAX_SECONDS: u64 = 366 * 24 * HOUR;

/// Number of a rule, counting up in order of acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleId(pub u64);

/// Proposals covered by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    pub subject: Subject,
    /// Participants who carry out the call.
    pub to: Vec<String>,
    /// Every permitted value, by its place.
    pub arguments: BTreeMap<String, Argument>,
}

/// Limits of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Calls in all.
    pub acts: u32,
    /// Calls within an hour.
    pub an_hour: u32,
    /// Seconds of life from acceptance.
    pub seconds: u64,
}

/// Standing of a rule. Times are Unix seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Active,
    /// The time is over.
    Expired {
        at: u64,
    },
    /// A person ended the rule.
    Revoked {
        at: u64,
        by: String,
    },
    /// All calls are made.
    Spent {
        at: u64,
    },
    /// A deviation ended the rule.
    Stopped {
        at: u64,
        why: Deviation,
    },
}

/// Deviations from past experience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    /// A person decided otherwise on a proposal covered by the rule.
    Contrary { proposal: String, by: String },
    /// An act of the rule was answered with an error.
    Failed { proposal: String },
    /// The proposer wants the same operation in a way nobody agreed to.
    Outside { proposal: String },
}

/// An act of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    pub rule: RuleId,
    /// Id of the fulfilled proposal.
    pub proposal: String,
    /// Unix seconds.
    pub at: u64,
    /// `None`: no answer yet.
    pub outcome: Option<Outcome>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub id: RuleId,
    pub pattern: Pattern,
    pub limits: Limits,
    /// Evidence shown to the acceptor.
    pub evidence: Vec<Evidence>,
    pub accepted_by: String,
    /// Unix seconds.
    pub accepted_at: u64,
    /// End of life: Unix seconds.
    pub until: u64,
    pub standing: Standing,
    /// Calls made so far.
    pub acts: u32,
    /// Times of the calls that count for this hour.
    pub(super) recent: VecDeque<u64>,
    /// Decisions up to this number speak for no rule of the subject any more.
    pub(super) unlearnt: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { acts: 100, an_hour: 10, seconds: 30 * 24 * HOUR }
    }
}

impl Limits {
    pub(super) fn are_sound(&self) -> bool {
        (1..=10_000).contains(&self.acts) && (1..=1_000).contains(&self.an_hour) && (1..=MAX_SECONDS).contains(&self.seconds)
    }
}

impl Standing {
    /// Tells whether earlier decisions lose their weight.
    pub(super) fn unlearns(&self) -> bool {
        matches!(self, Self::Revoked { .. } | Self::Stopped { .. })
    }
}

impl Pattern {
    /// Matches a proposal against the experience of the rule.
    pub fn covers(&self, case: &Case) -> bool {
        let Some(values) = case.arguments.as_ref().filter(|_| case.subject == self.subject) else { return false };
        let is_expected = |(place, leaf)| self.arguments.get(place).is_some_and(|argument| argument.expected.takes(leaf));
        let is_there = |(place, argument): (&String, &Argument)| argument.optional || values.contains_key(place);
        values.iter().all(is_expected) && self.arguments.iter().all(is_there)
    }

    /// Tells whether a person decided otherwise than the rule would.
    pub(super) fn contradicts(&self, case: &Case, verdict: &Verdict) -> bool {
        self.covers(case) && *verdict != Verdict::Approved { to: self.to.clone() }
    }
}

impl Rule {
    pub(super) fn new(id: RuleId, offer: Offer, limits: Limits, (by, at): (&str, u64)) -> Self {
        Self {
            id,
            pattern: offer.pattern,
            limits,
            evidence: offer.evidence,
            accepted_by: by.to_owned(),
            accepted_at: at,
            until: at.saturating_add(limits.seconds),
            standing: Standing::Active,
            acts: 0,
            recent: VecDeque::new(),
            unlearnt: 0,
        }
    }

    /// Checks the limits at a time. A clock that goes back makes no room.
    pub(super) fn has_room(&mut self, at: u64) -> bool {
        while self.recent.front().is_some_and(|acted| acted.saturating_add(HOUR) <= at) {
            self.recent.pop_front();
        }
        self.acts < self.limits.acts && self.recent.len() < self.limits.an_hour as usize
    }

    pub(super) fn acted(&mut self, at: u64) {
        self.acts += 1;
        self.recent.push_back(at);
    }

    /// Makes the request for a proposal, with the proposed `params` and the rule's name.
    pub(super) fn fulfil(&self, proposal: &Envelope<'_>) -> Fulfil {
        let params = self.named(Members::again(proposal.payload).get("params").unwrap_or(b"{}"));
        let Pattern { subject, to, .. } = &self.pattern;
        Fulfil { rule: self.id, proposal: proposal.id.to_string(), to: to.clone(), method: subject.method.clone(), params }
    }

    /// Gives `params` with this rule as their `_meta`.
    fn named(&self, params: &[u8]) -> Bytes {
        let (id, by) = (json::quote(&self.id.to_string()), json::quote(&self.accepted_by));
        with_meta(params, RULE, format!("{{\"id\":{id},\"accepted_by\":{by}}}").as_bytes()).into()
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule-{}", self.0)
    }
}

/// Reason for the end of a rule, for people.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Expired { .. } => f.write_str("its time is over"),
            Self::Revoked { by, .. } => write!(f, "revoked by {by}"),
            Self::Spent { .. } => f.write_str("all of its calls are made"),
            Self::Stopped { why, .. } => match why {
                Deviation::Contrary { proposal, by } => write!(f, "{by} decided otherwise on {proposal}"),
                Deviation::Failed { proposal } => write!(f, "what it did for {proposal} failed"),
                Deviation::Outside { proposal } => write!(f, "{proposal} is not what people agreed to"),
            },
        }
    }
}

/// A sentence: proposer, operation, executors, and every argument, named by its place.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { proposer, method, name, .. } = &self.subject;
        let name = name.as_ref().map(|name| format!(" {}", json::quote(name))).unwrap_or_default();
        write!(f, "what {proposer:?} proposes: {method}{name} by {:?}", self.to.join(", "))?;
        let own = |place: &str| matches!(place, "/name" | "/uri") && !name.is_empty();
        self.arguments.iter().filter(|(place, _)| !own(place)).try_for_each(|(place, argument)| write!(f, "; `{place}` {argument}"))
    }
}
