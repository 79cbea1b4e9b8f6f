//! Registrations that wait for an answer from somebody else, and what was asked. What an answer means is not decided here.

use std::collections::{BTreeMap, BTreeSet};

use super::queue::Applicant;
use crate::id::{CallId, LinkId, NodeId, SessionKey};

/// What has to be known before a registration is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    /// Whether whoever holds this session is still there, as the same subserver comes on another link.
    Holder(SessionKey),
    /// With whom the applicant says it is registered.
    Parent,
    /// With whom the store says it is registered.
    Store,
}

/// An applicant and what is open about it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) applicant: Applicant,
    pub(super) settled: BTreeSet<Question>,
    pub(super) open: BTreeSet<CallId>,
}

/// A question that is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) case: u64,
    pub(super) question: Question,
    /// Over which link; `None`: the store.
    pub(super) link: Option<LinkId>,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    cases: BTreeMap<u64, Case>,
    asked: BTreeMap<CallId, Asked>,
    next_case: u64,
    next_call: u64,
}

impl Questions {
    pub(super) fn open(&mut self, case: Case) -> u64 {
        self.next_case += 1;
        self.cases.insert(self.next_case, case);
        self.next_case
    }

    pub(super) fn ask(&mut self, asked: Asked) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        if let Some(case) = self.cases.get_mut(&asked.case) {
            case.open.insert(call);
        }
        self.asked.insert(call, asked);
        call
    }

    pub(super) fn asked(&self, call: CallId) -> Option<Asked> {
        self.asked.get(&call).copied()
    }

    /// A question is settled. Returns the case once nothing is open about it.
    pub(super) fn settle(&mut self, call: CallId) -> Option<Case> {
        let asked = self.asked.remove(&call)?;
        let case = self.cases.get_mut(&asked.case)?;
        case.open.remove(&call);
        case.settled.insert(asked.question);
        if case.open.is_empty() { self.cases.remove(&asked.case) } else { None }
    }

    /// A case is closed, whatever is open about it. Returns it, and the questions that nobody needs answered any more.
    pub(super) fn close(&mut self, case: u64) -> Option<Case> {
        let closed = self.cases.remove(&case)?;
        for call in &closed.open {
            self.asked.remove(call);
        }
        Some(closed)
    }

    pub(super) fn case(&self, case: u64) -> Option<&Case> {
        self.cases.get(&case)
    }

    /// The cases of applicants on a link, or only that of one subserver.
    pub(super) fn of_link(&self, link: LinkId, subserver: Option<NodeId>) -> Vec<u64> {
        let theirs = |case: &Case| case.applicant.link == link && subserver.is_none_or(|id| id == case.applicant.register.subserver_id);
        self.cases.iter().filter(|(_, case)| theirs(case)).map(|(number, _)| *number).collect()
    }

    /// The questions that were asked over a link.
    pub(super) fn asked_over(&self, link: LinkId) -> Vec<CallId> {
        self.asked.iter().filter(|(_, asked)| asked.link == Some(link)).map(|(call, _)| *call).collect()
    }
}
