//! A registration, and the index of all registrations. Does not end sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::Segment;

use crate::annotation::{AuthScope, Transport};
use crate::authority::Authority;
use crate::id::{LinkId, NodeId, SessionId, SessionKey};
use crate::message::Capabilities;
use crate::refusal::SessionEnd;

/// Presence of a session's subserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Live,
    /// The segment is kept for a while.
    Lost {
        since: Instant,
        why: SessionEnd,
    },
}

/// A registration.
#[derive(Debug, Clone)]
pub struct Session {
    pub key: SessionKey,
    pub subserver_id: NodeId,
    /// The id as an aggregator, where there is one.
    pub aggregator_id: Option<NodeId>,
    pub segment: Segment,
    pub link: LinkId,
    /// Address for connections from here.
    pub url: Option<String>,
    pub principal: Arc<str>,
    /// Alleged authority.
    pub authority: Option<Authority>,
    /// The authority is proved.
    pub proven: bool,
    pub capabilities: Capabilities,
    /// Permission for calls of the subserver: as it asked, and no more than the policy of its segment.
    pub auth_scope: AuthScope,
    /// Permission that the subserver asked for.
    pub(super) asked_scope: AuthScope,
    pub transport: Transport,
    /// Interval of heartbeats; zero: none.
    pub interval: Duration,
    /// Ids of the aggregators below and the own id; `None`: a plain subserver.
    pub subtree: Option<BTreeSet<NodeId>>,
    /// A preferred parent is out of reach of the subserver.
    pub backup: bool,
    pub registered_at: Instant,
    /// Time of the last sign of life.
    pub heard_at: Instant,
    pub standing: Standing,
    pub(super) id: SessionId,
    pub(super) subtree_version: u64,
    /// A missed heartbeat was excused since the last sign of life.
    pub(super) excused: bool,
    /// The operator has released the segment: the session makes no further claim.
    pub(super) released: bool,
}

impl Session {
    /// Tells whether the subserver is present.
    pub fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }
}

/// All sessions of an aggregator: at most one for each subserver and each segment.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_key: BTreeMap<SessionKey, Session>,
    by_id: BTreeMap<SessionId, SessionKey>,
    by_link: BTreeSet<(LinkId, SessionKey)>,
    by_segment: BTreeMap<Segment, SessionKey>,
    by_subserver: BTreeMap<NodeId, SessionKey>,
}

impl Sessions {
    pub(super) fn insert(&mut self, session: Session) {
        let key = session.key;
        self.by_id.insert(session.id.clone(), key);
        self.by_link.insert((session.link, key));
        self.by_segment.insert(session.segment.clone(), key);
        self.by_subserver.insert(session.subserver_id, key);
        self.by_key.insert(key, session);
    }

    pub(super) fn remove(&mut self, key: SessionKey) -> Option<Session> {
        let session = self.by_key.remove(&key)?;
        self.by_id.remove(&session.id);
        self.by_link.remove(&(session.link, key));
        self.by_segment.remove(&session.segment);
        self.by_subserver.remove(&session.subserver_id);
        Some(session)
    }

    /// Marks a session as lost: nobody speaks for it any more.
    pub(super) fn lose(&mut self, key: SessionKey, since: Instant, why: SessionEnd) -> Option<&Session> {
        let session = self.by_key.get_mut(&key).filter(|session| session.is_live())?;
        session.standing = Standing::Lost { since, why };
        self.by_id.remove(&session.id);
        self.by_link.remove(&(session.link, key));
        Some(session)
    }

    pub(super) fn get(&self, key: SessionKey) -> Option<&Session> {
        self.by_key.get(&key)
    }

    /// Gives the session of a present subserver.
    pub(super) fn live(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.by_key.get_mut(&key).filter(|session| session.is_live())
    }

    /// Finds the live session of this name on this link.
    pub(super) fn spoken_for(&self, id: &SessionId, link: LinkId) -> Option<SessionKey> {
        let key = *self.by_id.get(id)?;
        self.by_link.contains(&(link, key)).then_some(key)
    }

    /// Ends the claims of a segment's present holder.
    pub(super) fn release(&mut self, segment: &Segment) {
        if let Some(session) = self.by_segment.get(segment).and_then(|key| self.by_key.get_mut(key)) {
            session.released = true;
        }
    }

    pub(super) fn of_segment(&self, segment: &str) -> Option<&Session> {
        self.get(*self.by_segment.get(segment)?)
    }

    pub(super) fn of_subserver(&self, id: NodeId) -> Option<&Session> {
        self.get(*self.by_subserver.get(&id)?)
    }

    /// Lists the live sessions on a link.
    pub(super) fn of_link(&self, link: LinkId) -> Vec<SessionKey> {
        let range = (link, SessionKey(0))..=(link, SessionKey(u64::MAX));
        self.by_link.range(range).map(|(_, key)| *key).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Lists all sessions, by segment.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_segment.values().filter_map(|key| self.by_key.get(key))
    }
}
