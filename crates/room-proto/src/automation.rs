//! Progressive automation (MCPx v0.1, 2.1 and 9.4). Remembers people's decisions on proposals, offers rules that would have decided alike,
//! and applies a rule that a person accepted, within limits, until the first deviation.
//!
//! Only a person makes a rule or brings a rule back, and the acts of a rule are never evidence for another. The driver names the people,
//! hands in only messages let through by [`crate::participant::check`], and does all sending. An [`AutomationState`] can be written down
//! and resumed; proposals that wait meanwhile are left to people.

mod argument;
mod case;
mod offer;
mod rule;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use argument::{Argument, ExpectedValues, Letters};
pub use case::{Case, Leaf, Subject};
pub use offer::{Decision, Evidence, Offer, OfferId, Verdict};
pub use rule::{Act, Deviation, Limits, Pattern, Rule, RuleId, Standing};

use crate::chain::Outcome;
use crate::envelope::Envelope;
use crate::name::ParticipantId;

/// Limits on memory, and the evidence needed for an offer. A memory of zero counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Acts remembered; the oldest goes first.
    pub acts: usize,
    /// Decisions remembered; the oldest goes first.
    pub decisions: usize,
    /// Agreeing decisions needed for an offer; at least two.
    pub evidence: usize,
    /// Proposals without a decision; the oldest goes first.
    pub open: usize,
    /// Rules, ended rules included; of the ended the oldest goes first.
    pub rules: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { acts: 10_000, decisions: 1_000, evidence: 5, open: 1_000, rules: 1_000 }
    }
}

/// A participant through whom a person speaks, as the driver says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person(pub ParticipantId);

/// Memory that outlives a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AutomationState {
    acts: VecDeque<Act>,
    decided: VecDeque<Decision>,
    rules: BTreeMap<RuleId, Rule>,
    /// Numbers of decisions, offers and rules so far.
    counted: [u64; 3],
}

/// A call made by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fulfil {
    pub rule: RuleId,
    pub proposal: String,
    /// Participants asked to carry out the call.
    pub to: Vec<String>,
    pub method: String,
    /// Raw `params` as proposed, with the rule and its acceptor as their `_meta`.
    pub params: Bytes,
}

/// News for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Offered(OfferId),
    /// End of a rule; the standing gives the reason.
    Ended(RuleId),
    /// A proposal covered by a rule and left to people: the rule has used up this hour's calls.
    Withheld {
        rule: RuleId,
        proposal: String,
    },
}

/// Reasons for refusing to make or end a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("as many rules are active as may be: revoke one first")]
    Full,
    /// Limits out of range.
    #[error("a rule makes 1 to 10,000 calls in all, 1 to 1,000 an hour, and lasts for 1 second to 366 days: choose limits within that")]
    Limits,
    #[error("no rule of this number is active: look at the list of rules")]
    NoRule,
    /// The offer is gone, or has changed.
    #[error("this is not offered, or not any more: look at what is offered now")]
    NotOffered,
    /// The acceptor is the proposer.
    #[error("whoever proposes may not accept a rule that fulfils it: somebody else has to")]
    Own,
}

/// A learner from people's decisions, who acts by the rules people accepted.
#[derive(Debug, Default)]
pub struct Automation {
    bounds: Bounds,
    kept: AutomationState,
    /// Proposals without a decision, by id, in order of arrival.
    open: VecDeque<(String, Case)>,
    offers: BTreeMap<OfferId, Offer>,
    events: VecDeque<Event>,
}

impl Automation {
    /// Resumes from a kept state; active rules stay active.
    pub fn new(bounds: Bounds, kept: AutomationState) -> Self {
        let mut automation = Self { bounds, kept, ..Self::default() };
        let subjects: Vec<Subject> = automation.kept.decided.iter().map(|decided| decided.case.subject.clone()).collect();
        subjects.iter().for_each(|subject| automation.offer(subject));
        automation
    }

    /// Notes a proposal. Gives the request to send, where a rule fulfils the proposal.
    pub fn handle_proposal(&mut self, now: Now, proposal: &Envelope<'_>) -> Option<Fulfil> {
        let rule = self.note(now, proposal)?;
        self.act(now, rule, proposal)
    }

    /// Notes a proposal while no rule may fulfil any: people decide, and their decision is learnt from.
    pub fn handle_proposal_left(&mut self, now: Now, proposal: &Envelope<'_>) {
        self.note(now, proposal);
    }

    /// Keeps a proposal until the decision; gives the active rule for its subject.
    fn note(&mut self, now: Now, proposal: &Envelope<'_>) -> Option<RuleId> {
        self.handle_timeout(now);
        if self.is_known(&proposal.id) {
            return None;
        }
        let case = Case::of_proposal(proposal);
        let active = self.active(&case.subject);
        self.open.push_back((proposal.id.to_string(), case));
        while self.open.len() > self.bounds.open.max(1) {
            self.open.pop_front();
        }
        active
    }

    /// Learns from a person's request for a proposal. Unchanged arguments speak for a rule, other arguments against.
    pub fn handle_fulfilment(&mut self, now: Now, by: &Person, request: &Envelope<'_>) {
        let Some((proposal, case)) = request.correlation_id.as_deref().and_then(|id| self.take_open(id)) else { return };
        let (asked, target) = case.asked_by(request);
        let verdict = if asked == case { Verdict::Approved { to: target } } else { Verdict::Amended };
        self.decide(now, by, proposal, (case, verdict));
    }

    /// Learns from a person's rejection. Rejecting a proposal that a rule has fulfilled meanwhile ends the rule.
    pub fn handle_rejection(&mut self, now: Now, by: &Person, proposal: &str) {
        let contrary = Deviation::Contrary { proposal: proposal.to_owned(), by: by.0.as_str().to_owned() };
        if let Some(rule) = self.kept.acts.iter().rev().find(|act| act.proposal == proposal).map(|act| act.rule) {
            self.stop(now, rule, contrary);
        }
        if let Some((proposal, case)) = self.take_open(proposal) {
            self.decide(now, by, proposal, (case, Verdict::Rejected));
        }
    }

    /// Notes the outcome of a fulfilled proposal. An error ends the rule.
    pub fn handle_outcome(&mut self, now: Now, proposal: &str, outcome: Outcome) {
        let Some(act) = self.kept.acts.iter_mut().rev().find(|act| act.proposal == proposal && act.outcome.is_none()) else { return };
        act.outcome = Some(outcome);
        let rule = act.rule;
        if outcome == Outcome::Failed {
            self.stop(now, rule, Deviation::Failed { proposal: proposal.to_owned() });
        }
    }

    /// Drops a proposal that was withdrawn, has expired, or was decided by somebody other than a person.
    pub fn handle_gone(&mut self, proposal: &str) {
        self.open.retain(|(id, _)| id != proposal);
    }

    /// Makes an offer a rule, active from now on, within limits chosen by the acceptor.
    pub fn accept(&mut self, now: Now, offer: OfferId, by: &Person, limits: Limits) -> Result<RuleId, RuleError> {
        let offered = self.offers.get(&offer).ok_or(RuleError::NotOffered)?;
        if offered.pattern.subject.proposer == by.0.as_str() {
            return Err(RuleError::Own);
        }
        if !limits.are_sound() {
            return Err(RuleError::Limits);
        }
        self.make_room()?;
        let Some(offered) = self.offers.remove(&offer) else { return Err(RuleError::NotOffered) };
        self.kept.counted[2] += 1;
        let id = RuleId(self.kept.counted[2]);
        self.kept.rules.insert(id, Rule::new(id, offered, limits, (by.0.as_str(), now.unix_seconds())));
        Ok(id)
    }

    /// Ends a rule in the name of a person.
    pub fn revoke(&mut self, now: Now, rule: RuleId, by: &Person) -> Result<(), RuleError> {
        let by = by.0.as_str().to_owned();
        if self.end_rule(rule, Standing::Revoked { at: now.unix_seconds(), by }) { Ok(()) } else { Err(RuleError::NoRule) }
    }

    /// Lists offers, the oldest in front.
    pub fn offers(&self) -> impl Iterator<Item = &Offer> {
        self.offers.values()
    }

    /// Lists remembered rules, ended rules included.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.kept.rules.values()
    }

    /// Lists acts of rules, the oldest in front.
    pub fn acts(&self) -> impl Iterator<Item = &Act> {
        self.kept.acts.iter()
    }

    /// Lists people's decisions, the oldest in front.
    pub fn decided(&self) -> impl Iterator<Item = &Decision> {
        self.kept.decided.iter()
    }

    /// Gives the state to write down.
    pub fn kept(&self) -> &AutomationState {
        &self.kept
    }
}

impl Machine for Automation {
    type Output = Event;

    fn handle_timeout(&mut self, now: Now) {
        let at = now.unix_seconds();
        for rule in self.kept.rules.values_mut().filter(|rule| rule.standing == Standing::Active && rule.until <= at) {
            rule.standing = Standing::Expired { at };
            self.events.push_back(Event::Ended(rule.id));
        }
    }

    fn poll_output(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // Rules end by the clock on the wall, and none acts after its end: each proposal lets time pass first. Nobody has to be woken for that.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }
}

impl Automation {
    fn is_known(&self, proposal: &str) -> bool {
        self.open.iter().any(|(id, _)| id == proposal)
            || self.kept.acts.iter().any(|act| act.proposal == proposal)
            || self.kept.decided.iter().any(|decided| decided.proposal == proposal)
    }

    fn take_open(&mut self, proposal: &str) -> Option<(String, Case)> {
        let place = self.open.iter().position(|(id, _)| id == proposal)?;
        self.open.remove(place)
    }

    /// Finds the active rule for a subject; there is at most one.
    fn active(&self, subject: &Subject) -> Option<RuleId> {
        self.kept.rules.values().find(|rule| rule.standing == Standing::Active && rule.pattern.subject == *subject).map(|rule| rule.id)
    }

    fn act(&mut self, now: Now, id: RuleId, proposal: &Envelope<'_>) -> Option<Fulfil> {
        let (case, at) = (Case::of_proposal(proposal), now.unix_seconds());
        let rule = self.kept.rules.get_mut(&id)?;
        if !rule.pattern.covers(&case) {
            self.stop(now, id, Deviation::Outside { proposal: proposal.id.to_string() });
            return None;
        }
        if !rule.has_room(at) {
            self.events.push_back(Event::Withheld { rule: id, proposal: proposal.id.to_string() });
            return None;
        }
        let fulfil = rule.fulfil(proposal);
        rule.acted(at);
        let is_spent = rule.acts >= rule.limits.acts;
        self.kept.acts.push_back(Act { rule: id, proposal: proposal.id.to_string(), at, outcome: None });
        while self.kept.acts.len() > self.bounds.acts.max(1) {
            self.kept.acts.pop_front();
        }
        if is_spent {
            self.end_rule(id, Standing::Spent { at });
        }
        Some(fulfil)
    }

    fn decide(&mut self, now: Now, by: &Person, proposal: String, (case, verdict): (Case, Verdict)) {
        let by = by.0.as_str().to_owned();
        // What a rule did first was not decided by whoever came later.
        if case.subject.proposer == by || (verdict.speaks_for() && self.kept.acts.iter().any(|act| act.proposal == proposal)) {
            return;
        }
        let subject = case.subject.clone();
        if let Some(rule) = self.active(&subject).and_then(|id| self.kept.rules.get(&id))
            && rule.pattern.contradicts(&case, &verdict)
        {
            self.stop(now, rule.id, Deviation::Contrary { proposal: proposal.clone(), by: by.clone() });
        }
        self.kept.counted[0] += 1;
        self.kept.decided.push_back(Decision { number: self.kept.counted[0], proposal, case, by, at: now.unix_seconds(), verdict });
        while self.kept.decided.len() > self.bounds.decisions.max(1) {
            self.kept.decided.pop_front();
        }
        self.offer(&subject);
    }

    /// Renews the offer for a subject.
    fn offer(&mut self, subject: &Subject) {
        let before = self.offers.values().find(|offer| offer.pattern.subject == *subject).map(|offer| offer.id);
        let active = self.active(subject);
        let since = self.kept.rules.values().filter(|rule| rule.pattern.subject == *subject).map(|rule| rule.unlearnt).max().unwrap_or(0);
        let learnt = offer::learn(self.kept.decided.iter().filter(|decided| decided.case.subject == *subject), since, self.bounds.evidence);
        let before = before.and_then(|id| self.offers.remove(&id));
        let Some((pattern, evidence)) = learnt.filter(|_| active.is_none()) else { return };
        // Whoever looked at an offer accepts what it looked at: another pattern has another number.
        let id = match before {
            Some(same) if same.pattern == pattern => same.id,
            Some(_) | None => {
                self.kept.counted[1] += 1;
                let id = OfferId(self.kept.counted[1]);
                self.events.push_back(Event::Offered(id));
                id
            }
        };
        self.offers.insert(id, Offer { id, pattern, limits: Limits::default(), evidence });
    }

    fn stop(&mut self, now: Now, rule: RuleId, why: Deviation) {
        self.end_rule(rule, Standing::Stopped { at: now.unix_seconds(), why });
    }

    /// Ends an active rule; `false` for any other. After a deviation or a revocation no earlier decision speaks for a rule any more.
    fn end_rule(&mut self, id: RuleId, standing: Standing) -> bool {
        let decisions = self.kept.counted[0];
        let Some(rule) = self.kept.rules.get_mut(&id).filter(|rule| rule.standing == Standing::Active) else { return false };
        if standing.unlearns() {
            rule.unlearnt = decisions;
        }
        rule.standing = standing;
        self.events.push_back(Event::Ended(id));
        true
    }

    /// Forgets ended rules where there are too many. The unlearning stays in force: decisions of that age go with the rule.
    fn make_room(&mut self) -> Result<(), RuleError> {
        while self.kept.rules.len() >= self.bounds.rules.max(1) {
            let oldest = self.kept.rules.values().find(|rule| rule.standing != Standing::Active).map(|rule| rule.id);
            let Some(rule) = oldest.and_then(|id| self.kept.rules.remove(&id)) else { return Err(RuleError::Full) };
            let stays = |decided: &Decision| {
                decided.number > rule.unlearnt || decided.case.subject != rule.pattern.subject || !decided.verdict.speaks_for()
            };
            self.kept.decided.retain(stays);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
