//! A rule that a person accepted: what it covers, how far it goes, how it stands, and what it did. When it acts is decided elsewhere; it makes
//! nothing but the request, which names it.

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
/// No rule lasts longer than 366 days.
const MAX_SECONDS: u64 = 366 * 24 * HOUR;

/// Which rule: they are numbered as they are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleId(pub u64);

/// What a rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Who proposes what.
    pub subject: Subject,
    /// Who carries it out.
    pub to: Vec<String>,
    /// Every value there may be, by where it stands.
    pub arguments: BTreeMap<String, Argument>,
}

/// How far a rule goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Calls in all.
    pub acts: u32,
    /// Calls within an hour.
    pub an_hour: u32,
    /// For how long, in seconds, from when it is accepted.
    pub seconds: u64,
}

/// How a rule stands. Times are Unix seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It acts.
    Active,
    /// Its time is over.
    Expired {
        /// When.
        at: u64,
    },
    /// A person ended it.
    Revoked {
        /// When.
        at: u64,
        /// Who.
        by: String,
    },
    /// It has made all of its calls.
    Spent {
        /// When.
        at: u64,
    },
    /// Something was not as it had been.
    Stopped {
        /// When.
        at: u64,
        /// What.
        why: Deviation,
    },
}

/// What was not as it had been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    /// A person decided otherwise on something that the rule covers.
    Contrary {
        /// On which proposal.
        proposal: String,
        /// Who.
        by: String,
    },
    /// What the rule did was answered with an error.
    Failed {
        /// The proposal that it fulfilled.
        proposal: String,
    },
    /// The proposer wants the same done in a way that nobody agreed to.
    Outside {
        /// The proposal.
        proposal: String,
    },
}

/// Something that a rule did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// The rule.
    pub rule: RuleId,
    /// The proposal that it fulfilled.
    pub proposal: String,
    /// When: Unix seconds.
    pub at: u64,
    /// What came of it; `None`: nothing yet.
    pub outcome: Option<Outcome>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its number.
    pub id: RuleId,
    /// What it covers.
    pub pattern: Pattern,
    /// How far it goes.
    pub limits: Limits,
    /// What it was learnt from, as it was shown to whoever accepted it.
    pub evidence: Vec<Evidence>,
    /// Who accepted it.
    pub accepted_by: String,
    /// When: Unix seconds.
    pub accepted_at: u64,
    /// Until when it acts: Unix seconds.
    pub until: u64,
    /// How it stands.
    pub standing: Standing,
    /// How many calls it has made.
    pub acts: u32,
    /// When those were that count for this hour.
    pub(super) recent: VecDeque<u64>,
    /// Decisions up to this number speak for no rule of its subject any more.
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
    /// Whether what was learnt before speaks for nothing any more.
    pub(super) fn unlearns(&self) -> bool {
        matches!(self, Self::Revoked { .. } | Self::Stopped { .. })
    }
}

impl Pattern {
    /// Whether a proposal is as those that people agreed to.
    pub fn covers(&self, case: &Case) -> bool {
        let Some(values) = case.arguments.as_ref().filter(|_| case.subject == self.subject) else { return false };
        let is_expected = |(place, leaf)| self.arguments.get(place).is_some_and(|argument| argument.expected.takes(leaf));
        let is_there = |(place, argument): (&String, &Argument)| argument.optional || values.contains_key(place);
        values.iter().all(is_expected) && self.arguments.iter().all(is_there)
    }

    /// Whether a person decided otherwise than this would.
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

    /// Whether it may act within this hour. A clock that goes back makes no room.
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

    /// The request that fulfils a proposal, with what was proposed and the rule's name.
    pub(super) fn fulfil(&self, proposal: &Envelope<'_>) -> Fulfil {
        let params = self.named(Members::again(proposal.payload).get("params").unwrap_or(b"{}"));
        let Pattern { subject, to, .. } = &self.pattern;
        Fulfil { rule: self.id, proposal: proposal.id.to_string(), to: to.clone(), method: subject.method.clone(), params }
    }

    /// `params`, with this rule as their `_meta`.
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

/// Why it does not act any more, for people.
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

/// A sentence: who proposes what, who carries it out, and what every argument is. Arguments are told by where they stand.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { proposer, method, name, .. } = &self.subject;
        let name = name.as_ref().map(|name| format!(" {}", json::quote(name))).unwrap_or_default();
        write!(f, "what {proposer:?} proposes: {method}{name} by {:?}", self.to.join(", "))?;
        let own = |place: &str| matches!(place, "/name" | "/uri") && !name.is_empty();
        self.arguments.iter().filter(|(place, _)| !own(place)).try_for_each(|(place, argument)| write!(f, "; `{place}` {argument}"))
    }
}
