//! A participant that learns from people's decisions, and fulfils the proposals they agreed to (MCPx v0.1, 9.4), unless paused. The driver
//! names the people, and knows whom a terminal or a page speaks for. Shows no rules.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;

use crate::automation::{self, Automation, Fulfil, Person};
use crate::chain::{ChainId, MessageRole, Outcome, State};
use crate::envelope::Envelope;
use crate::name::ParticipantId;
use crate::participant::{Event, Participant};
use crate::voice::{Call, Utterance};

/// Output of an orchestrator: all messages before the news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestratorOutput {
    Room(Event),
    Rule(automation::Event),
    /// A request of a rule, to be sent.
    Send(Utterance),
}

/// A participant together with the rules learnt.
#[derive(Debug)]
pub struct Orchestrator {
    pub participant: Participant,
    pub automation: Automation,
    /// Participants whose decisions count.
    pub people: BTreeSet<ParticipantId>,
    transmits: VecDeque<Utterance>,
}

impl Orchestrator {
    /// Makes a participant that learns from `people`, and from itself if among them.
    pub fn new(participant: Participant, automation: Automation, people: BTreeSet<ParticipantId>) -> Self {
        Self { participant, automation, people, transmits: VecDeque::new() }
    }

    /// Takes a message of the room.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) {
        let Some(envelope) = self.participant.read(bytes) else { return };
        let found = self.participant.apply(now, bytes, &envelope);
        self.learn(now, &envelope, found);
    }
}

impl Machine for Orchestrator {
    type Output = OrchestratorOutput;

    fn handle_timeout(&mut self, now: Now) {
        self.participant.handle_timeout(now);
        self.automation.handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<OrchestratorOutput> {
        if let Some(spoken) = self.transmits.pop_front() {
            return Some(OrchestratorOutput::Send(spoken));
        }
        if let Some(event) = self.participant.poll_output() {
            if let Event::Expired(id) = event {
                self.gone(id);
            }
            return Some(OrchestratorOutput::Room(event));
        }
        self.automation.poll_output().map(OrchestratorOutput::Rule)
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.participant.poll_timeout()
    }
}

impl Orchestrator {
    fn learn(&mut self, now: Now, envelope: &Envelope<'_>, found: MessageRole) {
        let person = self.people.get(&*envelope.from).cloned().map(Person);
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        if envelope.kind().class() == "mcp/reject" {
            match (&person, found) {
                (Some(person), _) => self.automation.handle_rejection(now, person, of),
                (None, MessageRole::Ended(_)) => self.automation.handle_gone(of),
                (None, _) => {}
            }
            return;
        }
        match found {
            MessageRole::Proposed(_) if self.participant.paused().is_some() => self.automation.handle_proposal_left(now, envelope),
            MessageRole::Proposed(_) => {
                if let Some(fulfil) = self.automation.handle_proposal(now, envelope) {
                    self.fulfil(now, &fulfil);
                }
            }
            MessageRole::Fulfilled(id) if self.is_by_rule(id, envelope) => {}
            MessageRole::Deviates { .. } | MessageRole::Fulfilled(_) | MessageRole::Late { .. } => match person {
                Some(person) => self.automation.handle_fulfilment(now, &person, envelope),
                None if matches!(found, MessageRole::Fulfilled(_)) => self.automation.handle_gone(of),
                None => {}
            },
            MessageRole::Ended(id) => self.gone(id),
            MessageRole::Answered(id) => self.answered(now, id),
            MessageRole::Repeated | MessageRole::Requested(_) | MessageRole::Stray | MessageRole::Unrelated => {}
        }
    }

    /// Tells whether this participant made a request by a rule. Such a request is nobody's decision.
    fn is_by_rule(&self, id: ChainId, request: &Envelope<'_>) -> bool {
        let names_one = self.participant.chains().get(id).is_some_and(|chain| chain.rule.is_some());
        names_one && self.participant.me().is_some_and(|me| me.as_str() == request.from)
    }

    fn fulfil(&mut self, now: Now, fulfil: &Fulfil) {
        let to: Vec<&str> = fulfil.to.iter().map(String::as_str).collect();
        let call = Call { method: &fulfil.method, params: Some(&fulfil.params) };
        match self.participant.request(now, &to, call, Some(&fulfil.proposal)) {
            Ok(spoken) => self.transmits.push_back(spoken),
            // What cannot be asked for has failed, and the rule ends by that.
            Err(_) => self.automation.handle_outcome(now, &fulfil.proposal, Outcome::Failed),
        }
    }

    fn answered(&mut self, now: Now, id: ChainId) {
        let Some(chain) = self.participant.chains().get(id) else { return };
        let is_own = chain.request.as_ref().is_some_and(|request| self.participant.me().is_some_and(|me| me.as_str() == request.from));
        if let (Some(proposal), Some(outcome), true) = (&chain.proposal, chain.outcome, is_own && chain.rule.is_some()) {
            self.automation.handle_outcome(now, &proposal.id, outcome);
        }
    }

    fn gone(&mut self, id: ChainId) {
        let chain = self.participant.chains().get(id).filter(|chain| chain.state != State::Requested);
        if let Some(proposal) = chain.and_then(|chain| chain.proposal.as_ref()) {
            self.automation.handle_gone(&proposal.id);
        }
    }
}

#[cfg(test)]
mod tests;
