//! A registration that is alive: heartbeats, what their answers say, and how it is noticed that the parent is gone. How to get
//! another one is not decided here.

use std::time::{Duration, Instant};

use banyan_model::Now;

use super::output::{Event, LostWhy};
use super::{Child, Membership, State, Timer};
use crate::id::CallId;
use crate::message::{Above, Alive, Heartbeat, Refused, Request};
use crate::refusal::Ended;
use crate::reply::Reply;

/// How much later than it asked the machine may be called before it takes itself, and not its parent, for the one that slept.
const OVERSLEPT: Duration = Duration::from_secs(1);

/// How many heartbeats are waited for at most.
const UNANSWERED: usize = 8;

impl Child {
    /// The next heartbeat goes out well within the interval, and not when everybody else's does.
    pub(super) fn plan_heartbeat(&mut self, now: Now) {
        let interval = self.interval();
        if !interval.is_zero() {
            let pause = self.random.between(interval / 2, interval * 3 / 4);
            self.timers.set(Timer::Heartbeat, now.instant + pause);
        }
    }

    /// The parent was heard of. It is given up after two intervals of silence: that leaves one of the three, after which it would
    /// give us up, to register elsewhere.
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

    /// Whoever was called much too late has slept, and the answers may be waiting: the parent gets one more interval, once.
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
                let refused = Refused::decode(error);
                if refused.is("unknown_session") {
                    return self.forgotten(now, membership, refused);
                }
                self.hear(now);
                self.subtree_answered(now, call, Some(Err(refused)));
            }
            Reply::Result(result) => {
                self.hear(now);
                self.subtree_answered(now, call, Some(Ok(())));
                if let (true, Ok(alive)) = (heartbeat, Alive::decode(result)) {
                    self.alive(now, alive);
                }
            }
        }
    }

    fn alive(&mut self, now: Now, alive: Alive) {
        self.attempts = 0;
        let State::Registered(membership) = &mut self.state else { return };
        if std::mem::replace(&mut membership.withheld, alive.withheld) != alive.withheld {
            self.events.push_back(Event::Withheld(alive.withheld));
        }
        self.take_above(alive.above);
        self.leave_own_lineage(now);
    }

    /// What stands above the parent, seen from here.
    pub(super) fn take_above(&mut self, mut above: Above) {
        let State::Registered(membership) = &mut self.state else { return };
        above.prefix_length += membership.segment_length + 1;
        if membership.above != above {
            membership.above = above.clone();
            self.events.push_back(Event::Above(above));
        }
    }

    /// Its own id above it twice in a row: it is in a cycle that nobody has broken, and so does it.
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

    /// The parent does not know the session: it restarted, or ended it. Then it registers anew at once, over the same link, unless the
    /// session ended for what would end the next one too, or it was forgotten right away. Where the session brought a cycle, the answer to the
    /// next registration says through whom.
    fn forgotten(&mut self, now: Now, membership: &Membership, refused: Refused) {
        let at_fault = refused.ended == Some(Ended::DottedName);
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

    /// The parent is given up, with its link. The next one is tried soon, but not by everybody at once.
    pub(super) fn lose(&mut self, now: Now, membership: &Membership, why: LostWhy) {
        let at = membership.at;
        self.gone(membership, why);
        self.hang_up(at.link);
        let next = if why == LostWhy::LinkLost { at.parent } else { (at.parent + 1) % self.settings.parents.max(1) };
        let spread = if why == LostWhy::Cycle { self.backoff() } else { self.random.between(Duration::ZERO, self.settings.backoff_least) };
        self.wait(now, next, None, spread);
    }

    /// It is registered no more.
    pub(super) fn gone(&mut self, membership: &Membership, why: LostWhy) {
        for timer in [Timer::Heartbeat, Timer::Return, Timer::Silence] {
            self.timers.cancel(&timer);
        }
        self.events.push_back(Event::Lost { parent: membership.at.parent, why });
        self.events.push_back(Event::Above(Above::default()));
    }
}
