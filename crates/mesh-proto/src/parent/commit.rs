//! A registration takes effect, and takes over the subserver's earlier holdings in one step. Asks no permission.

use banyan_model::Now;

use super::output::Event;
use super::queue::Applicant;
use super::session::{Session, Standing};
use super::settings::Demand;
use super::{Claim, Parent, Timer};
use crate::annotation::AuthScope;
use crate::id::{SessionId, SessionKey};
use crate::message::{Ancestry, RegistrationResult};
use crate::namespace::Presence;
use crate::refusal::SessionEnd;

impl Parent {
    pub(super) fn commit(&mut self, now: Now, applicant: Applicant) {
        self.take_over(now, &applicant);
        let (link, request) = (applicant.link, applicant.request);
        let session = self.session_of(now, applicant);
        let (key, segment, subserver_id) = (session.key, session.segment.clone(), session.subserver_id);
        let result = RegistrationResult {
            segment: segment.clone(),
            session: session.id.clone(),
            deadline: session.interval * 3,
            budget: self.settings.budget,
            aggregator_id: Some(self.settings.aggregator_id),
            above: self.shown_above(),
        };
        if !session.interval.is_zero() {
            self.timers.set(Timer::Heartbeat(key), now.instant + session.interval * 3);
        }
        self.subtree_changed |= self.below.add(session.subtree.iter().flatten());
        let lists = session.capabilities.tools;
        self.claim(&session, Demand::Always);
        self.sessions.insert(session);
        self.answer(link, request, Ok(result.encode()));
        self.events.push_back(Event::Registered { session: key, subserver_id, segment: segment.clone() });
        if lists {
            self.want_list(now, key);
        } else {
            self.timers.cancel(&Timer::Grace(segment.clone()));
            self.remove_part(&segment);
        }
    }

    /// Gives the ancestry of registrations here.
    pub(super) fn shown_above(&self) -> Ancestry {
        let own = self.settings.aggregator_id;
        // In a cycle that has not been broken yet the list would grow with every heartbeat.
        let ancestors = std::iter::once(own).chain(self.above.ancestors.iter().copied().take_while(|id| *id != own));
        let most = crate::message::MAX_ANCESTORS;
        Ancestry { ancestors: ancestors.take(most).collect(), prefix_length: self.above.prefix_length }
    }

    /// Enters a claim if the policy of the segment wants claims for `kind` of namespaces, unless the operator has released the segment since
    /// the registration.
    pub(super) fn claim(&mut self, session: &Session, kind: Demand) {
        if session.released {
            return;
        }
        let wanted = self.settings.policy(&session.segment).sticky == kind && (session.proven || kind == Demand::Always);
        let Some(authority) = session.authority.clone().filter(|_| wanted) else { return };
        let claim = Claim { segment: session.segment.clone(), authority, proven: session.proven, subserver_id: session.subserver_id };
        if self.claims.enter(claim.clone()) {
            self.events.push_back(Event::ClaimMade(claim));
        }
    }

    fn session_of(&mut self, now: Now, applicant: Applicant) -> Session {
        self.counted += 1;
        let proven = Self::is_proven(&applicant);
        let register = *applicant.register;
        let asked_scope = register.auth_scope.unwrap_or(AuthScope::Admin);
        let most_scope = self.settings.policy(&register.segment).most_scope;
        Session {
            key: SessionKey(self.counted),
            subserver_id: register.subserver_id,
            aggregator_id: register.aggregator_id,
            segment: register.segment,
            link: applicant.link,
            url: register.url,
            principal: applicant.identity.principal,
            authority: register.authority,
            proven,
            capabilities: register.capabilities,
            auth_scope: asked_scope.min(most_scope),
            asked_scope,
            transport: register.transport,
            interval: register.heartbeat_interval,
            subtree: register.subtree,
            backup: register.backup,
            registered_at: now.instant,
            heard_at: now.instant,
            standing: Standing::Live,
            id: SessionId::of_bits(self.random.bits()),
            subtree_version: 0,
            excused: false,
            released: false,
        }
    }

    /// Ends the sessions replaced by an applicant. The segment's tools stay listed as degraded until the new list is there: nobody sees a
    /// moment without tools, and nobody calls by an old definition.
    fn take_over(&mut self, now: Now, applicant: &Applicant) {
        let register = &applicant.register;
        let holders = [self.sessions.of_segment(register.segment.as_str()), self.sessions.of_subserver(register.subserver_id)];
        let keys: Vec<SessionKey> = holders.into_iter().flatten().map(|session| session.key).collect();
        for key in keys {
            let Some(old) = self.detach(key, SessionEnd::Replaced) else { continue };
            if old.segment != register.segment {
                self.remove_part(&old.segment);
                self.timers.cancel(&Timer::Grace(old.segment.clone()));
            } else {
                self.hold_part(&old.segment, Presence::Degraded { since: now.instant, why: SessionEnd::Replaced });
                self.end_with_grace(now, old.segment.clone());
            }
            self.events.push_back(Event::Ended { session: key, segment: old.segment, why: SessionEnd::Replaced });
        }
    }
}
