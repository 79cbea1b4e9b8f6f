//! Life of a registration: heartbeats, their answers, and signs of a lost parent. Finds no new parent.

use std::time::{Duration, Instant};

use banyan_model::Now;

use super::output::{Event, LostWhy};
use super::{Child, Membership, State, Timer};
use crate::id::CallId;
use crate::message::{Ancestry, Heartbeat, HeartbeatAnswer, ReceivedRefusal, Request};
use crate::refusal::SessionEnd;
use crate::reply::Reply;

/// Lateness of a timer beyond which the machine blames its own sleep instead of the parent.
const OVERSLEPT: Duration = Duration::from_secs(1);

/// Most heartbeats awaited.
const UNANSWERED: usize = 8;

impl Child {
    /// Plans the next heartbeat well within the interval, and not in step with others.
    pub(super) fn plan_heartbeat(&mut self, now: Now) {
        let interval = self.interval();
        if !interval.is_zero() {
            let pause = self.random.between(interval / 2, interval * 3 / 4);
            self.timers.set(Timer::Heartbeat, now.instant + pause);
        }
    }

    /// Notes a sign of the parent. After two intervals of silence the parent is given up, which leaves one of the three intervals before
    /// the parent would give up this node, for registering elsewhere.
    pub(super) fn hear(&mut self, now: Now) {
        let interval = self.interval();
        if let State::Registered(membership) = &mut self.state {
            membership.excused = false;
            if !interval.is_zero() {
                self.timers.set(Timer::Silence, now.instant + interval * 2);
            }
        }
    }

    pub(super) fn beat(&mut self, now: Now) {
        let State::Registered(membership) = &self.state else { return };
        let (link, session) = (membership.at.link, membership.session.clone());
        let call = self.request(link, &Request::Heartbeat(Heartbeat { session }));
        if let State::Registered(membership) = &mut self.state {
            membership.heartbeats.insert(call);
            if membership.heartbeats.len() > UNANSWERED {
                membership.heartbeats.pop_first();
            }
        }
        self.plan_heartbeat(now);
        self.give_up_telling(now);
        self.tell_subtree(now);
    }

    /// Reacts to silence. A machine woken much too late has slept, and answers may be waiting: so the parent gets one more interval, once.
    pub(super) fn silence(&mut self, now: Now, due: Instant) {
        let State::Registered(membership) = &mut self.state else { return };
        if due + OVERSLEPT < now.instant && !std::mem::replace(&mut membership.excused, true) {
            self.timers.set(Timer::Silence, now.instant + self.interval());
            return self.beat(now);
        }
        let membership = membership.clone();
        self.lose(now, &membership, LostWhy::Silent);
    }

    pub(super) fn membership_answered(&mut self, now: Now, membership: &Membership, call: CallId, reply: Reply<'_>) {
        let (heartbeat, subtree) = (membership.heartbeats.contains(&call), membership.told.is_asked(call));
        if !heartbeat && !subtree {
            return;
        }
        if let State::Registered(membership) = &mut self.state {
            membership.heartbeats.remove(&call);
        }
        match reply {
            Reply::Lost | Reply::Mute => self.subtree_answered(now, call, None),
            Reply::Error(error) => {
                let refused = ReceivedRefusal::decode(error);
                if refused.is("unknown_session") {
                    return self.forgotten(now, membership, refused);
                }
                self.hear(now);
                self.subtree_answered(now, call, Some(Err(refused)));
            }
            Reply::Result(result) => {
                self.hear(now);
                self.subtree_answered(now, call, Some(Ok(())));
                if let (true, Ok(alive)) = (heartbeat, HeartbeatAnswer::decode(result)) {
                    self.alive(now, alive);
                }
            }
        }
    }

    fn alive(&mut self, now: Now, alive: HeartbeatAnswer) {
        self.attempts = 0;
        let State::Registered(membership) = &mut self.state else { return };
        if std::mem::replace(&mut membership.withheld, alive.withheld) != alive.withheld {
            self.events.push_back(Event::Withheld(alive.withheld));
        }
        self.take_above(alive.above);
        self.leave_own_lineage(now);
    }

    /// Takes the parent's ancestry, seen from here.
    pub(super) fn take_above(&mut self, mut above: Ancestry) {
        let State::Registered(membership) = &mut self.state else { return };
        above.prefix_length += membership.segment_length + 1;
        if membership.above != above {
            membership.above = above.clone();
            self.events.push_back(Event::Above(above));
        }
    }

    /// Leaves after the second answer in a row with the own id among the ancestors: the node is in an unbroken cycle.
    fn leave_own_lineage(&mut self, now: Now) {
        let own = self.settings.register.aggregator_id;
        let State::Registered(membership) = &mut self.state else { return };
        let inside = own.is_some_and(|own| membership.above.ancestors.contains(&own));
        membership.own_id_above = if inside { membership.own_id_above + 1 } else { 0 };
        if membership.own_id_above >= 2 {
            let membership = membership.clone();
            self.attempts += 1;
            self.lose(now, &membership, LostWhy::Cycle);
        }
    }

    /// Reacts to a session unknown to the parent, which restarted or ended the session. Registers anew at once over the same link, unless
    /// the old session ended for a lasting reason, or was forgotten right away. After a cycle the answer to the next registration names the
    /// source.
    fn forgotten(&mut self, now: Now, membership: &Membership, refused: ReceivedRefusal) {
        let at_fault = refused.ended == Some(SessionEnd::DottedName);
        let at = membership.at;
        self.gone(membership, LostWhy::Forgotten);
        if !at_fault && self.attempts == 0 {
            self.attempts = 1;
            return self.register(now, at, None);
        }
        self.attempts += 1;
        self.events.push_back(Event::Refused { parent: at.parent, refused: Box::new(refused) });
        let wait = self.backoff();
        self.wait(now, at.parent, Some(at.link), wait);
    }

    /// Gives up the parent, with the link. The next attempt follows soon, but not in step with others.
    pub(super) fn lose(&mut self, now: Now, membership: &Membership, why: LostWhy) {
        let at = membership.at;
        self.gone(membership, why);
        self.hang_up(at.link);
        // The parent of a broken link may be well: only a parent that failed otherwise is passed over.
        let next = if why == LostWhy::LinkLost { at.parent } else { (at.parent + 1) % self.settings.parents.max(1) };
        let spread = if why == LostWhy::Cycle { self.backoff() } else { self.random.between(Duration::ZERO, self.settings.backoff_least) };
        self.wait(now, next, None, spread);
    }

    /// Ends the registration.
    pub(super) fn gone(&mut self, membership: &Membership, why: LostWhy) {
        for timer in [Timer::Heartbeat, Timer::Return, Timer::Silence] {
            self.timers.cancel(&timer);
        }
        self.events.push_back(Event::Lost { parent: membership.at.parent, why });
        self.events.push_back(Event::Above(Ancestry::default()));
    }
}
