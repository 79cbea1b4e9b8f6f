//! The way of a registration: queue, examination, questions to others. Does not commit registrations.

use std::collections::BTreeSet;
use std::time::Duration;

use banyan_model::Now;

use super::output::{IncomingRequest, Transmit};
use super::questions::{Case, OpenQuestion, Question};
use super::queue::Applicant;
use super::{Parent, Timer};
use crate::id::{CallId, NodeId};
use crate::message::{AskParent, ParentAnswer, Register, Request};
use crate::refusal::Refusal;
use crate::reply::Reply;

/// Pause of an applicant without heartbeats after a refusal for another's sake.
const SOON: Duration = Duration::from_secs(5);

impl Parent {
    pub(super) fn apply(&mut self, now: Now, incoming: &IncomingRequest<'_>, register: Box<Register>) {
        let (link, request) = (incoming.link, incoming.request);
        for case in self.questions.of_link(link, Some(register.subserver_id)) {
            if let Some(case) = self.drop_case(case) {
                self.supersede(&case.applicant);
            }
        }
        let applicant = Applicant { link, request, identity: incoming.identity.clone(), register };
        match self.queue.push(applicant) {
            Ok(None) => {}
            Ok(Some(earlier)) => self.supersede(&earlier),
            Err((applicant, retry_after)) => self.answer(applicant.link, applicant.request, Err(Refusal::RateLimited { retry_after })),
        }
        self.admit(now);
    }

    /// Answers an application replaced by another of the same applicant.
    fn supersede(&mut self, earlier: &Applicant) {
        self.answer(earlier.link, earlier.request, Err(Refusal::RateLimited { retry_after: soon(earlier) }));
    }

    /// Lets in the applicants in turn.
    pub(super) fn admit(&mut self, now: Now) {
        loop {
            match self.queue.pop(now.instant) {
                Ok(Some(applicant)) => self.decide(now, Case { applicant, settled: BTreeSet::new(), open: BTreeSet::new() }),
                Ok(None) => return self.timers.cancel(&Timer::Admit),
                Err(ready) => return self.timers.set(Timer::Admit, ready),
            }
        }
    }

    /// Commits a registration, refuses it, or asks open questions. Things may change during the wait, so that each answer leads to a new
    /// examination.
    fn decide(&mut self, now: Now, case: Case) {
        match self.examine(now, &case.applicant) {
            Err(refusal) => self.answer(case.applicant.link, case.applicant.request, Err(refusal)),
            Ok(questions) => {
                let open: Vec<Question> = questions.into_iter().filter(|question| !case.settled.contains(question)).collect();
                if open.is_empty() {
                    return self.commit(now, case.applicant);
                }
                let number = self.questions.open(case);
                for question in open {
                    self.ask(now, number, question);
                }
            }
        }
    }

    fn ask(&mut self, now: Now, case: u64, question: Question) {
        let Some(applicant) = self.questions.case(case).map(|case| &case.applicant) else { return };
        let subserver_id = applicant.register.subserver_id;
        // Whoever has heartbeats does not wait for an answer much longer than half an interval.
        let interval = applicant.register.heartbeat_interval;
        let timeout = if interval.is_zero() { self.settings.ask_timeout } else { self.settings.ask_timeout.min(interval / 4) };
        let link = match question {
            Question::Holder(session) => self.sessions.get(session).map(|session| session.link),
            Question::Parent => Some(applicant.link),
        };
        // A holder that has just gone has nothing to say.
        let Some(link) = link else { return };
        let call = self.questions.ask(OpenQuestion { case, question, link });
        self.timers.set(Timer::Ask(call), now.instant + timeout);
        let (_, params) = Request::Parent(AskParent { aggregator_id: self.settings.aggregator_id, subserver_id }).encode();
        self.transmits.push_back(Transmit::Ask { link, call, params });
    }

    /// Takes the answer to a question, or its absence. The driver accepts an answer only from the link of the question.
    pub fn handle_answer(&mut self, now: Now, call: CallId, reply: Reply<'_>) {
        let Some(asked) = self.questions.asked(call) else { return };
        let wait = self.questions.case(asked.case).map_or(SOON, |case| soon(&case.applicant));
        let verdict = match asked.question {
            Question::Holder(holder) => {
                let applicant = self.questions.case(asked.case).map(|case| &case.applicant);
                let is_known = self.sessions.get(holder).zip(applicant).is_some_and(|(holder, applicant)| self.is_known(holder, applicant));
                self.holder_says(reply, is_known, wait)
            }
            Question::Parent => self.applicant_says(reply, wait),
        };
        self.settle(now, call, verdict);
    }

    /// Judges the holder's answer. A holder is present unless it denies the registration, or is silent towards an applicant who may be the
    /// holder itself. Towards anybody else heartbeats are evidence enough.
    fn holder_says(&self, reply: Reply<'_>, is_known: bool, retry_after: Duration) -> Result<(), Refusal> {
        let alive = match reply {
            Reply::Lost | Reply::Mute => !is_known,
            Reply::Error(_) => true,
            Reply::Result(result) => parent_of(result).is_ok_and(|parent| parent == Some(self.settings.aggregator_id)),
        };
        if alive { Err(Refusal::DuplicateSubserver { retry_after }) } else { Ok(()) }
    }

    /// Judges the applicant's answer. A subserver unable to answer is believed: the draft has no such question.
    fn applicant_says(&self, reply: Reply<'_>, retry_after: Duration) -> Result<(), Refusal> {
        match reply {
            Reply::Error(_) | Reply::Mute => Ok(()),
            Reply::Lost => Err(Refusal::SubserverSilent { retry_after }),
            Reply::Result(result) => match parent_of(result)?.filter(|parent| *parent != self.settings.aggregator_id) {
                None => Ok(()),
                Some(other) => Err(Refusal::SplitBrain { registered_with: Some(other), retry_after }),
            },
        }
    }

    fn settle(&mut self, now: Now, call: CallId, verdict: Result<(), Refusal>) {
        self.timers.cancel(&Timer::Ask(call));
        match verdict {
            Ok(()) => {
                if let Some(case) = self.questions.settle(call) {
                    self.decide(now, case);
                }
            }
            Err(refusal) => {
                let number = self.questions.asked(call).map(|asked| asked.case);
                if let Some(case) = number.and_then(|number| self.drop_case(number)) {
                    self.answer(case.applicant.link, case.applicant.request, Err(refusal));
                }
            }
        }
    }

    /// Closes a case with all its questions.
    pub(super) fn drop_case(&mut self, case: u64) -> Option<Case> {
        let case = self.questions.close(case)?;
        for call in &case.open {
            self.timers.cancel(&Timer::Ask(*call));
        }
        Some(case)
    }
}

/// Gives the pause of an applicant: a few heartbeats, if any, are enough for changes.
fn soon(applicant: &Applicant) -> Duration {
    let interval = applicant.register.heartbeat_interval;
    if interval.is_zero() { SOON } else { interval.min(SOON) }
}

fn parent_of(result: &[u8]) -> Result<Option<NodeId>, Refusal> {
    ParentAnswer::decode(result).map(|answer| answer.parent_id)
}
