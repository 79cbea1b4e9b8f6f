//! What a desk has besides waiting calls: who may agree, what was agreed to beforehand, and looking things up. Nothing is decided about a
//! call here.

use super::anchor::{Anchors, Operator};
use super::confirm::Refusal;
use super::desk::{Change, Desk};
use super::grant::{Grant, Terms};
use super::proof::Proof;
use super::standing::{Approval, Standing};
use super::token::Service;
use super::webauthn::RelyingParty;

impl Desk {
    /// One approval.
    pub fn approval(&self, id: &str) -> Option<&Approval> {
        self.all.get(id)
    }

    /// All that are remembered, in no order of time.
    pub fn approvals(&self) -> impl Iterator<Item = &Approval> {
        self.all.values()
    }

    /// The last call of the same tool that was agreed to before this one.
    pub fn previous(&self, of: &Approval) -> Option<&Approval> {
        let agreed = |a: &&Approval| matches!(a.standing, Standing::Released | Standing::Dispatched | Standing::Below | Standing::Done);
        let tool = &of.challenge.call.tool;
        self.all.values().filter(agreed).filter(|a| a.challenge.call.tool == *tool && a.id() != of.id()).max_by_key(|a| a.since)
    }

    /// Whose word counts.
    pub fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// Takes the services that the configuration names. What others agreed to and has not gone out yet is not agreed to any more.
    pub fn trust(&mut self, services: Vec<Service>) {
        self.anchors.services = services;
        self.recount();
    }

    /// Says whom passkeys are for; `None`: they are not taken.
    pub fn set_relying_party(&mut self, party: Option<RelyingParty>) {
        self.anchors.relying_party = party;
    }

    /// Enrols a key; as it is known from now on. One that is known already gets what is said of it now, and counts since when it did.
    pub fn enroll(&mut self, mut operator: Operator) -> Operator {
        if let Some(known) = self.anchors.operators.get(&operator.id) {
            operator.enrolled = known.enrolled;
        }
        self.changes.insert(Change::Operator(operator.id.clone()));
        self.anchors.operators.insert(operator.id.clone(), operator.clone());
        operator
    }

    /// Takes a key away, by its id; `None`: there is none. What it agreed to and has not gone out yet is not agreed to any more.
    pub fn remove(&mut self, now: u64, id: &str) -> Option<Operator> {
        self.handle_timeout(now);
        let removed = self.anchors.operators.remove(id)?;
        self.changes.insert(Change::Operator(id.to_owned()));
        self.recount();
        Some(removed)
    }

    /// Takes back what was agreed to by a key or a service that does not count any more, unless it has gone out.
    pub(super) fn recount(&mut self) {
        let mut void = Vec::new();
        for approval in self.all.values_mut().filter(|approval| approval.standing.is_held()) {
            let Some(gone) = approval.votes.iter().find(|vote| !self.anchors.counts(vote)).cloned() else { continue };
            if approval.standing == Standing::Pending {
                approval.votes.retain(|vote| self.anchors.counts(vote));
                self.changes.insert(Change::Approval(approval.id().to_owned()));
            } else {
                let by = if gone.is_by_service() { "the word" } else { "a key" };
                approval.reason = Some(format!("{by} of {} does not count any more, by which it was agreed to", gone.person));
                void.push(approval.id().to_owned());
            }
        }
        void.iter().for_each(|id| self.turn(id, Standing::Void));
    }

    /// All grants.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// One of them.
    pub fn grant(&self, id: &str) -> Option<&Grant> {
        self.grants.get(id)
    }

    /// Whether a grant holds now: its time is not over, and as many of those who gave it count still as have to agree.
    pub fn holds(&self, grant: &Grant) -> bool {
        let given = grant.given.iter().filter(|vote| self.anchors.counts(vote)).count();
        grant.lasts(self.clock) && given >= usize::from(self.settings.required)
    }

    /// The same for a call that it has let through, and that goes on: whether it is used up does not matter.
    pub(super) fn holds_for_more(&self, grant: &Grant) -> bool {
        self.holds(&Grant { used: 0, ..grant.clone() })
    }

    /// A call goes out by a grant.
    pub(super) fn spend(&mut self, id: &str) {
        if let Some(grant) = self.grants.get_mut(id) {
            grant.used += 1;
            self.changes.insert(Change::Grant(id.to_owned()));
        }
    }

    /// A call that a grant let through never left: it has that use again.
    pub fn give_back(&mut self, id: &str) {
        if let Some(grant) = self.grants.get_mut(id).filter(|grant| grant.used > 0) {
            grant.used -= 1;
            self.changes.insert(Change::Grant(id.to_owned()));
        }
    }

    /// Gives a grant, for which as many people have to agree as for a call.
    ///
    /// # Errors
    /// Why that does not count.
    pub fn give(&mut self, now: u64, id: &str, terms: Terms, proofs: &[Proof]) -> Result<Grant, Refusal> {
        self.handle_timeout(now);
        if self.grants.contains_key(id) {
            return Err(Refusal::Over(Standing::Done));
        }
        if terms.expires <= self.clock {
            return Err(Refusal::Over(Standing::Expired));
        }
        let statement = terms.statement(id, &self.settings.gate);
        let mut grant = Grant { id: id.to_owned(), terms, given: Vec::new(), principals: Vec::new(), used: 0, revoked: None };
        let mut counted = Vec::new();
        for proof in proofs {
            let verified = self.anchors.verify(proof, &statement, self.clock)?;
            if grant.given.iter().any(|vote| super::anchor::is_same(&vote.person, &verified.person)) {
                return Err(Refusal::SamePerson(verified.person, self.settings.required));
            }
            counted.push(verified.counted.clone());
            grant.principals.extend(verified.principals.iter().cloned());
            grant.given.push(verified.vote(self.clock));
        }
        if grant.given.len() < usize::from(self.settings.required) {
            return Err(Refusal::Over(Standing::Pending));
        }
        counted.into_iter().for_each(|counted| self.counted(counted));
        self.changes.insert(Change::Grant(id.to_owned()));
        self.grants.insert(id.to_owned(), grant.clone());
        Ok(grant)
    }

    /// Takes a grant back; `false`: there is none.
    pub fn revoke(&mut self, now: u64, id: &str) -> bool {
        self.handle_timeout(now);
        let Some(grant) = self.grants.get_mut(id) else { return false };
        grant.revoked.get_or_insert(self.clock);
        self.changes.insert(Change::Grant(id.to_owned()));
        true
    }
}
