//! Registrations that wait for answers of others, and the questions. Does not judge answers.

use std::collections::{BTreeMap, BTreeSet};

use super::queue::Applicant;
use crate::id::{CallId, LinkId, NodeId, SessionKey};

/// A question to settle before a registration is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    /// Asks for the presence of a session's holder, as the same subserver comes on another link.
    Holder(SessionKey),
    /// Asks the applicant for the current registration.
    Parent,
}

/// An applicant, with open questions.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) applicant: Applicant,
    pub(super) settled: BTreeSet<Question>,
    pub(super) open: BTreeSet<CallId>,
}

/// An open question.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenQuestion {
    pub(super) case: u64,
    pub(super) question: Question,
    pub(super) link: LinkId,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    cases: BTreeMap<u64, Case>,
    asked: BTreeMap<CallId, OpenQuestion>,
    next_case: u64,
    next_call: u64,
}

impl Questions {
    pub(super) fn open(&mut self, case: Case) -> u64 {
        self.next_case += 1;
        self.cases.insert(self.next_case, case);
        self.next_case
    }

    pub(super) fn ask(&mut self, asked: OpenQuestion) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        if let Some(case) = self.cases.get_mut(&asked.case) {
            case.open.insert(call);
        }
        self.asked.insert(call, asked);
        call
    }

    pub(super) fn asked(&self, call: CallId) -> Option<OpenQuestion> {
        self.asked.get(&call).copied()
    }

    /// Settles a question. Gives the case once no question is open.
    pub(super) fn settle(&mut self, call: CallId) -> Option<Case> {
        let asked = self.asked.remove(&call)?;
        let case = self.cases.get_mut(&asked.case)?;
        case.open.remove(&call);
        case.settled.insert(asked.question);
        if case.open.is_empty() { self.cases.remove(&asked.case) } else { None }
    }

    /// Closes a case with all its questions.
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

    /// Lists the cases of applicants on a link, or of a single subserver.
    pub(super) fn of_link(&self, link: LinkId, subserver: Option<NodeId>) -> Vec<u64> {
        let theirs = |case: &Case| case.applicant.link == link && subserver.is_none_or(|id| id == case.applicant.register.subserver_id);
        self.cases.iter().filter(|(_, case)| theirs(case)).map(|(number, _)| *number).collect()
    }

    /// Lists the questions asked over a link.
    pub(super) fn asked_over(&self, link: LinkId) -> Vec<CallId> {
        self.asked.iter().filter(|(_, asked)| asked.link == link).map(|(call, _)| *call).collect()
    }
}
