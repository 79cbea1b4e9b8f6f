//! Telling the parent which aggregators stand below, as that changes (AX-24): one change at a time, and everything anew when one
//! went wrong. Which they are is the aggregator machine's to know, not decided here.

use std::collections::BTreeSet;
use std::time::Instant;

use banyan_model::Now;

use super::output::Event;
use super::{Child, State};
use crate::id::{CallId, NodeId};
use crate::message::{Refused, Request, Subtree, SubtreeChange};

/// A change that is not answered yet.
#[derive(Debug, Clone)]
struct Asked {
    call: CallId,
    ids: BTreeSet<NodeId>,
    at: Instant,
}

/// What the parent knows.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// The set it took last; `None`: it is not known, so that everything has to be sent.
    taken: Option<BTreeSet<NodeId>>,
    version: u64,
    /// The set that was sent and is not answered yet.
    asked: Option<Asked>,
    /// The set that it refused: sending it again would lead nowhere.
    refused: Option<BTreeSet<NodeId>>,
}

impl Told {
    /// The parent knows this set from the registration.
    pub(super) fn all(ids: Option<BTreeSet<NodeId>>) -> Self {
        Self { taken: ids, version: 0, asked: None, refused: None }
    }

    pub(super) fn is_asked(&self, call: CallId) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.call == call)
    }

    /// What to send for the parent to know `ids`; `None` when it does, or is being told.
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
    /// The aggregators below, and this one, are these. Of no effect for a plain subserver. If that is what a registration was refused
    /// for, it registers at once: before whoever brought what is gone can bring it again.
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
            membership.told.asked = Some(Asked { call, ids: self.subtree.clone(), at: now.instant });
        }
    }

    /// A change that was not answered within an interval is taken for lost.
    pub(super) fn give_up_telling(&mut self, now: Now) {
        let interval = self.interval();
        let State::Registered(membership) = &mut self.state else { return };
        if membership.told.asked.take_if(|asked| now.instant >= asked.at + interval).is_some() {
            membership.told.taken = None;
        }
    }

    /// The parent took a change, refused it, or said nothing: then everything is sent anew, with the next heartbeat.
    pub(super) fn subtree_answered(&mut self, now: Now, call: CallId, answer: Option<Result<(), Refused>>) {
        let State::Registered(membership) = &mut self.state else { return };
        let Some(Asked { ids: sent, .. }) = membership.told.asked.take_if(|asked| asked.call == call) else { return };
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
