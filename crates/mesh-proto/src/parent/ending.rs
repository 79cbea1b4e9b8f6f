//! Ends of sessions: lost with a grace, or at once (AX-22, AX-23, AX-60 to AX-62). Does not decide on an end.

use std::sync::Arc;

use banyan_model::{Now, Segment};

use super::output::Event;
use super::session::{Session, Standing};
use super::{Parent, Timer};
use crate::id::SessionKey;
use crate::namespace::Presence;
use crate::refusal::SessionEnd;

impl Parent {
    /// Loses a subserver. The tools stay listed as degraded until the end of the grace.
    pub(super) fn lose(&mut self, now: Now, key: SessionKey, why: SessionEnd) {
        let Some(session) = self.sessions.lose(key, now.instant, why) else { return };
        let (segment, id, subtree) = (session.segment.clone(), session.id.clone(), session.subtree.clone());
        self.ended.note(id, why);
        self.silence(key);
        self.subtree_changed |= self.below.remove(subtree.iter().flatten());
        self.events.push_back(Event::SubserverLost { session: key, segment: segment.clone(), why });
        self.hold_part(&segment, Presence::Degraded { since: now.instant, why });
        if self.settings.grace.is_zero() {
            return self.end_session(key, why);
        }
        // The segment is kept for it from now on; its tools no longer than since they were last there.
        self.timers.set(Timer::Forget(key), now.instant + self.settings.grace);
        self.end_with_grace(now, segment);
    }

    /// Degrades the tools of a present subserver that can't be reached.
    pub(super) fn degrade(&mut self, now: Now, key: SessionKey) {
        let Some(segment) = self.sessions.live(key).map(|session| session.segment.clone()) else { return };
        if self.namespace.part(segment.as_str()).is_none_or(|part| part.is_degraded()) {
            return;
        }
        self.events.push_back(Event::Unreachable { session: key, segment: segment.clone() });
        if self.settings.grace.is_zero() {
            return self.remove_part(&segment);
        }
        self.hold_part(&segment, Presence::Degraded { since: now.instant, why: SessionEnd::LinkLost });
        self.end_with_grace(now, segment);
    }

    /// Lets degraded tools go with the grace that runs, or with one that begins now.
    pub(super) fn end_with_grace(&mut self, now: Now, segment: Segment) {
        let grace = Timer::Grace(segment);
        if self.timers.at(&grace).is_none() {
            self.timers.set(grace, now.instant + self.settings.grace);
        }
    }

    /// Ends a session, and removes the tools at once.
    pub(super) fn end_session(&mut self, key: SessionKey, why: SessionEnd) {
        let Some(session) = self.detach(key, why) else { return };
        self.timers.cancel(&Timer::Grace(session.segment.clone()));
        self.remove_part(&session.segment);
        self.events.push_back(Event::Ended { session: key, segment: session.segment, why });
    }

    /// Ends the wait for a lost subserver.
    pub(super) fn forget(&mut self, key: SessionKey) {
        if let Some(Standing::Lost { why, .. }) = self.sessions.get(key).map(|session| session.standing) {
            self.end_session(key, why);
        }
    }

    /// Takes a session out; the tools are left to the caller.
    pub(super) fn detach(&mut self, key: SessionKey, why: SessionEnd) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        if session.is_live() {
            self.ended.note(session.id.clone(), why);
            self.subtree_changed |= self.below.remove(session.subtree.iter().flatten());
        }
        self.silence(key);
        Some(session)
    }

    /// Changes the presence of a part; a lost part keeps the time of its loss.
    pub(super) fn hold_part(&mut self, segment: &Segment, holding: Presence) {
        let Some(part) = self.namespace.part(segment.as_str()).filter(|part| !part.is_degraded()) else { return };
        self.namespace = self.namespace.with(Arc::new(part.held(holding)));
        self.namespace_changed = true;
    }

    pub(super) fn remove_part(&mut self, segment: &Segment) {
        if self.namespace.part(segment.as_str()).is_some() {
            self.namespace = self.namespace.without(segment.as_str());
            self.namespace_changed = true;
        }
    }

    fn silence(&mut self, key: SessionKey) {
        self.fetches.forget(key);
        for timer in [Timer::Fetch(key), Timer::Forget(key), Timer::Heartbeat(key), Timer::Refetch(key)] {
            self.timers.cancel(&timer);
        }
    }
}
