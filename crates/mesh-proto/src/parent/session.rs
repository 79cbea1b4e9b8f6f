//! One registration, and all of them with the ways to find one. What ends a session is not decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::Segment;

use crate::annotation::{AuthScope, Transport};
use crate::authority::Authority;
use crate::id::{LinkId, NodeId, SessionId, SessionKey};
use crate::message::Capabilities;
use crate::refusal::Ended;

/// Whether the subserver of a session is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Live,
    /// It is not; its segment is kept for it for a while.
    Lost {
        /// Since when.
        since: Instant,
        /// Why.
        why: Ended,
    },
}

/// One registration.
#[derive(Debug, Clone)]
pub struct Session {
    /// As the aggregator counts it.
    pub key: SessionKey,
    /// Who registered.
    pub subserver_id: NodeId,
    /// Its id as an aggregator, where it is one and says so.
    pub aggregator_id: Option<NodeId>,
    /// What it holds.
    pub segment: Segment,
    /// The link on which it is held.
    pub link: LinkId,
    /// Where it may be dialled.
    pub url: Option<String>,
    /// By what name the peer is known.
    pub principal: Arc<str>,
    /// Who it says it is.
    pub authority: Option<Authority>,
    /// Whether it has proved that.
    pub proven: bool,
    /// What it has.
    pub capabilities: Capabilities,
    /// What may be asked of it.
    pub auth_scope: AuthScope,
    /// How it is reached.
    pub transport: Transport,
    /// How often it sends heartbeats; zero: never.
    pub interval: Duration,
    /// The aggregators below and itself; `None` of a plain subserver.
    pub subtree: Option<BTreeSet<NodeId>>,
    /// Whether it is here only while a parent that it prefers is not.
    pub backup: bool,
    /// When it registered.
    pub registered_at: Instant,
    /// When it was last heard of.
    pub heard_at: Instant,
    /// Whether it is there.
    pub standing: Standing,
    pub(super) id: SessionId,
    /// Its place among all who registered.
    pub(super) order: u64,
    pub(super) subtree_version: u64,
    /// Whether a heartbeat that seemed to be missed was excused since it was last heard of.
    pub(super) excused: bool,
}

impl Session {
    /// Whether the subserver is there.
    pub fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }
}

/// All the sessions of an aggregator. One subserver has one at most, and so has one segment.
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
    pub(super) fn lose(&mut self, key: SessionKey, since: Instant, why: Ended) -> Option<&Session> {
        let session = self.by_key.get_mut(&key).filter(|session| session.is_live())?;
        session.standing = Standing::Lost { since, why };
        self.by_id.remove(&session.id);
        self.by_link.remove(&(session.link, key));
        Some(session)
    }

    pub(super) fn get(&self, key: SessionKey) -> Option<&Session> {
        self.by_key.get(&key)
    }

    /// The session if its subserver is there.
    pub(super) fn live(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.by_key.get_mut(&key).filter(|session| session.is_live())
    }

    /// The live session of this name, if whoever names it is on its link.
    pub(super) fn spoken_for(&self, id: &SessionId, link: LinkId) -> Option<SessionKey> {
        let key = *self.by_id.get(id)?;
        self.by_link.contains(&(link, key)).then_some(key)
    }

    pub(super) fn of_segment(&self, segment: &str) -> Option<&Session> {
        self.get(*self.by_segment.get(segment)?)
    }

    pub(super) fn of_subserver(&self, id: NodeId) -> Option<&Session> {
        self.get(*self.by_subserver.get(&id)?)
    }

    /// The live sessions on a link.
    pub(super) fn of_link(&self, link: LinkId) -> Vec<SessionKey> {
        let range = (link, SessionKey(0))..=(link, SessionKey(u64::MAX));
        self.by_link.range(range).map(|(_, key)| *key).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// All of them, by segment.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_segment.values().filter_map(|key| self.by_key.get(key))
    }
}
