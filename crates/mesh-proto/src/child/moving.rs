//! Voluntary moves: to a preferred parent, or out of the tree. The machine lets go before taking hold elsewhere, never the other way round
//! (AX-25).

use banyan_model::Now;

use super::output::{Event, LostWhy, Transmit};
use super::{Child, ParentLink, State, Then, Timer};
use crate::message::{Deregister, Request};

impl Child {
    /// Leaves the tree.
    pub fn stop(&mut self, now: Now) {
        match self.state.clone() {
            State::Registered(membership) => {
                let call = self.deregister(now, membership.at, membership.session.clone());
                self.gone(&membership, LostWhy::Stopped);
                self.state = State::Leaving { from: membership.at, call, then: Then::Stop };
            }
            State::Leaving { from, call, then } => {
                if let Then::Register(next) = then
                    && next != from
                {
                    self.hang_up(next.link);
                }
                self.state = State::Leaving { from, call, then: Then::Stop };
            }
            State::Registering { at, fallback, .. } => {
                for place in [Some(at), fallback].into_iter().flatten() {
                    self.hang_up(place.link);
                }
                self.stopped();
            }
            State::Waiting { link, .. } => {
                if let Some(link) = link {
                    self.hang_up(link);
                }
                self.stopped();
            }
            State::Dialling { .. } | State::Stopped => self.stopped(),
        }
    }

    /// Plans the next try of a preferred parent, later after each failure.
    pub(super) fn return_later(&mut self, now: Now) {
        let State::Registered(membership) = &mut self.state else { return };
        membership.scouting = None;
        let pause = self.settings.return_after.saturating_mul(1 << self.returns.min(5));
        self.returns += 1;
        let pause = self.random.between(pause / 2, pause);
        self.timers.set(Timer::Return, now.instant + pause);
    }

    /// Dials a preferred parent while staying registered.
    pub(super) fn scout(&mut self, now: Now) {
        let State::Registered(membership) = &mut self.state else { return };
        if membership.scouting.is_some() || membership.at.parent == 0 {
            return self.return_later(now);
        }
        // Tries the preferred parents in turn, lest a dead one hide the others.
        let parent = usize::try_from(self.returns).unwrap_or_default() % membership.at.parent;
        membership.scouting = Some(parent);
        self.transmits.push_back(Transmit::Dial { parent });
        self.timers.set(Timer::Return, now.instant + self.settings.answer_timeout());
    }

    /// Leaves for a preferred parent within reach: gives up this registration, then asks there.
    pub(super) fn leave_for(&mut self, now: Now, next: ParentLink) {
        let State::Registered(membership) = self.state.clone() else { return };
        let call = self.deregister(now, membership.at, membership.session.clone());
        self.gone(&membership, LostWhy::Leaving);
        self.state = State::Leaving { from: membership.at, call, then: Then::Register(next) };
    }

    /// Goes on after the parent's answer to the farewell.
    pub(super) fn left(&mut self, now: Now, from: ParentLink, then: Then) {
        self.timers.cancel(&Timer::Answer);
        match then {
            Then::Register(next) => self.register(now, next, (next != from).then_some(from)),
            Then::Stop => {
                self.hang_up(from.link);
                self.stopped();
            }
        }
    }

    /// Goes on without an answer to the farewell. The parent lets go once the link is gone; until then there is no way back.
    pub(super) fn left_unheard(&mut self, now: Now, from: ParentLink, then: Then) {
        self.hang_up(from.link);
        self.left_without_link(now, from, then);
    }

    /// Goes on without a link to the previous parent.
    pub(super) fn left_without_link(&mut self, now: Now, from: ParentLink, then: Then) {
        self.timers.cancel(&Timer::Answer);
        match then {
            Then::Register(next) if next != from => self.register(now, next, None),
            Then::Register(_) => self.try_next(now, from.parent),
            Then::Stop => self.stopped(),
        }
    }

    fn deregister(&mut self, now: Now, at: ParentLink, session: crate::id::SessionId) -> crate::id::CallId {
        self.timers.set(Timer::Answer, now.instant + self.settings.answer_timeout());
        self.request(at.link, &Request::Deregister(Deregister { session }))
    }

    fn stopped(&mut self) {
        for timer in [Timer::Answer, Timer::Dial, Timer::Heartbeat, Timer::Return, Timer::Silence] {
            self.timers.cancel(&timer);
        }
        self.state = State::Stopped;
        self.events.push_back(Event::Stopped);
    }
}
