//! Between a desk and where it is kept: what is taken from there at the start, what others wrote there meanwhile, and what holds again where
//! a change could not be kept. How and where it is kept is not known here.

use std::collections::BTreeMap;

use super::anchor::Operator;
use super::desk::{Change, Desk};
use super::grant::Grant;
use super::standing::{Approval, Standing};

impl Desk {
    /// Takes operators and grants that were kept.
    pub fn reinstate(&mut self, operators: Vec<Operator>, grants: Vec<Grant>) {
        self.anchors.operators.extend(operators.into_iter().map(|operator| (operator.id.clone(), operator)));
        self.grants.extend(grants.into_iter().map(|grant| (grant.id.clone(), grant)));
    }

    /// Takes what was kept by the gate that ran before, behind its operators. Nobody waits for those calls any more; whether one that was
    /// free to go, or on its way, has gone out is not known.
    pub fn restore(&mut self, now: u64, mut kept: Vec<Approval>) {
        self.advance(now);
        // As they came, whatever their order in the store: a caller that comes back means the last one of its call.
        kept.sort_by_key(|approval| (approval.requested, !approval.standing.is_over(), approval.since));
        for mut approval in kept {
            let (id, was_attended) = (approval.id().to_owned(), std::mem::take(&mut approval.attended));
            let standing = approval.standing;
            self.enter(approval);
            if standing == Standing::Dispatched || (standing == Standing::Released && was_attended) {
                self.turn(&id, Standing::OutcomeUnknown);
            } else if standing.is_over() {
                self.over.push_back(id);
            }
        }
        self.over.make_contiguous().sort_by_key(|id| self.all.get(id).map(|approval| approval.since));
        // Keys may have been taken away meanwhile.
        self.recount();
        self.handle_timeout(now);
    }

    /// Takes the operators as they are kept by now: other gates enrol and remove them too. What was agreed to by a key that is not there any
    /// more, or was taken away in between, and has not gone out yet is not agreed to any more.
    pub fn know(&mut self, now: u64, operators: Vec<Operator>) {
        self.handle_timeout(now);
        self.anchors.operators = operators.into_iter().map(|operator| (operator.id.clone(), operator)).collect();
        self.recount();
    }

    /// What changed could not be kept: approvals and grants are again as they were kept, those that were not are not there, and nothing has
    /// happened to them. `approvals` and `grants`: those among [`Desk::changes`] that there are. Operators are taken by [`Desk::know`].
    pub fn put_back(&mut self, approvals: Vec<Approval>, grants: Vec<Grant>) {
        let mut kept: BTreeMap<String, Approval> = approvals.into_iter().map(|approval| (approval.id().to_owned(), approval)).collect();
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Approval(id) => {
                    self.over.retain(|other| *other != id);
                    self.due.retain(|(_, other)| *other != id);
                    match kept.remove(&id) {
                        Some(approval) => self.replace(id, approval),
                        None => self.unlist(&id),
                    }
                }
                Change::Grant(id) => drop(self.grants.remove(&id)),
                Change::Operator(_) => {}
            }
        }
        self.news.clear();
        self.grants.extend(grants.into_iter().map(|grant| (grant.id.clone(), grant)));
    }

    /// In its place among those of the same call: the last one is the one that its caller comes back for.
    fn replace(&mut self, id: String, approval: Approval) {
        self.schedule(&approval);
        if approval.standing.is_over() {
            self.over.push_back(id.clone());
        }
        self.all.insert(id, approval);
    }
}
