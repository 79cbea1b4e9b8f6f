//! The rest of a desk besides waiting calls: operators, grants, and look-ups. Nothing is decided about a call here.

use banyan_model::{Machine, Now};

use super::anchor::{Anchors, Operator};
use super::confirm::Refusal;
use super::desk::{Change, Desk};
use super::grant::{Grant, Terms};
use super::proof::Proof;
use super::standing::{Approval, Standing};
use super::token::Service;
use super::webauthn::RelyingParty;

impl Desk {
    /// Finds an approval.
    pub fn approval(&self, id: &str) -> Option<&Approval> {
        self.all.get(id)
    }

    /// Lists all remembered approvals, in no order of time.
    pub fn approvals(&self) -> impl Iterator<Item = &Approval> {
        self.all.values()
    }

    /// Finds the last agreed call of the same tool before this approval.
    pub fn previous(&self, of: &Approval) -> Option<&Approval> {
        let agreed = |a: &&Approval| matches!(a.standing, Standing::Released | Standing::Dispatched | Standing::Below | Standing::Done);
        let tool = &of.challenge.call.tool;
        self.all.values().filter(agreed).filter(|a| a.challenge.call.tool == *tool && a.id() != of.id()).max_by_key(|a| a.since)
    }

    /// Gives everybody who may agree.
    pub fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// Takes the configured services. Agreement by other services is void, unless the call has gone out.
    pub fn trust(&mut self, services: Vec<Service>) {
        self.anchors.services = services;
        self.recount();
    }

    /// Sets the relying party of passkeys; `None`: no passkeys are taken.
    pub fn set_relying_party(&mut self, party: Option<RelyingParty>) {
        self.anchors.relying_party = party;
    }

    /// Enrols a key and gives the enrolled operator. A known key takes the new description and keeps its time of enrolment.
    pub fn enroll(&mut self, mut operator: Operator) -> Operator {
        if let Some(known) = self.anchors.operators.get(&operator.id) {
            operator.enrolled = known.enrolled;
        }
        self.changes.insert(Change::Operator(operator.id.clone()));
        self.anchors.operators.insert(operator.id.clone(), operator.clone());
        operator
    }

    /// Removes a key by id; `None` without such a key. Agreement by the key is void, unless the call has gone out.
    pub fn remove(&mut self, now: Now, id: &str) -> Option<Operator> {
        self.handle_timeout(now);
        let removed = self.anchors.operators.remove(id)?;
        self.changes.insert(Change::Operator(id.to_owned()));
        self.recount();
        Some(removed)
    }

    /// Voids agreement by keys and services that no longer count, unless the call has gone out.
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

    /// Lists all grants.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// Finds a grant.
    pub fn grant(&self, id: &str) -> Option<&Grant> {
        self.grants.get(id)
    }

    /// Tells if a grant holds now: neither expired nor used up, with enough votes that still count.
    pub fn holds(&self, grant: &Grant) -> bool {
        let given = grant.given.iter().filter(|vote| self.anchors.counts(vote)).count();
        grant.lasts(self.clock) && given >= usize::from(self.settings.required)
    }

    /// Tells if a grant holds for a call already let through, used up or not.
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

    /// Gives a use back to a grant, for a call that never left.
    pub fn give_back(&mut self, id: &str) {
        if let Some(grant) = self.grants.get_mut(id).filter(|grant| grant.used > 0) {
            grant.used -= 1;
            self.changes.insert(Change::Grant(id.to_owned()));
        }
    }

    /// Gives a grant, which needs as many votes as a call.
    ///
    /// # Errors
    /// The reason for a vote not to count.
    pub fn give(&mut self, now: Now, id: &str, terms: Terms, proofs: &[Proof]) -> Result<Grant, Refusal> {
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

    /// Revokes a grant; `false` without such a grant.
    pub fn revoke(&mut self, now: Now, id: &str) -> bool {
        self.handle_timeout(now);
        let Some(grant) = self.grants.get_mut(id) else { return false };
        grant.revoked.get_or_insert(self.clock);
        self.changes.insert(Change::Grant(id.to_owned()));
        true
    }
}
