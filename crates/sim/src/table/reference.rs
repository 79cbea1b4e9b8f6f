//! The expected outcome of requests, proposals and offers, in the plainest words. Sees inputs and outputs, and nothing of the
//! machines.

use std::collections::{BTreeMap, BTreeSet};

type RuleResult = Result<(), String>;

/// Everything known.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// Requests to the server, by number: the asking participant, and the proposal if any.
    asked: BTreeMap<usize, (&'static str, Option<usize>)>,
    /// Requests that nobody waits for any more.
    dropped: BTreeSet<usize>,
    answered: BTreeSet<usize>,
    /// Requests that became calls.
    called: BTreeSet<usize>,
    /// Proposals that became calls.
    made: BTreeSet<usize>,
    /// Calls from outside, by their numbers: at whom.
    calls: BTreeMap<u64, &'static str>,
    ended: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    /// Participants that have left once: calls to them may end so, as callers hear of it later.
    gone: BTreeSet<String>,
    /// Announced offers.
    offered: BTreeMap<String, String>,
}

impl Reference {
    pub(super) fn asks(&mut self, number: usize, who: &'static str, of: Option<usize>) {
        self.asked.insert(number, (who, of));
    }

    /// Takes a participant's leave: its requests are dropped, and its calls may end so.
    pub(super) fn leaves(&mut self, who: &str) {
        self.dropped.extend(self.asked.iter().filter(|(_, (by, _))| *by == who).map(|(number, _)| number));
        self.gone.insert(who.to_owned());
    }

    /// The server is to carry out a request.
    pub(super) fn carries_out(&mut self, number: usize) -> RuleResult {
        let Some((_, of)) = self.asked.get(&number).copied() else { return Err(format!("nobody has asked for {number}")) };
        if !self.called.insert(number) {
            return Err(format!("the request {number} is carried out twice"));
        }
        of.map_or(Ok(()), |proposal| self.makes(proposal))
    }

    /// Takes a call made for a proposal, the first and only one.
    pub(super) fn makes(&mut self, proposal: usize) -> RuleResult {
        if self.made.insert(proposal) { Ok(()) } else { Err(format!("two calls are made for the proposal {proposal}")) }
    }

    /// Takes a participant's reading of an answer to its own request: `of` is the request named by the server, if any.
    pub(super) fn reads(&mut self, who: &str, number: usize, of: Option<&str>) -> RuleResult {
        if self.asked.get(&number).is_none_or(|(by, _)| *by != who) {
            return Ok(());
        }
        if !self.answered.insert(number) {
            return Err(format!("the request {number} is answered twice"));
        }
        match of {
            Some(of) if of != format!("j-{number}") => Err(format!("the request {number} has the answer to {of}")),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn calls(&mut self, call: u64, at: &'static str) {
        self.calls.insert(call, at);
    }

    pub(super) fn is_under_way(&self, call: u64) -> bool {
        self.calls.contains_key(&call) && !self.ended.contains(&call) && !self.cancelled.contains(&call)
    }

    pub(super) fn cancels(&mut self, call: u64) {
        self.cancelled.insert(call);
    }

    /// Takes the end of a call from outside: the participant's answer, or the participant's leave.
    pub(super) fn ends(&mut self, call: u64, said: Option<u64>, has_left: bool) -> RuleResult {
        let at = self.calls.get(&call).copied().unwrap_or_default();
        if at.is_empty() || !self.ended.insert(call) || self.cancelled.contains(&call) {
            return Err(format!("the call {call} ends and is not under way"));
        }
        if has_left && !self.gone.contains(at) {
            return Err(format!("the call {call} ends because somebody has left who has not"));
        }
        match said {
            Some(said) if said != call => Err(format!("the call {call} has the answer to {said}")),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn offers(&mut self, who: &str, tool: Option<String>) {
        match tool {
            Some(tool) => drop(self.offered.insert(who.to_owned(), tool)),
            None => drop(self.offered.remove(who)),
        }
    }

    /// Checks that nothing is under way any more. `present`: the offers of present participants.
    pub(super) fn is_quiet(&self, present: &BTreeMap<String, String>) -> RuleResult {
        if let Some(open) = self.asked.keys().find(|number| !self.dropped.contains(number) && !self.answered.contains(number)) {
            return Err(format!("the request {open} has no answer"));
        }
        if let Some(open) = self.calls.keys().find(|call| !self.ended.contains(call) && !self.cancelled.contains(call)) {
            return Err(format!("the call {open} has no end"));
        }
        if *present == self.offered { Ok(()) } else { Err(format!("{present:?} are offered, and known are {:?}", self.offered)) }
    }
}
