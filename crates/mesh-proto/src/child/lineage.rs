//! Announcement of the aggregators below to the parent (AX-24): one change at a time, and the whole set after a failure. The aggregator
//! machine, not this module, knows the set.

use std::collections::BTreeSet;
use std::time::Instant;

use banyan_model::Now;

use super::output::Event;
use super::{Child, State};
use crate::id::{CallId, NodeId};
use crate::message::{ReceivedRefusal, Request, Subtree, SubtreeChange};

/// A change without an answer yet.
#[derive(Debug, Clone)]
struct PendingChange {
    call: CallId,
    ids: BTreeSet<NodeId>,
    at: Instant,
}

/// Subtree as known to the parent.
#[derive(Debug, Clone)]
pub(super) struct KnownSubtree {
    /// Set accepted last; `None`: unknown, so that the whole set has to be sent.
    taken: Option<BTreeSet<NodeId>>,
    version: u64,
    asked: Option<PendingChange>,
    /// Set refused by the parent: sending the same again would be futile.
    refused: Option<BTreeSet<NodeId>>,
}

impl KnownSubtree {
    /// Begins with the set of the registration.
    pub(super) fn all(ids: Option<BTreeSet<NodeId>>) -> Self {
        Self { taken: ids, version: 0, asked: None, refused: None }
    }

    pub(super) fn is_asked(&self, call: CallId) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.call == call)
    }

    /// Gives the change that would bring the parent to `ids`; `None`: no need, or a change is under way.
    fn change(&self, ids: &BTreeSet<NodeId>) -> Option<SubtreeChange> {
        if self.asked.is_some() || self.refused.as_ref() == Some(ids) {
            return None;
        }
        match &self.taken {
            None => Some(SubtreeChange::All(ids.clone())),
            Some(taken) if taken == ids => None,
            Some(taken) => {
                let (joined, left) = (ids.difference(taken).copied().collect(), taken.difference(ids).copied().collect());
                Some(SubtreeChange::Step { joined, left })
            }
        }
    }
}

impl Child {
    /// Takes the ids of the aggregators below, and the own id. Without effect for a plain subserver. If these ids lack the reason of a
    /// refusal, registers at once, before their source can bring them back.
    pub fn handle_subtree(&mut self, now: Now, ids: BTreeSet<NodeId>) {
        if !self.settings.register.is_aggregator() {
            return;
        }
        self.subtree = ids;
        self.tell_subtree(now);
        let rid = !self.unwanted.is_empty() && self.unwanted.iter().all(|id| !self.subtree.contains(id));
        if rid && matches!(self.state, State::Waiting { .. }) {
            self.unwanted.clear();
            self.try_again(now);
        }
    }

    pub(super) fn tell_subtree(&mut self, now: Now) {
        let State::Registered(membership) = &mut self.state else { return };
        if !self.settings.register.is_aggregator() {
            return;
        }
        let Some(change) = membership.told.change(&self.subtree) else { return };
        membership.told.version += 1;
        let (link, session, version) = (membership.at.link, membership.session.clone(), membership.told.version);
        let call = self.request(link, &Request::Subtree(Subtree { session, version, change }));
        if let State::Registered(membership) = &mut self.state {
            membership.told.asked = Some(PendingChange { call, ids: self.subtree.clone(), at: now.instant });
        }
    }

    /// Takes a change without an answer within an interval for lost.
    pub(super) fn give_up_telling(&mut self, now: Now) {
        let interval = self.interval();
        let State::Registered(membership) = &mut self.state else { return };
        if membership.told.asked.take_if(|asked| now.instant >= asked.at + interval).is_some() {
            membership.told.taken = None;
        }
    }

    /// Takes the answer to a change. After a refusal or silence the whole set is sent with the next heartbeat.
    pub(super) fn subtree_answered(&mut self, now: Now, call: CallId, answer: Option<Result<(), ReceivedRefusal>>) {
        let State::Registered(membership) = &mut self.state else { return };
        let Some(PendingChange { ids: sent, .. }) = membership.told.asked.take_if(|asked| asked.call == call) else { return };
        match answer {
            Some(Ok(())) => {
                membership.told.taken = Some(sent);
                membership.told.refused = None;
                self.tell_subtree(now);
            }
            Some(Err(refused)) => {
                membership.told.taken = None;
                if refused.is("subtree_out_of_step") {
                    return self.tell_subtree(now);
                }
                membership.told.refused = Some(sent);
                if refused.is("registration_cycle") {
                    let own = self.settings.register.aggregator_id;
                    let ids = refused.ids.into_iter().filter(|id| Some(*id) != own).collect();
                    self.events.push_back(Event::Cycle { ids });
                }
            }
            None => membership.told.taken = None,
        }
    }
}
