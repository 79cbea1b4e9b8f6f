//! People's decisions, and the rule that would have decided alike. Makes no rule: a person does.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::argument::{Argument, ExpectedValues};
use super::case::{Case, Leaf};
use super::rule::{Limits, Pattern};

/// A person's decision on a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The person made the call with other arguments.
    Amended,
    /// The person made the call as proposed.
    Approved {
        /// Participants who carried out the call.
        to: Vec<String>,
    },
    Rejected,
}

impl Verdict {
    /// Tells whether a rule may be learnt from the verdict.
    pub fn speaks_for(&self) -> bool {
        matches!(self, Self::Approved { .. })
    }
}

/// A decision of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Counts up in order of arrival.
    pub number: u64,
    /// Id of the proposal.
    pub proposal: String,
    pub case: Case,
    /// Id of the person.
    pub by: String,
    /// Unix seconds.
    pub at: u64,
    pub verdict: Verdict,
}

/// Number of an offer, counting up; a changed offer gets another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OfferId(pub u64);

/// A decision that speaks for a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Id of the approved proposal.
    pub proposal: String,
    /// Id of the person who approved.
    pub by: String,
    /// Unix seconds.
    pub at: u64,
}

/// A rule offered for acceptance. No remembered decision speaks against the rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    pub id: OfferId,
    pub pattern: Pattern,
    /// Suggested limits.
    pub limits: Limits,
    pub evidence: Vec<Evidence>,
}

/// Finds the widest pattern that all approvals agree on and no decision contradicts, with the approvals as evidence. All of `decided` are
/// on one subject. Decisions up to the number `since` speak for nothing any more, but still against.
pub(super) fn learn<'a>(decided: impl Iterator<Item = &'a Decision>, since: u64, least: usize) -> Option<(Pattern, Vec<Evidence>)> {
    let (approved, contrary): (Vec<&Decision>, Vec<&Decision>) = decided.partition(|decided| decided.verdict.speaks_for());
    let approved: Vec<&Decision> =
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

fn generalise(approved: &[&Decision], exactly: bool) -> Option<BTreeMap<String, Argument>> {
    let cases: Vec<&BTreeMap<String, Leaf>> = approved.iter().filter_map(|decided| decided.case.arguments.as_ref()).collect();
    let places: BTreeSet<&String> = cases.iter().flat_map(|case| case.keys()).collect();
    let learnt = places.into_iter().map(|place| {
        let values: Vec<&Leaf> = cases.iter().filter_map(|case| case.get(place)).collect();
        let expected = ExpectedValues::learn(&values, exactly)?;
        Some((place.clone(), Argument { expected, optional: values.len() < cases.len() }))
    });
    learnt.collect()
}
