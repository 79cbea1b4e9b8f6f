//! The ancestry of a message: the tokens that came with the message, and the gateways that the workflow is still inside. Verifies no
//! signature: verified claims go in.

use std::collections::BTreeSet;

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
    /// Gateways with a translation under way, one entry a translation.
    open: Vec<String>,
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
        let open = graph.tokens().filter(is_open).map(gateway).collect();
        Ok(Self { leaves, workflow, open })
    }

    /// Checks that the gateway of this id may be the next. A translation counts until an answer of the same issuer follows: a workflow
    /// that comes back for its next step is no loop.
    ///
    /// # Errors
    /// When the message is inside the gateway already, or the gateway would be one too many.
    pub fn pass(&self, gateway: &str, most: usize) -> Result<(), EctFault> {
        if self.open.iter().any(|open| open == gateway) {
            return Err(EctFault::Loop(gateway.to_owned()));
        }
        if self.open.len() >= most { Err(EctFault::Hops(most)) } else { Ok(()) }
    }
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
    fn ae_14_leaves_of_two_workflows_are_refused() {
        let other = EctClaims { workflow: Some(uuid(78)), ..token(2, &[], "agent", "plan") };
        let graph = EctGraph::gather(9, vec![token(1, &[], "agent", "plan"), other]).unwrap();
        assert_eq!(EctLineage::of_graph(&graph), Err(EctFault::Workflow(uuid(2))));
    }
}
