//! The ancestry of a message: the tokens that came with the message, and the gateways that the workflow is still inside. Verifies no
//! signature: verified claims go in.

use std::collections::{BTreeMap, BTreeSet};

use json::{Duplicates, Members};

use super::EctFault;
use super::claims::EctClaims;
use super::graph::EctGraph;

/// Action of a translation (AEPB, section 6).
pub const TRANSLATE: &str = "aepb:translate";
/// Action of a translation without a result (AEPB, section 6).
pub const TRANSLATE_ERROR: &str = "aepb:translate_error";
/// Action of an answer behind a translation: a name of this project.
pub const ANSWER: &str = "banyan:answer";
/// Member of an extension with the id of a gateway.
pub const GATEWAY: &str = "aepb.gateway_id";

/// Most tokens of an ancestry.
pub const MOST_ANCESTRY: usize = 256;

/// Ancestry of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EctLineage {
    /// Tokens that no other token follows, by id.
    pub leaves: Vec<EctClaims>,
    /// `wid` of the leaves.
    pub workflow: Option<String>,
    /// Translations without an answer of the same issuer.
    open: Vec<OpenTranslation>,
}

/// Translation without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenTranslation {
    id: String,
    gateway: String,
    issuer: Option<String>,
    /// A party from before the translation has signed a token behind it: the message has come back out of the gateway.
    is_back: bool,
}

impl EctLineage {
    /// Reads the ancestry from a whole graph.
    ///
    /// # Errors
    /// When the leaves belong to several workflows.
    pub fn of_graph(graph: &EctGraph) -> Result<Self, EctFault> {
        let followed: BTreeSet<&str> = graph.tokens().flat_map(|token| &token.parents).map(String::as_str).collect();
        let leaves: Vec<EctClaims> = graph.tokens().filter(|token| !followed.contains(token.id.as_str())).cloned().collect();
        let workflow = leaves.first().and_then(|leaf| leaf.workflow.clone());
        if let Some(other) = leaves.iter().find(|leaf| leaf.workflow != workflow) {
            return Err(EctFault::Workflow(other.id.clone()));
        }
        let answered: BTreeSet<(&str, Option<&str>)> = graph
            .tokens()
            .filter(|token| [ANSWER, TRANSLATE_ERROR].contains(&token.action.as_str()))
            .flat_map(|token| token.parents.iter().map(|parent| (parent.as_str(), token.issuer.as_deref())))
            .collect();
        let is_open = |token: &&EctClaims| token.action == TRANSLATE && !answered.contains(&(token.id.as_str(), token.issuer.as_deref()));
        let back = returned(graph);
        let open = graph.tokens().filter(is_open).map(|token| OpenTranslation {
            id: token.id.clone(),
            gateway: gateway(token),
            issuer: token.issuer.clone(),
            is_back: back.contains(token.id.as_str()),
        });
        Ok(Self { leaves, workflow, open: open.collect() })
    }

    /// Checks that no token of this gateway from the midst of a task is a leaf: an agreement to another call would stand before this one.
    ///
    /// # Errors
    /// When such a token is a leaf.
    pub fn ends(&self, gateway: &str) -> Result<(), EctFault> {
        let is_inner = |leaf: &&EctClaims| {
            leaf.issuer.as_deref() == Some(gateway) && ![ANSWER, TRANSLATE, TRANSLATE_ERROR].contains(&leaf.action.as_str())
        };
        self.leaves.iter().find(is_inner).map_or(Ok(()), |leaf| Err(EctFault::Inner(leaf.id.clone())))
    }

    /// Checks that the gateway of this id may be the next. A translation of the gateway itself counts until its answer follows, and one of
    /// another also until a party from before it goes on: a workflow that comes back for its next step is no loop.
    ///
    /// # Errors
    /// When the message is inside the gateway already, or the gateway would be one too many.
    pub fn pass(&self, gateway: &str, most: usize) -> Result<(), EctFault> {
        let inside = self.open.iter().filter(|open| !open.is_back || open.issuer.as_deref() == Some(gateway));
        let gateways: Vec<&str> = inside.map(|open| open.gateway.as_str()).collect();
        if gateways.contains(&gateway) {
            return Err(EctFault::Loop(gateway.to_owned()));
        }
        if gateways.len() >= most { Err(EctFault::Hops(most)) } else { Ok(()) }
    }

    /// Checks for a translation without an answer of its issuer.
    pub fn is_open(&self, id: &str) -> bool {
        self.open.iter().any(|open| open.id == id)
    }
}

/// Finds tokens behind which another issuer signs again that has signed before them.
fn returned(graph: &EctGraph) -> BTreeSet<&str> {
    let tokens: Vec<&EctClaims> = graph.ordered().collect();
    let before = ancestors(&tokens);
    let issuer = |place: usize| tokens.get(place).and_then(|token| token.issuer.as_deref());
    let issuers: Vec<BTreeSet<Option<&str>>> = before.iter().map(|ancestors| places(ancestors).map(issuer).collect()).collect();
    let mut back = BTreeSet::new();
    for (token, ancestors) in tokens.iter().zip(&before) {
        let own = token.issuer.as_deref();
        let left =
            places(ancestors).filter(|place| issuer(*place) != own && issuers.get(*place).is_some_and(|before| before.contains(&own)));
        back.extend(left.filter_map(|place| tokens.get(place)).map(|token| token.id.as_str()));
    }
    back
}

/// Finds the ancestors of each token as bits, one a place. Tokens stand behind their predecessors.
fn ancestors(tokens: &[&EctClaims]) -> Vec<Vec<u64>> {
    let places: BTreeMap<&str, usize> = tokens.iter().enumerate().map(|(place, token)| (token.id.as_str(), place)).collect();
    let mut before: Vec<Vec<u64>> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut all = vec![0; tokens.len().div_ceil(64)];
        for parent in token.parents.iter().filter_map(|parent| places.get(parent.as_str()).copied()) {
            before.get(parent).into_iter().flatten().zip(&mut all).for_each(|(theirs, own)| *own |= theirs);
            all.get_mut(parent / 64).into_iter().for_each(|word| *word |= 1 << (parent % 64));
        }
        before.push(all);
    }
    before
}

/// Lists the places of bits that are set.
fn places(bits: &[u64]) -> impl Iterator<Item = usize> {
    (0..bits.len() * 64).filter(|place| bits.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1))
}

/// Finds the gateway of a translation: by the extension, or else the issuer.
fn gateway(token: &EctClaims) -> String {
    let members = token.extension.as_deref().and_then(|raw| Members::parse(raw, Duplicates::RefuseTop).ok());
    let named = members.and_then(|members| members.str(GATEWAY).map(std::borrow::Cow::into_owned));
    named.or_else(|| token.issuer.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ect::EctDraft;

    const NOW: u64 = 1_772_064_150;

    fn uuid(number: u64) -> String {
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    fn token(number: u64, parents: &[u64], issuer: &str, action: &str) -> EctClaims {
        EctClaims {
            draft: EctDraft::Draft01,
            id: uuid(number),
            issuer: Some(issuer.into()),
            audience: vec!["b".into()],
            issued: NOW,
            expires: NOW + 300,
            action: action.into(),
            workflow: Some(uuid(77)),
            parents: parents.iter().map(|parent| uuid(*parent)).collect(),
            input: None,
            output: None,
            extension: Some(format!("{{\"{GATEWAY}\":\"{issuer}\"}}").into_bytes()),
        }
    }

    fn lineage(tokens: Vec<EctClaims>) -> EctLineage {
        EctLineage::of_graph(&EctGraph::gather(MOST_ANCESTRY, tokens).unwrap()).unwrap()
    }

    #[test]
    fn ae_14_a_gateway_twice_is_a_loop() {
        let inside = lineage(vec![token(1, &[], "agent", "plan"), token(2, &[1], "gate", TRANSLATE), token(3, &[2], "other", "work")]);
        assert_eq!(inside.pass("gate", 9), Err(EctFault::Loop("gate".into())));
        assert_eq!((inside.pass("third", 2), inside.leaves.len()), (Ok(()), 1));
        assert_eq!(lineage(Vec::new()), EctLineage::default());
    }

    #[test]
    fn ae_14_more_hops_than_allowed_are_refused() {
        let chain: Vec<EctClaims> =
            (1..4).map(|number| token(number, &[number - 1][..usize::from(number > 1)], &format!("gate {number}"), TRANSLATE)).collect();
        assert_eq!(lineage(chain[..2].to_vec()).pass("last", 3), Ok(()));
        assert_eq!(lineage(chain).pass("last", 3), Err(EctFault::Hops(3)));
        assert_eq!(EctLineage::default().pass("first", 0), Err(EctFault::Hops(0)));
    }

    #[test]
    fn ae_14_an_answered_translation_is_no_loop() {
        let call = vec![token(1, &[], "agent", "plan"), token(2, &[1], "gate", TRANSLATE)];
        let answered = |issuer: &str, action: &str| [call.clone(), vec![token(3, &[2], issuer, action)]].concat();
        assert_eq!(lineage(answered("gate", ANSWER)).pass("gate", 1), Ok(()));
        assert_eq!(lineage(answered("gate", TRANSLATE_ERROR)).pass("gate", 1), Ok(()));
        for (issuer, action) in [("liar", ANSWER), ("gate", "work")] {
            assert!(lineage(answered(issuer, action)).pass("gate", 1).is_err(), "{issuer} {action}");
        }
    }

    #[test]
    fn ae_14_a_foreign_gateway_is_passed_when_its_caller_returns() {
        let call = vec![token(1, &[], "agent", "plan"), token(2, &[1], "far", TRANSLATE), token(3, &[2], "target", "work")];
        let step = |issuer: &str| lineage([call.clone(), vec![token(4, &[3], issuer, "plan")]].concat());
        assert_eq!(lineage(call.clone()).pass("gate", 1), Err(EctFault::Hops(1)), "the target is behind the gateway");
        assert_eq!(step("target").pass("gate", 1), Err(EctFault::Hops(1)));
        assert_eq!(step("agent").pass("gate", 1), Ok(()));
        assert_eq!(step("agent").pass("far", 9), Err(EctFault::Loop("far".into())), "a gateway knows its own answers");
    }

    #[test]
    fn ae_12_an_agreement_of_the_gate_is_no_leaf() {
        let leaf = |issuer: &str, action: &str| lineage(vec![token(1, &[], "agent", "plan"), token(2, &[1], issuer, action)]);
        assert_eq!(leaf("gate", "hitl:approval_granted").ends("gate"), Err(EctFault::Inner(uuid(2))));
        assert_eq!(leaf("other", "hitl:approval_granted").ends("gate"), Ok(()));
        assert_eq!([ANSWER, TRANSLATE_ERROR].map(|action| leaf("gate", action).ends("gate")), [Ok(()), Ok(())]);
    }

    #[test]
    fn ae_14_leaves_of_two_workflows_are_refused() {
        let other = EctClaims { workflow: Some(uuid(78)), ..token(2, &[], "agent", "plan") };
        let graph = EctGraph::gather(9, vec![token(1, &[], "agent", "plan"), other]).unwrap();
        assert_eq!(EctLineage::of_graph(&graph), Err(EctFault::Workflow(uuid(2))));
    }
}
