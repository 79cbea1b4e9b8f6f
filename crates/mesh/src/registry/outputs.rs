//! Outputs of machine and relay, carried out: questions, answers, mounts, claims, notices. Decides nothing.

use std::sync::Arc;

use banyan_model::{Now, Segment};
use mesh_proto::id::{CallId, LinkId, SessionKey};
use mesh_proto::message::{Register, RegistrationResult};
use mesh_proto::parent::{Event, Transmit};
use mesh_proto::refusal::{Refusal, SessionEnd};
use mesh_proto::reply::Reply;
use store::ClaimChange;
use tokio::sync::oneshot;

use crate::registry::asking;
use crate::registry::driver::{AGAIN, ClaimPlace, PendingRequest, RegistryDriver};
use crate::registry::input::Input;
use crate::registry::links::{Ask, End};
use crate::registry::notices;
use crate::registry::recorded::{self, Whose, record};
use call::judge::policy::budget_of;

/// An answer, its receiver, and the session begun.
struct DueAnswer {
    reply: oneshot::Sender<Result<String, Refusal>>,
    answer: Result<String, Refusal>,
    began: Option<SessionKey>,
}

/// Claims and answers for the end of a turn.
#[derive(Default)]
pub struct Later {
    claims: Vec<ClaimChange>,
    answers: Vec<DueAnswer>,
}

impl RegistryDriver {
    /// Carries out an event of the machine, or keeps its work for later.
    pub fn event(&mut self, now: Now, event: Event) {
        match event {
            Event::ClaimMade(claim) => self.later.claims.push(ClaimChange::Made(claim)),
            Event::ClaimReleased(segment) => {
                recorded::released(&self.mesh, &segment);
                self.later.claims.push(ClaimChange::Released(segment));
            }
            Event::Ended { session, segment, why } => self.ended(session, &segment, why),
            Event::FetchTools { session, .. } => {
                if !self.machines.holdings.fetch(session) {
                    self.machines.parent.handle_tools_failed(now, session);
                }
            }
            Event::NamespaceChanged => self.machines.holdings.changed(),
            Event::Registered { session, segment, .. } => self.registered(session, segment),
            Event::SubserverLost { session, segment, why } => {
                tracing::warn!(%segment, why = why.as_str(), "a registered server is lost");
                self.gone(session, &segment, "lost", why.as_str());
                self.close_relays(&session, &segment);
                self.links.over(session);
                self.machines.holdings.lose(session, &self.machines.parent);
                notices::lost(&self.mesh, &segment, why);
            }
            Event::Unreachable { session, segment } => {
                let why = SessionEnd::LinkLost;
                tracing::warn!(%segment, "a registered server is not reached, though it may send heartbeats");
                self.gone(session, &segment, "lost", why.as_str());
                notices::lost(&self.mesh, &segment, why);
            }
            Event::SubtreeChanged => {
                self.mesh.registry.subtree.send_replace(self.machines.parent.subtree());
                self.machines.holdings.subtree_changed();
            }
        }
    }

    fn registered(&mut self, key: SessionKey, segment: Segment) {
        let Some(session) = self.machines.parent.session(key) else { return };
        let held = match self.links.find_end(session.link) {
            Some(End::Held(end)) => Some((end.url.clone(), Arc::clone(&end.pool))),
            Some(End::Dialled(_)) | None => None,
        };
        tracing::info!(%segment, principal = %session.principal, subserver = %session.subserver_id, "a server registered");
        let whose = Whose { principal: &session.principal, segment: &segment, subserver: session.subserver_id };
        record(&self.mesh, "registered", &whose, None);
        self.machines.holdings.begin(&self.mesh, session, held);
        self.open_relay(key, segment);
    }

    fn gone(&self, key: SessionKey, segment: &Segment, what: &str, why: &str) {
        if let Some((registration, _)) = self.machines.holdings.held(key) {
            let whose = Whose { principal: &registration.principal, segment, subserver: registration.subserver_id };
            record(&self.mesh, what, &whose, Some(why));
        }
    }

    fn ended(&mut self, key: SessionKey, segment: &Segment, why: SessionEnd) {
        tracing::info!(%segment, why = why.as_str(), "a registration ended");
        self.gone(key, segment, "ended", why.as_str());
        self.close_relays(&key, segment);
        self.links.over(key);
        let held = self.machines.holdings.held(key);
        if let Some((registration, dotted)) = held {
            // Its server is told with its next heartbeat, people at once.
            let refusal = match why {
                SessionEnd::DottedName => Some(Refusal::DottedName { name: dotted.unwrap_or_default() }),
                SessionEnd::Cycle => Some(Refusal::RegistrationCycle { ids: Vec::new(), below_you: false }),
                SessionEnd::Deregistered | SessionEnd::LinkLost | SessionEnd::NotAdmitted | SessionEnd::Replaced | SessionEnd::Silent => {
                    None
                }
            };
            if let Some(refusal) = refusal {
                let register = Register::plain(registration.subserver_id, segment.clone());
                self.mesh.registry.refused.note(&registration.principal, Some(&register), &refusal);
            }
        }
        match why {
            SessionEnd::Replaced => self.machines.holdings.replace(key, &self.machines.parent),
            SessionEnd::Cycle
            | SessionEnd::Deregistered
            | SessionEnd::DottedName
            | SessionEnd::LinkLost
            | SessionEnd::NotAdmitted
            | SessionEnd::Silent => {
                self.machines.holdings.end_session(key);
            }
        }
    }

    /// Hands an answer of the machine back, or sends its question over a link.
    pub fn transmit(&mut self, now: Now, transmit: Transmit) {
        match transmit {
            Transmit::Answer { link, request, answer } => {
                let Some(waiting) = self.waiting.remove(&request) else { return };
                let began = self.answered(link, &waiting, &answer);
                let answer = answer.map(|result| if began.is_some() { self.budgeted(&waiting.principal, result) } else { result });
                self.later.answers.push(DueAnswer { reply: waiting.reply, answer, began });
            }
            Transmit::Ask { link, call, params } => self.ask(now, link, call, params),
        }
    }

    /// Adds the spending limits of the registered server as a caller of this gate (AX-21).
    fn budgeted(&self, principal: &str, result: String) -> String {
        let budget = budget_of(&self.mesh.gate.config.load(), principal);
        RegistrationResult::decode(result.as_bytes()).map_or(result, |registered| RegistrationResult { budget, ..registered }.encode())
    }

    /// Follows up an answer to a registration; gives the session begun.
    fn answered(&mut self, link: LinkId, waiting: &PendingRequest, answer: &Result<String, Refusal>) -> Option<SessionKey> {
        let register = waiting.register.as_deref()?;
        match answer {
            Ok(result) => {
                let id = RegistrationResult::decode(result.as_bytes()).ok()?.session;
                let key = self.machines.parent.session_on(link, &id)?;
                self.links.began(key, id, link, Arc::clone(&waiting.principal));
                Some(key)
            }
            Err(refusal) => {
                tracing::warn!(segment = %register.segment, principal = %waiting.principal, %refusal, "a registration was refused");
                self.mesh.registry.refused.note(&waiting.principal, Some(register), refusal);
                let whose = Whose { principal: &waiting.principal, segment: &register.segment, subserver: register.subserver_id };
                record(&self.mesh, "refused", &whose, Some(refusal.error().message));
                self.links.left(link);
                None
            }
        }
    }

    fn ask(&mut self, now: Now, link: LinkId, call: CallId, params: String) {
        match self.links.find_end(link) {
            Some(End::Held(end)) => {
                let (reply, answer) = oneshot::channel();
                if end.asks.try_send(Ask { method: asking::METHOD, params, reply }).is_err() {
                    return self.machines.parent.handle_answer(now, call, Reply::Lost);
                }
                asking::wait(&self.mesh, call, answer);
            }
            Some(End::Dialled(dialled)) => asking::dial(&self.mesh, call, dialled, params),
            None => self.machines.parent.handle_answer(now, call, Reply::Lost),
        }
    }

    /// Stores claims, and only then answers: a promised segment survives any crash of this gate.
    pub fn finish(&mut self) {
        let Later { claims, answers } = std::mem::take(&mut self.later);
        let kept = match &self.claims {
            ClaimPlace::There(keeper) if !claims.is_empty() => keeper.keep(claims),
            ClaimPlace::There(_) | ClaimPlace::Nowhere(_) => return answers.into_iter().for_each(DueAnswer::send),
        };
        let mesh = Arc::clone(&self.mesh);
        tokio::spawn(async move {
            if kept.await.is_ok() {
                return answers.into_iter().for_each(DueAnswer::send);
            }
            for mut answered in answers {
                if let Some(session) = answered.began {
                    answered.answer = Err(Refusal::ClaimsUnavailable { retry_after: AGAIN });
                    mesh.registry.put(Input::Unkept(session)).await;
                }
                answered.send();
            }
        });
    }
}

impl DueAnswer {
    fn send(self) {
        // Whoever asked may have gone meanwhile.
        _ = self.reply.send(self.answer);
    }
}
