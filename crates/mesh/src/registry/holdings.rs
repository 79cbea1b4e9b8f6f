//! Everything registered servers hold, and bringing it into the tree: at once when it is quiet, and otherwise not more often than ten times
//! a second, so that a thousand registrations make a few new trees and not a thousand. What is held is not decided here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::Segment;
use config::resolved::{self, Remote, Transport};
use mesh_proto::id::SessionKey;
use mesh_proto::parent::{Parent, Session};
use url::Url;

use crate::mesh::Mesh;
use crate::registry::holding::{Fetched, Holding};
use call::tree::mount::{Mount, Phase, State};
use call::tree::registration::Registration;
use mcp::upstream::pool::Pool;

/// The least time between two new trees.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection and its first lists may take.
const START: Duration = Duration::from_secs(10);

/// Everything that is held, by segment.
pub struct Holdings {
    by_segment: BTreeMap<Segment, Holding>,
    segments: HashMap<SessionKey, Segment>,
    /// Segments whose sessions were replaced, which may have gone to another segment.
    replaced: Vec<(SessionKey, Segment)>,
    /// Segments that nobody holds any more and that are in the tree still.
    gone: BTreeSet<Segment>,
    /// When the tree was made last.
    published: Instant,
    is_changed: bool,
    is_subtree_changed: bool,
}

impl Holdings {
    /// Nothing is held; the tree was made just now.
    pub fn new(now: Instant) -> Self {
        Self {
            by_segment: BTreeMap::new(),
            segments: HashMap::new(),
            replaced: Vec::new(),
            gone: BTreeSet::new(),
            published: now,
            is_changed: false,
            is_subtree_changed: false,
        }
    }

    /// A session began; `held`: where its link leads, and the connections over it.
    pub fn begin(&mut self, mesh: &Arc<Mesh>, session: &Session, held: Option<(Url, Arc<Pool>)>) {
        let dialled = session.url.as_deref().and_then(|url| Url::parse(url).ok());
        let (url, pool) = match (dialled, held) {
            (Some(url), _) => (url, None),
            (None, Some((url, pool))) => (url, Some(pool)),
            (None, None) => return tracing::error!(segment = %session.segment, "a registration has neither a URL nor a link"),
        };
        // No credential of anybody goes to a server that only says where it is, but the certificate that is there for such servers.
        let (insecure, tls) = mesh.gate.config.load().registry.as_ref().map_or((false, None), |r| (r.insecure, r.tls.clone()));
        let tls = tls.filter(|_| url.scheme() == "https");
        let remote = Remote { url, headers: BTreeMap::new(), oauth: None, tls, insecure };
        let origin = format!("registered by {}", session.principal);
        let config = resolved::Mount {
            start_timeout: START,
            reached: session.transport.clone(),
            ..resolved::Mount::new(session.segment.clone(), Transport::Http(remote), origin)
        };
        let before = self.by_segment.remove(&session.segment);
        let new = Holding::begin(mesh, (config, pool), Registration::of(session), before.as_ref());
        if let Some(before) = before {
            self.segments.remove(&before.session);
            before.retire();
        }
        if !session.capabilities.tools {
            // The machine wants no list of it, but it may have resources and prompts.
            new.fetch();
        }
        self.gone.remove(&session.segment);
        self.segments.insert(session.key, session.segment.clone());
        self.by_segment.insert(session.segment.clone(), new);
        self.is_changed = true;
    }

    /// Lets the lists of a session be fetched; `false`: it holds nothing.
    pub fn fetch(&self, session: SessionKey) -> bool {
        let holding = self.segments.get(&session).and_then(|segment| self.by_segment.get(segment));
        holding.map(Holding::fetch).is_some()
    }

    /// The lists of a session were fetched.
    pub fn fetched(&mut self, session: SessionKey, fetched: Fetched) {
        match self.of(session) {
            Some(holding) => holding.take(Some(fetched)),
            None => drop(tokio::spawn(async move { fetched.instance.close().await })),
        }
        self.is_changed = true;
    }

    /// The lists of a session could not be fetched.
    pub fn failed(&mut self, session: SessionKey) {
        if let Some(holding) = self.of(session) {
            holding.take(None);
            self.is_changed = true;
        }
    }

    /// A session's server is lost. Its calls are refused from now on, whenever that is seen in the tree.
    pub fn lose(&mut self, session: SessionKey, parent: &Parent) {
        if let Some(holding) = self.of(session) {
            holding.lose(parent);
            self.is_changed = true;
        }
    }

    /// A session was replaced: it leaves what it held to the one that takes its place.
    pub fn replace(&mut self, session: SessionKey, parent: &Parent) {
        self.lose(session, parent);
        self.replaced.extend(self.segments.get(&session).map(|segment| (session, segment.clone())));
    }

    /// A session is over, and what it held goes.
    pub fn end(&mut self, session: SessionKey) {
        let Some(segment) = self.segments.get(&session).cloned() else { return };
        self.segments.remove(&session);
        if let Some(holding) = self.by_segment.remove(&segment) {
            holding.retire();
            self.gone.insert(segment);
            self.is_changed = true;
        }
    }

    /// The table of names changed.
    pub fn changed(&mut self) {
        self.is_changed = true;
    }

    /// The gates below changed: those above learn of it with their lists.
    pub fn subtree_changed(&mut self) {
        self.is_changed = true;
        self.is_subtree_changed = true;
    }

    /// When the tree is to be made; `None`: nothing changed.
    pub fn due(&self) -> Option<Instant> {
        self.is_changed.then(|| self.published + PAUSE)
    }

    /// Makes the tree anew, if it is due, and tells whoever wants to know.
    pub fn publish(&mut self, now: Instant, mesh: &Arc<Mesh>, parent: &Parent) {
        for (session, segment) in std::mem::take(&mut self.replaced) {
            if self.by_segment.get(&segment).is_some_and(|holding| holding.session == session) {
                self.end(session);
            }
            self.segments.remove(&session);
        }
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        self.is_changed = false;
        self.published = now;
        let (mut lists, mut annotations) = (std::mem::take(&mut self.gone), BTreeSet::new());
        let mut ready: Vec<Arc<Mount>> = Vec::new();
        for (segment, holding) in &mut self.by_segment {
            let (changed, is_ready) = holding.refresh(parent);
            if changed.lists {
                lists.insert(segment.clone());
            } else if changed.annotations {
                annotations.insert(segment.clone());
            }
            if is_ready {
                ready.push(Arc::clone(&holding.mount));
            }
        }
        // Before the tree is made, for it says who is lost; who waits for a mount looks there after it is told.
        ready.iter().for_each(|mount| mount.set_state(State::new(Phase::Ready, None, None)));
        mesh.upstreams.set_registered(self.by_segment.values().map(|holding| Arc::clone(&holding.mount)).collect());
        let is_subtree_changed = std::mem::take(&mut self.is_subtree_changed);
        mesh.gate.hub.registered_changed(&lists, &annotations, is_subtree_changed);
        mesh.gate.mounts.changed.notify_waiters();
    }

    /// The registration behind a session, and the first dotted name that it lists.
    pub fn held(&self, session: SessionKey) -> Option<(&Registration, Option<String>)> {
        let holding = self.by_segment.get(self.segments.get(&session)?)?;
        Some((holding.mount.registration.as_ref()?, holding.dotted()))
    }

    fn of(&mut self, session: SessionKey) -> Option<&mut Holding> {
        self.by_segment.get_mut(self.segments.get(&session)?)
    }
}
