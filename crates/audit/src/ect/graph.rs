//! The graph of tokens: each follows its predecessors, and none follows itself. Does not verify signatures: verified claims go in.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::EctClaims;
use super::{EctDraft, EctFault, SKEW};

/// Most ancestors walked for one question.
const MOST_ANCESTORS: usize = 10_000;

/// Tokens by id. Ids are unique in the whole graph, which is stricter than the drafts are within a workflow.
#[derive(Debug)]
pub struct EctGraph {
    most: usize,
    nodes: BTreeMap<String, EctClaims>,
}

impl EctGraph {
    /// Makes a graph for at most this number of tokens, each as long as a token may be.
    pub fn new(most: usize) -> Self {
        Self { most, nodes: BTreeMap::new() }
    }

    /// Makes the graph of tokens in any order, as an export holds them.
    ///
    /// # Errors
    /// When the tokens form no graph: the first fault, by id.
    pub fn gather(most: usize, tokens: Vec<EctClaims>) -> Result<Self, EctFault> {
        let mut waiting = BTreeMap::new();
        for token in tokens {
            if waiting.len() >= most {
                return Err(EctFault::Full(most));
            }
            if let Some(twice) = waiting.insert(token.id.clone(), token) {
                return Err(EctFault::Replayed(twice.id));
            }
        }
        let lost = waiting.values().flat_map(|token| &token.parents).find(|parent| !waiting.contains_key(*parent));
        if let Some(parent) = lost {
            return Err(EctFault::Parent(parent.clone()));
        }
        let (order, circular) = order(&waiting);
        if !circular.is_empty() {
            return Err(EctFault::Cycle(circular[..circular.len().min(4)].join(", ")));
        }
        let mut graph = Self::new(most);
        for token in order.iter().filter_map(|id| waiting.remove(id)) {
            graph.add(token)?;
        }
        Ok(graph)
    }

    /// Makes the graph of those tokens that are linked, in any order, and lists the others by id, each with a fault. Of two tokens with one id
    /// the first counts.
    pub fn sift(most: usize, tokens: Vec<EctClaims>) -> (Self, Vec<(String, EctFault)>) {
        let (mut waiting, mut faults) = (BTreeMap::new(), Vec::new());
        for token in tokens {
            if waiting.contains_key(&token.id) {
                faults.push((token.id.clone(), EctFault::Replayed(token.id)));
            } else {
                waiting.insert(token.id.clone(), token);
            }
        }
        let (order, circular) = order(&waiting);
        let mut graph = Self::new(most);
        for token in order.iter().filter_map(|id| waiting.remove(id)) {
            let id = token.id.clone();
            faults.extend(graph.add(token).err().map(|fault| (id, fault)));
        }
        faults.extend(circular.into_iter().map(|id| (id.clone(), EctFault::Cycle(id))));
        (graph, faults)
    }

    /// Adds a token after its predecessors.
    ///
    /// # Errors
    /// When the id is there, or a predecessor is unknown, later, or of another workflow (draft -01).
    pub fn add(&mut self, token: EctClaims) -> Result<(), EctFault> {
        if self.nodes.contains_key(&token.id) {
            return Err(EctFault::Replayed(token.id));
        }
        if self.nodes.len() >= self.most {
            return Err(EctFault::Full(self.most));
        }
        for id in &token.parents {
            if *id == token.id {
                return Err(EctFault::Cycle(token.id));
            }
            let parent = self.nodes.get(id).ok_or_else(|| EctFault::Parent(id.clone()))?;
            if parent.issued >= token.issued.saturating_add(SKEW) {
                return Err(EctFault::Order(id.clone()));
            }
            if token.draft == EctDraft::Draft01 && parent.workflow != token.workflow {
                return Err(EctFault::Workflow(id.clone()));
            }
        }
        self.nodes.insert(token.id.clone(), token);
        Ok(())
    }

    /// Gives the token with this id.
    pub fn token(&self, id: &str) -> Option<&EctClaims> {
        self.nodes.get(id)
    }

    /// Lists the tokens by id.
    pub fn tokens(&self) -> impl Iterator<Item = &EctClaims> {
        self.nodes.values()
    }

    /// Lists the tokens, each behind its predecessors.
    pub fn ordered(&self) -> impl Iterator<Item = &EctClaims> {
        let (ids, _) = order(&self.nodes);
        ids.into_iter().filter_map(|id| self.nodes.get(&id))
    }

    /// Lists the distinct ancestors of a token, by id.
    ///
    /// # Errors
    /// When the token is unknown, or has more ancestors than are walked.
    pub fn ancestors(&self, id: &str) -> Result<Vec<&EctClaims>, EctFault> {
        let start = self.nodes.get(id).ok_or_else(|| EctFault::Parent(id.to_owned()))?;
        let mut met = BTreeSet::new();
        let mut next: Vec<&String> = start.parents.iter().collect();
        while let Some(id) = next.pop() {
            if !met.insert(id) {
                continue;
            }
            if met.len() > MOST_ANCESTORS {
                return Err(EctFault::Oversized("10000 ancestors"));
            }
            next.extend(self.nodes.get(id).iter().flat_map(|token| &token.parents));
        }
        Ok(met.into_iter().filter_map(|id| self.nodes.get(id)).collect())
    }
}

/// Orders ids so that each follows its predecessors, as far as those are there. The second list is of ids within or behind a circle.
fn order(tokens: &BTreeMap<String, EctClaims>) -> (Vec<String>, Vec<String>) {
    let mut missing = BTreeMap::new();
    let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for token in tokens.values() {
        let parents = token.parents.iter().filter(|parent| tokens.contains_key(*parent));
        missing.insert(token.id.as_str(), parents.clone().count());
        parents.for_each(|parent| children.entry(parent).or_default().push(&token.id));
    }
    let mut ready: Vec<&str> = missing.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    let mut order = Vec::with_capacity(tokens.len());
    while let Some(id) = ready.pop() {
        missing.remove(id);
        order.push(id.to_owned());
        for child in children.get(id).into_iter().flatten() {
            if let Some(count) = missing.get_mut(child) {
                *count -= 1;
                if *count == 0 {
                    ready.push(child);
                }
            }
        }
    }
    (order, missing.into_keys().map(str::to_owned).collect())
}
