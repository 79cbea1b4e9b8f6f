//! What has to come of what was asked, proposed and offered, in the plainest words. It sees what goes in and what comes out, and nothing of the
//! machines.

use std::collections::{BTreeMap, BTreeSet};

type Held = Result<(), String>;

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// Requests to the server, by their numbers: who asked, and for which proposal.
    asked: BTreeMap<usize, (&'static str, Option<usize>)>,
    /// Those that nobody waits for any more.
    dropped: BTreeSet<usize>,
    answered: BTreeSet<usize>,
    /// Requests that were made calls of.
    called: BTreeSet<usize>,
    /// Proposals for which a call was made.
    made: BTreeSet<usize>,
    /// Calls from outside, by their numbers: at whom.
    calls: BTreeMap<u64, &'static str>,
    ended: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    /// Who has left once: calls at it may end so, as whoever calls hears of it later.
    gone: BTreeSet<String>,
    /// What is said to be offered.
    offered: BTreeMap<String, String>,
}

impl Reference {
    pub(super) fn asks(&mut self, number: usize, who: &'static str, of: Option<usize>) {
        self.asked.insert(number, (who, of));
    }

    /// Somebody leaves: whatever it waited for is nobody's, and what it was doing may end so.
    pub(super) fn leaves(&mut self, who: &str) {
        self.dropped.extend(self.asked.iter().filter(|(_, (by, _))| *by == who).map(|(number, _)| number));
        self.gone.insert(who.to_owned());
    }

    /// The server is to carry out a request.
    pub(super) fn carries_out(&mut self, number: usize) -> Held {
        let Some((_, of)) = self.asked.get(&number).copied() else { return Err(format!("nobody has asked for {number}")) };
        if !self.called.insert(number) {
            return Err(format!("the request {number} is carried out twice"));
        }
        of.map_or(Ok(()), |proposal| self.makes(proposal))
    }

    /// A call is made for a proposal: by whoever was first.
    pub(super) fn makes(&mut self, proposal: usize) -> Held {
        if self.made.insert(proposal) { Ok(()) } else { Err(format!("two calls are made for the proposal {proposal}")) }
    }

    /// Somebody reads an answer to its own request: `of` is what the server said it belongs to, where it said so.
    pub(super) fn reads(&mut self, who: &str, number: usize, of: Option<&str>) -> Held {
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

    /// A call from outside ends: with what its participant said, or because that one has left.
    pub(super) fn ends(&mut self, call: u64, said: Option<u64>, has_left: bool) -> Held {
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

    /// Nothing is under way any more. `present`: what those who are there offer.
    pub(super) fn is_quiet(&self, present: &BTreeMap<String, String>) -> Held {
        if let Some(open) = self.asked.keys().find(|number| !self.dropped.contains(number) && !self.answered.contains(number)) {
            return Err(format!("the request {open} has no answer"));
        }
        if let Some(open) = self.calls.keys().find(|call| !self.ended.contains(call) && !self.cancelled.contains(call)) {
            return Err(format!("the call {open} has no end"));
        }
        if *present == self.offered { Ok(()) } else { Err(format!("{present:?} are offered, and known are {:?}", self.offered)) }
    }
}
