//! The way to a registration: choice of parents, timing, and reactions to refusals. Does not keep a registration alive.

use std::collections::BTreeSet;
use std::time::Duration;

use banyan_model::Now;

use super::lineage::KnownSubtree;
use super::output::{Event, Transmit};
use super::{Child, Membership, ParentLink, State, Timer};
use crate::message::{Ancestry, ReceivedRefusal, RegistrationResult, Request};
use crate::reply::Reply;

/// Intervals left to a parent for learning its ancestry, which travels with heartbeats and thus sooner. A tree with a liar has to heal
/// within three (AX-62), which leaves no room for more.
const HEARING: u32 = 1;

impl Child {
    pub(super) fn dial(&mut self, now: Now, parent: usize) {
        self.state = State::Dialling { parent };
        self.timers.set(Timer::Answer, now.instant + self.settings.answer_timeout());
        self.transmits.push_back(Transmit::Dial { parent });
    }

    pub(super) fn register(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>) {
        let mut register = self.settings.register.clone();
        if register.is_aggregator() {
            register.subtree = Some(self.subtree.clone());
        }
        self.unwanted.clear();
        register.backup = at.parent > 0;
        let call = self.request(at.link, &Request::Register(Box::new(register)));
        self.timers.cancel(&Timer::Dial);
        self.timers.set(Timer::Answer, now.instant + self.settings.answer_timeout());
        self.state = State::Registering { at, call, fallback };
    }

    pub(super) fn registration_answered(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>, reply: Reply<'_>) {
        self.timers.cancel(&Timer::Answer);
        match reply {
            Reply::Result(result) => match RegistrationResult::decode(result) {
                Ok(registered) => self.registered(now, at, fallback, registered),
                Err(_) => self.not_registered(now, at, fallback),
            },
            Reply::Error(error) => self.refused(now, at, fallback, ReceivedRefusal::decode(error)),
            Reply::Lost | Reply::Mute => self.not_registered(now, at, fallback),
        }
    }

    fn registered(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>, registered: RegistrationResult) {
        if let Some(old) = fallback {
            self.hang_up(old.link);
        }
        let membership = Membership {
            at,
            session: registered.session.clone(),
            parent_id: registered.aggregator_id,
            segment_length: registered.segment.as_str().len(),
            above: Ancestry::default(),
            heartbeats: BTreeSet::new(),
            told: KnownSubtree::all(self.settings.register.is_aggregator().then(|| self.subtree.clone())),
            withheld: 0,
            excused: false,
            own_id_above: 0,
            scouting: None,
        };
        self.cleaned = false;
        self.doubted.take_if(|(parent, _)| *parent == at.parent);
        let above = registered.above.clone();
        self.state = State::Registered(Box::new(membership));
        self.events.push_back(Event::Registered { parent: at.parent, link: at.link, registered: Box::new(registered) });
        if self.interval().is_zero() {
            self.attempts = 0;
        }
        self.take_above(above);
        self.plan_heartbeat(now);
        self.hear(now);
        if at.parent > 0 {
            self.return_later(now);
        } else {
            self.returns = 0;
        }
        self.tell_subtree(now);
    }

    /// Reacts to a refusal with a reason. A cycle unknown to the parent, even after a while, means that a node below lies or is late to
    /// notice.
    fn refused(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>, refused: ReceivedRefusal) {
        let own = self.settings.register.aggregator_id;
        if refused.is("registration_cycle") && !refused.below_you {
            if self.may_still_hear(now, at.parent) {
                return self.ask_again(now, at, fallback, refused);
            }
            self.unwanted = refused.ids.iter().copied().filter(|id| Some(*id) != own).collect();
            self.events.push_back(Event::Cycle { ids: self.unwanted.clone() });
        }
        let wait = refused.retry_after;
        self.events.push_back(Event::Refused { parent: at.parent, refused: Box::new(refused) });
        let removable = self.unwanted.iter().any(|id| self.subtree.contains(id));
        if removable && !std::mem::replace(&mut self.cleaned, true) {
            return self.try_cleaned(now, at, fallback);
        }
        if let Some(old) = fallback {
            self.hang_up(at.link);
            return self.register(now, old, None);
        }
        self.attempts += 1;
        let next = self.next_parent(at.parent);
        let link = if next == at.parent { Some(at.link) } else { None };
        if link.is_none() {
            self.hang_up(at.link);
        }
        // Only if there is nobody else to try is it worth to wait as long as this one says.
        let least = wait.filter(|_| self.settings.parents == 1).unwrap_or_default().min(self.settings.backoff_most());
        let wait = self.backoff().max(least);
        self.wait(now, next, link, wait);
    }

    /// Tells whether the parent may still learn of standing below this node: ancestry travels from gate to gate, with heartbeats. Until
    /// then nobody is put out on a suspicion.
    fn may_still_hear(&mut self, now: Now, parent: usize) -> bool {
        let (doubted, since) = *self.doubted.get_or_insert((parent, now.instant));
        if doubted != parent {
            self.doubted = Some((parent, now.instant));
            return !self.interval().is_zero();
        }
        now.instant < since + self.interval() * HEARING
    }

    /// Asks the same parent again after an interval, or the previous parent.
    fn ask_again(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>, refused: ReceivedRefusal) {
        self.events.push_back(Event::Refused { parent: at.parent, refused: Box::new(refused) });
        match fallback {
            Some(old) => {
                self.hang_up(at.link);
                self.register(now, old, None);
            }
            None => self.wait(now, at.parent, Some(at.link), self.interval()),
        }
    }

    /// Asks the same parent again after the sources of the unwanted ids are put out: no node below shall decide where this node may
    /// register.
    fn try_cleaned(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>) {
        if let Some(old) = fallback {
            self.hang_up(old.link);
        }
        self.attempts += 1;
        let pause = self.backoff();
        self.wait(now, at.parent, Some(at.link), pause);
    }

    /// Reacts to a missing or illegible answer. The parent may have registered this node all the same; closing the link ends such a
    /// registration.
    pub(super) fn not_registered(&mut self, now: Now, at: ParentLink, fallback: Option<ParentLink>) {
        self.timers.cancel(&Timer::Answer);
        self.hang_up(at.link);
        match fallback {
            Some(old) => self.register(now, old, None),
            None => self.try_next(now, at.parent),
        }
    }

    /// Tries the next parent: at once in the first round, later with a pause.
    pub(super) fn try_next(&mut self, now: Now, parent: usize) {
        self.timers.cancel(&Timer::Answer);
        self.attempts += 1;
        let next = self.next_parent(parent);
        let round = u32::try_from(self.settings.parents).unwrap_or(u32::MAX);
        let wait = if self.attempts.is_multiple_of(round.max(1)) { self.backoff() } else { Duration::ZERO };
        self.wait(now, next, None, wait);
    }

    pub(super) fn wait(&mut self, now: Now, parent: usize, link: Option<crate::id::LinkId>, time: Duration) {
        self.state = State::Waiting { parent, link };
        self.timers.set(Timer::Dial, now.instant + time);
    }

    pub(super) fn try_again(&mut self, now: Now) {
        self.timers.cancel(&Timer::Dial);
        match self.state {
            State::Waiting { parent, link: Some(link) } => self.register(now, ParentLink { parent, link }, None),
            State::Waiting { parent, link: None } => self.dial(now, parent),
            State::Dialling { .. } | State::Leaving { .. } | State::Registered(_) | State::Registering { .. } | State::Stopped => {}
        }
    }

    /// Reacts to an answer overdue.
    pub(super) fn answer_missing(&mut self, now: Now) {
        match self.state.clone() {
            State::Dialling { parent } => self.try_next(now, parent),
            State::Registering { at, fallback, .. } => self.not_registered(now, at, fallback),
            State::Leaving { from, then, .. } => self.left_unheard(now, from, then),
            State::Registered(_) | State::Stopped | State::Waiting { .. } => {}
        }
    }

    /// Gives a pause that grows with the attempts up to a bound, with jitter.
    pub(super) fn backoff(&mut self) -> Duration {
        // The bound on the shift keeps its result in range; the bound on the pause takes effect long before.
        let doubled = self.settings.backoff_least.saturating_mul(1 << self.attempts.min(16));
        let most = doubled.min(self.settings.backoff_most());
        self.random.between(most / 2, most)
    }

    fn next_parent(&self, parent: usize) -> usize {
        (parent + 1) % self.settings.parents.max(1)
    }
}
