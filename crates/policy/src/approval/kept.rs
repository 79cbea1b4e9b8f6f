//! Between a desk and its store: state taken from the store at the start, changes by other gates, and the state that holds again when
//! a change could not be kept. The store itself is not known here.

use std::collections::BTreeMap;

use banyan_model::{Machine, Now};

use super::anchor::Operator;
use super::desk::{Change, Desk};
use super::grant::Grant;
use super::standing::{Approval, Standing};

impl Desk {
    /// Takes stored operators and grants.
    pub fn reinstate(&mut self, operators: Vec<Operator>, grants: Vec<Grant>) {
        self.anchors.operators.extend(operators.into_iter().map(|operator| (operator.id.clone(), operator)));
        self.grants.extend(grants.into_iter().map(|grant| (grant.id.clone(), grant)));
    }

    /// Takes the approvals stored by the previous run, after the operators. No caller waits for those calls any more, and calls that were
    /// free to go
    /// or on their way may have gone out.
    pub fn restore(&mut self, now: Now, mut kept: Vec<Approval>) {
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

    /// Takes the stored operators, which other gates enrol and remove too. Agreement by a key removed since then is void, unless the call
    /// has
    /// gone out.
    pub fn know(&mut self, now: Now, operators: Vec<Operator>) {
        self.handle_timeout(now);
        self.anchors.operators = operators.into_iter().map(|operator| (operator.id.clone(), operator)).collect();
        self.recount();
    }

    /// Undoes changes that could not be kept: approvals and grants are as stored, and unstored ones are gone, without a trace.
    /// `approvals` and `grants`: the stored ones among [`Desk::changes`]. Operators are taken by [`Desk::know`].
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

    /// Puts an approval back in order among approvals of the same call: a returning caller means the last.
    fn replace(&mut self, id: String, approval: Approval) {
        self.schedule(&approval);
        if approval.standing.is_over() {
            self.over.push_back(id.clone());
        }
        self.all.insert(id, approval);
    }
}
