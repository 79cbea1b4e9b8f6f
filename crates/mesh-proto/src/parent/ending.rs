//! How sessions end: lost with a grace, or at once (AX-22, AX-23, AX-60 to AX-62). Why they do is decided elsewhere, not here.

use std::sync::Arc;

use banyan_model::{Now, Segment};

use super::output::Event;
use super::session::{Session, Standing};
use super::{Parent, Timer};
use crate::id::SessionKey;
use crate::namespace::Holding;
use crate::refusal::Ended;

impl Parent {
    /// A subserver is lost. What it lists stays, as degraded, until the grace is over.
    pub(super) fn lose(&mut self, now: Now, key: SessionKey, why: Ended) {
        let Some(session) = self.sessions.lose(key, now.instant, why) else { return };
        let (segment, id, subtree) = (session.segment.clone(), session.id.clone(), session.subtree.clone());
        self.ended.note(id, why);
        self.silence(key);
        self.subtree_changed |= self.below.remove(subtree.iter().flatten());
        self.events.push_back(Event::SubserverLost { session: key, segment: segment.clone(), why });
        self.hold_part(&segment, Holding::Degraded { since: now.instant, why });
        if self.settings.grace.is_zero() {
            return self.end(key, why);
        }
        // The segment is kept for it from now on; its tools no longer than since they were last there.
        self.timers.set(Timer::Forget(key), now.instant + self.settings.grace);
        if self.timers.at(&Timer::Grace(segment.clone())).is_none() {
            self.timers.set(Timer::Grace(segment), now.instant + self.settings.grace);
        }
    }

    /// A session is over, and what it lists goes at once.
    pub(super) fn end(&mut self, key: SessionKey, why: Ended) {
        let Some(session) = self.detach(key, why) else { return };
        self.timers.cancel(&Timer::Grace(session.segment.clone()));
        self.remove_part(&session.segment);
        self.events.push_back(Event::Ended { session: key, segment: session.segment, why });
    }

    /// A lost subserver did not come back in time.
    pub(super) fn forget(&mut self, key: SessionKey) {
        if let Some(Standing::Lost { why, .. }) = self.sessions.get(key).map(|session| session.standing) {
            self.end(key, why);
        }
    }

    /// Takes a session out; what it lists is the caller's to deal with.
    pub(super) fn detach(&mut self, key: SessionKey, why: Ended) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        if session.is_live() {
            self.ended.note(session.id.clone(), why);
            self.subtree_changed |= self.below.remove(session.subtree.iter().flatten());
        }
        self.silence(key);
        Some(session)
    }

    /// Changes whether a part is there; one that is lost stays lost since then.
    pub(super) fn hold_part(&mut self, segment: &Segment, holding: Holding) {
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
