//! Lists of subservers, and the time to fetch them (AX-26: for each session anew). The driver fetches; nothing is fetched here.

use std::sync::Arc;
use std::time::Duration;

use banyan_model::Now;

use super::output::Event;
use super::session::Session;
use super::settings::Demand;
use super::{Parent, Timer};
use crate::id::SessionKey;
use crate::namespace::{Limits, Offer, Part};
use crate::refusal::{Refusal, SessionEnd};

/// Pause before a failed fetch is repeated.
const AGAIN: Duration = Duration::from_secs(1);

impl Parent {
    /// Takes the complete list of a subserver. Lists of ended sessions are ignored.
    pub fn handle_tools(&mut self, now: Now, key: SessionKey, offers: Vec<Offer>) {
        self.fetched(now, key);
        let Some(session) = self.sessions.live(key) else { return };
        let (session, segment) = (session.clone(), session.segment.clone());
        match Part::new(segment.clone(), offers, &self.limits(&session)) {
            Ok(part) => {
                if part.tools().iter().any(|tool| tool.withheld().is_none() && tool.annotation().mutable) {
                    self.claim(&session, Demand::ForChanges);
                }
                self.timers.cancel(&Timer::Grace(segment));
                self.namespace = self.namespace.with(Arc::new(part));
                self.namespace_changed = true;
            }
            Err(Refusal::DottedName { .. }) => self.end_session(key, SessionEnd::DottedName),
            Err(_) => self.retry(now, key),
        }
    }

    /// Takes the failure of a fetch. What a subserver listed before stays degraded until it lists again, and no longer than the grace,
    /// whatever heartbeats come.
    pub fn handle_tools_failed(&mut self, now: Now, key: SessionKey) {
        self.fetched(now, key);
        self.degrade(now, key);
        self.retry(now, key);
    }

    /// Takes the news of a changed list.
    pub fn handle_list_changed(&mut self, now: Now, key: SessionKey) {
        self.want_list(now, key);
    }

    /// Gives the limits on a session's tools.
    pub(super) fn limits(&self, session: &Session) -> Limits {
        let demand = self.settings.policy(&session.segment).proof;
        Limits {
            dotted: session.subtree.is_some(),
            before: self.above.prefix_length + session.segment.as_str().len() + 1,
            unproven: !session.proven && demand != Demand::Never,
            scope: session.auth_scope,
        }
    }

    /// Counts the hidden tools of a session.
    pub(super) fn withheld(&self, key: SessionKey) -> u64 {
        let part = self.sessions.get(key).and_then(|session| self.namespace.part(session.segment.as_str()));
        part.map_or(0, |part| (part.tools().len() - part.listed() + part.refused().len()) as u64)
    }

    pub(super) fn want_list(&mut self, now: Now, key: SessionKey) {
        if self.sessions.live(key).is_some_and(|session| session.capabilities.tools) {
            self.fetches.want(key);
            self.start_fetches(now);
        }
    }

    fn retry(&mut self, now: Now, key: SessionKey) {
        if self.sessions.live(key).is_some() {
            self.timers.set(Timer::Refetch(key), now.instant + AGAIN);
        }
    }

    fn fetched(&mut self, now: Now, key: SessionKey) {
        self.timers.cancel(&Timer::Fetch(key));
        self.fetches.done(key);
        self.start_fetches(now);
    }

    fn start_fetches(&mut self, now: Now) {
        while let Some(key) = self.fetches.start() {
            let Some(link) = self.sessions.live(key).map(|session| session.link) else {
                self.fetches.forget(key);
                continue;
            };
            self.timers.set(Timer::Fetch(key), now.instant + self.settings.fetch_timeout);
            self.events.push_back(Event::FetchTools { session: key, link });
        }
    }
}
