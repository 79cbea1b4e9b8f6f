//! What people decided, and the rule that would have decided alike. Nothing is made a rule here: a person does that.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::argument::{Argument, Expected};
use super::case::{Case, Leaf};
use super::rule::{Limits, Pattern};

/// What a person said of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It made the call, with other arguments: not as it was proposed.
    Amended,
    /// It made the call as it was proposed.
    Approved {
        /// Who carried it out.
        to: Vec<String>,
    },
    /// No.
    Rejected,
}

impl Verdict {
    /// Whether a rule may be learnt from it.
    pub fn speaks_for(&self) -> bool {
        matches!(self, Self::Approved { .. })
    }
}

/// A decision of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Decisions are numbered as they come.
    pub number: u64,
    /// The id of the proposal.
    pub proposal: String,
    /// What was proposed.
    pub case: Case,
    /// Who decided.
    pub by: String,
    /// When: Unix seconds.
    pub at: u64,
    /// What.
    pub verdict: Verdict,
}

/// Which offer: they are numbered as they are made, and one that changes gets another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OfferId(pub u64);

/// A decision that speaks for a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The id of the proposal that was approved.
    pub proposal: String,
    /// Who approved it.
    pub by: String,
    /// When: Unix seconds.
    pub at: u64,
}

/// A rule that a person could accept. No decision that is remembered speaks against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Its number.
    pub id: OfferId,
    /// What the rule would cover.
    pub pattern: Pattern,
    /// The limits that are suggested.
    pub limits: Limits,
    /// What it is learnt from.
    pub evidence: Vec<Evidence>,
}

/// The widest pattern that all who agreed agreed to, and nobody has spoken against; with the decisions that speak for it. All of `decided` are
/// on one subject. Those up to the number `since` speak for nothing any more, but still against.
pub(super) fn learn<'a>(decided: impl Iterator<Item = &'a Decided>, since: u64, least: usize) -> Option<(Pattern, Vec<Evidence>)> {
    let (approved, contrary): (Vec<&Decided>, Vec<&Decided>) = decided.partition(|decided| decided.verdict.speaks_for());
    let approved: Vec<&Decided> =
        approved.into_iter().filter(|decided| decided.number > since && decided.case.arguments.is_some()).collect();
    let first = approved.first()?;
    let Verdict::Approved { to } = &first.verdict else { return None };
    // One who carries it out at times and not at others is not what people agreed to.
    let agree = approved.iter().all(|decided| decided.verdict == first.verdict);
    if !agree || to.is_empty() || approved.len() < least.max(2) {
        return None;
    }
    let pattern = [false, true].into_iter().find_map(|exactly| {
        let arguments = generalise(&approved, exactly)?;
        let pattern = Pattern { subject: first.case.subject.clone(), to: to.clone(), arguments };
        let is_contradicted = contrary.iter().any(|decided| pattern.contradicts(&decided.case, &decided.verdict));
        let covers_all = approved.iter().all(|decided| pattern.covers(&decided.case));
        (covers_all && !is_contradicted).then_some(pattern)
    })?;
    let evidence = approved.iter().map(|d| Evidence { proposal: d.proposal.clone(), by: d.by.clone(), at: d.at }).collect();
    Some((pattern, evidence))
}

fn generalise(approved: &[&Decided], exactly: bool) -> Option<BTreeMap<String, Argument>> {
    let cases: Vec<&BTreeMap<String, Leaf>> = approved.iter().filter_map(|decided| decided.case.arguments.as_ref()).collect();
    let places: BTreeSet<&String> = cases.iter().flat_map(|case| case.keys()).collect();
    let learnt = places.into_iter().map(|place| {
        let values: Vec<&Leaf> = cases.iter().filter_map(|case| case.get(place)).collect();
        let expected = Expected::learn(&values, exactly)?;
        Some((place.clone(), Argument { expected, optional: values.len() < cases.len() }))
    });
    learnt.collect()
}
