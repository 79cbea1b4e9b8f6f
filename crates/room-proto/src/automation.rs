//! Progressive automation (MCPx v0.1, 2.1 and 9.4). What people decide on proposals is remembered; rules are offered that would have decided
//! alike; where a person accepts one, it decides in people's place, within limits, until the first thing that is not as it was.
//!
//! No rule comes into being, or back, without a person, and what a rule did is never evidence for another. The driver says who is a person,
//! hands in only what [`crate::participant::check`] let through, and sends what is to be sent: nothing is sent from here. What is
//! [`Kept`] can be written down and taken up again; proposals that wait meanwhile are left to people.

mod argument;
mod case;
mod offer;
mod rule;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use argument::{Argument, Expected, Letters};
pub use case::{Case, Leaf, Subject};
pub use offer::{Decided, Evidence, Offer, OfferId, Verdict};
pub use rule::{Act, Deviation, Limits, Pattern, Rule, RuleId, Standing};

use crate::chain::Outcome;
use crate::envelope::Envelope;
use crate::name::ParticipantId;

/// How much is kept, and how much it takes until something is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Acts that are remembered; the oldest goes first.
    pub acts: usize,
    /// Decisions that are remembered; the oldest goes first.
    pub decisions: usize,
    /// So many decisions have to agree before a rule is offered; at least two.
    pub evidence: usize,
    /// Proposals without a decision; the oldest goes first.
    pub open: usize,
    /// Rules, those that have ended included; of these the oldest goes first.
    pub rules: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { acts: 10_000, decisions: 1_000, evidence: 5, open: 1_000, rules: 1_000 }
    }
}

/// A participant of whom the driver says that a person speaks through it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person(pub ParticipantId);

/// What outlives a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    acts: VecDeque<Act>,
    decided: VecDeque<Decided>,
    rules: BTreeMap<RuleId, Rule>,
    /// How many decisions, offers and rules there have been.
    counted: [u64; 3],
}

/// A call that a rule makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fulfil {
    /// The rule.
    pub rule: RuleId,
    /// The proposal that it fulfils.
    pub proposal: String,
    /// Who is to carry it out.
    pub to: Vec<String>,
    /// The MCP method.
    pub method: String,
    /// The raw `params` as they were proposed, with the rule and who accepted it as their `_meta`.
    pub params: Bytes,
}

/// Something for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A rule could be made.
    Offered(OfferId),
    /// A rule has ended; its standing says why.
    Ended(RuleId),
    /// A rule covers a proposal and has done enough for this hour: it is left to people.
    Withheld {
        /// The rule.
        rule: RuleId,
        /// The proposal.
        proposal: String,
    },
}

/// Why something is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Too many rules are active.
    #[error("as many rules are active as may be: revoke one first")]
    Full,
    /// No rule could be held to them.
    #[error("a rule makes 1 to 10,000 calls in all, 1 to 1,000 an hour, and lasts for 1 second to 366 days: choose limits within that")]
    Limits,
    /// There is nothing to revoke.
    #[error("no rule of this number is active: look at the list of rules")]
    NoRule,
    /// What is accepted is not what would be made.
    #[error("this is not offered, or not any more: look at what is offered now")]
    NotOffered,
    /// Nobody agrees to what they propose themselves.
    #[error("whoever proposes may not accept a rule that fulfils it: somebody else has to")]
    Own,
}

/// Learns from people, and acts for them where they agreed to that.
#[derive(Debug, Default)]
pub struct Automation {
    bounds: Bounds,
    kept: Kept,
    /// Proposals without a decision, by their ids, as they came.
    open: VecDeque<(String, Case)>,
    offers: BTreeMap<OfferId, Offer>,
    events: VecDeque<Event>,
}

impl Automation {
    /// Goes on from what was kept: rules that were active are.
    pub fn new(bounds: Bounds, kept: Kept) -> Self {
        let mut automation = Self { bounds, kept, ..Self::default() };
        let subjects: Vec<Subject> = automation.kept.decided.iter().map(|decided| decided.case.subject.clone()).collect();
        subjects.iter().for_each(|subject| automation.offer(subject));
        automation
    }

    /// Somebody proposes something. What comes back is to be sent, as a request that fulfils the proposal.
    pub fn handle_proposal(&mut self, now: Now, proposal: &Envelope<'_>) -> Option<Fulfil> {
        let rule = self.note(now, proposal)?;
        self.act(now, rule, proposal)
    }

    /// The same while nothing may be fulfilled: it is left to people, and learnt from what they decide.
    pub fn handle_proposal_left(&mut self, now: Now, proposal: &Envelope<'_>) {
        self.note(now, proposal);
    }

    /// Keeps a proposal until it is decided; the rule that is active for such.
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

    /// A person fulfils a proposal: by a request that names it. As it was proposed, that speaks for it; with other arguments, against.
    pub fn handle_fulfilment(&mut self, now: Now, by: &Person, request: &Envelope<'_>) {
        let Some((proposal, case)) = request.correlation_id.as_deref().and_then(|id| self.take(id)) else { return };
        let (asked, target) = case.asked_by(request);
        let verdict = if asked == case { Verdict::Approved { to: target } } else { Verdict::Amended };
        self.decide(now, by, proposal, (case, verdict));
    }

    /// A person speaks against a proposal. Against one that a rule has fulfilled meanwhile, that ends the rule.
    pub fn handle_rejection(&mut self, now: Now, by: &Person, proposal: &str) {
        let contrary = Deviation::Contrary { proposal: proposal.to_owned(), by: by.0.as_str().to_owned() };
        if let Some(rule) = self.kept.acts.iter().rev().find(|act| act.proposal == proposal).map(|act| act.rule) {
            self.stop(now, rule, contrary);
        }
        if let Some((proposal, case)) = self.take(proposal) {
            self.decide(now, by, proposal, (case, Verdict::Rejected));
        }
    }

    /// There is an answer to what fulfilled a proposal. An error ends the rule that did.
    pub fn handle_outcome(&mut self, now: Now, proposal: &str, outcome: Outcome) {
        let Some(act) = self.kept.acts.iter_mut().rev().find(|act| act.proposal == proposal && act.outcome.is_none()) else { return };
        act.outcome = Some(outcome);
        let rule = act.rule;
        if outcome == Outcome::Failed {
            self.stop(now, rule, Deviation::Failed { proposal: proposal.to_owned() });
        }
    }

    /// A proposal is not one any more: it was taken back, has expired, or somebody decided who is no person.
    pub fn handle_gone(&mut self, proposal: &str) {
        self.open.retain(|(id, _)| id != proposal);
    }

    /// A person accepts what is offered, with limits of its choice. From here on the rule acts.
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

    /// A person ends a rule.
    pub fn revoke(&mut self, now: Now, rule: RuleId, by: &Person) -> Result<(), RuleError> {
        let by = by.0.as_str().to_owned();
        if self.end(rule, Standing::Revoked { at: now.unix_seconds(), by }) { Ok(()) } else { Err(RuleError::NoRule) }
    }

    /// What a person could accept, the oldest in front.
    pub fn offers(&self) -> impl Iterator<Item = &Offer> {
        self.offers.values()
    }

    /// All rules that are remembered, ended ones too.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.kept.rules.values()
    }

    /// What rules did, the oldest in front.
    pub fn acts(&self) -> impl Iterator<Item = &Act> {
        self.kept.acts.iter()
    }

    /// What people decided, the oldest in front.
    pub fn decided(&self) -> impl Iterator<Item = &Decided> {
        self.kept.decided.iter()
    }

    /// What is to be written down.
    pub fn kept(&self) -> &Kept {
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

    fn take(&mut self, proposal: &str) -> Option<(String, Case)> {
        let place = self.open.iter().position(|(id, _)| id == proposal)?;
        self.open.remove(place)
    }

    /// The one rule that is active for a subject.
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
            self.end(id, Standing::Spent { at });
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
        self.kept.decided.push_back(Decided { number: self.kept.counted[0], proposal, case, by, at: now.unix_seconds(), verdict });
        while self.kept.decided.len() > self.bounds.decisions.max(1) {
            self.kept.decided.pop_front();
        }
        self.offer(&subject);
    }

    /// What is offered for a subject, as things are now.
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
        self.end(rule, Standing::Stopped { at: now.unix_seconds(), why });
    }

    /// Whether it was active. After a deviation or a revocation, nothing that was decided before speaks for a rule any more.
    fn end(&mut self, id: RuleId, standing: Standing) -> bool {
        let decisions = self.kept.counted[0];
        let Some(rule) = self.kept.rules.get_mut(&id).filter(|rule| rule.standing == Standing::Active) else { return false };
        if standing.unlearns() {
            rule.unlearnt = decisions;
        }
        rule.standing = standing;
        self.events.push_back(Event::Ended(id));
        true
    }

    /// Forgets ended rules where there are too many. What had to be unlearnt stays so: decisions that old go with the rule.
    fn make_room(&mut self) -> Result<(), RuleError> {
        while self.kept.rules.len() >= self.bounds.rules.max(1) {
            let oldest = self.kept.rules.values().find(|rule| rule.standing != Standing::Active).map(|rule| rule.id);
            let Some(rule) = oldest.and_then(|id| self.kept.rules.remove(&id)) else { return Err(RuleError::Full) };
            let stays = |decided: &Decided| {
                decided.number > rule.unlearnt || decided.case.subject != rule.pattern.subject || !decided.verdict.speaks_for()
            };
            self.kept.decided.retain(stays);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
