//! Holdings of all registered servers, and their way into the tree: at once in quiet times, and otherwise at most ten times a second, so
//! that a thousand registrations make a few new trees. Grants nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::Segment;
use config::resolved::{self, Remote, Transport};
use mesh_proto::id::SessionKey;
use mesh_proto::parent::{Parent, Session};
use url::Url;

use crate::mesh::Mesh;
use crate::registry::holding::{FetchedLists, ServerHolding};
use call::tree::hub::ChangedLists;
use call::tree::mount::{Mount, Phase, State};
use call::tree::registration::Registration;
use mcp::upstream::pool::Pool;

/// Least time between two new trees.
const PAUSE: Duration = Duration::from_millis(100);
/// Patience for a connection with its first lists.
const START: Duration = Duration::from_secs(10);

/// All holdings, by segment.
pub struct Holdings {
    by_segment: BTreeMap<Segment, ServerHolding>,
    segments: HashMap<SessionKey, Segment>,
    /// Segments of replaced sessions, which may have gone to another segment.
    replaced: Vec<(SessionKey, Segment)>,
    /// Segments without a holder, still in the tree, with their lists.
    gone: ChangedLists,
    /// Time of the last tree.
    published: Instant,
    is_changed: bool,
    is_subtree_changed: bool,
}

impl Holdings {
    /// Begins without holdings, and with a fresh tree.
    pub fn new(now: Instant) -> Self {
        Self {
            by_segment: BTreeMap::new(),
            segments: HashMap::new(),
            replaced: Vec::new(),
            gone: ChangedLists::new(),
            published: now,
            is_changed: false,
            is_subtree_changed: false,
        }
    }

    /// Adds the holdings of a new session; `held`: the address behind the session's link, and the connections over the link.
    pub fn begin(&mut self, mesh: &Arc<Mesh>, session: &Session, held: Option<(Url, Arc<Pool>)>) {
        let dialled = session.url.as_deref().and_then(|url| Url::parse(url).ok());
        let (url, pool) = match (dialled, held) {
            (Some(url), _) => (url, None),
            (None, Some((url, pool))) => (url, Some(pool)),
            (None, None) => return tracing::error!(segment = %session.segment, "a registration has neither a URL nor a link"),
        };
        // No credential of anybody goes to a server that only says where it is, but the certificate that is there for such servers.
        let terms = mesh.gate.config.load().registry.clone().unwrap_or_default();
        let (insecure, tls) = (terms.insecure, terms.tls);
        let tls = tls.filter(|_| url.scheme() == "https");
        let remote = Remote { url, headers: BTreeMap::new(), oauth: None, tls, insecure };
        let origin = format!("registered by {}", session.principal);
        let config = resolved::Mount {
            start_timeout: START,
            list_ttl: terms.list_ttl,
            reached: session.transport.clone(),
            ..resolved::Mount::new(session.segment.clone(), Transport::Http(remote), origin)
        };
        let before = self.by_segment.remove(&session.segment);
        let new = ServerHolding::begin(mesh, (config, pool), Registration::of_session(session), before.as_ref());
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

    /// Starts a fetch of a session's lists; `false`: no holdings.
    pub fn fetch(&self, session: SessionKey) -> bool {
        let holding = self.segments.get(&session).and_then(|segment| self.by_segment.get(segment));
        holding.map(ServerHolding::fetch).is_some()
    }

    /// Takes the fetched lists of a session.
    pub fn fetched(&mut self, session: SessionKey, fetched: FetchedLists) {
        match self.holding_mut(session) {
            Some(holding) => holding.take_lists(Some(fetched)),
            None => drop(tokio::spawn(async move { fetched.instance.close().await })),
        }
        self.is_changed = true;
    }

    /// Takes the failure of a fetch.
    pub fn failed(&mut self, session: SessionKey) {
        if let Some(holding) = self.holding_mut(session) {
            holding.take_lists(None);
            self.is_changed = true;
        }
    }

    /// Cuts off a session's lost server. Calls are refused from now on, before the tree shows the loss.
    pub fn lose(&mut self, session: SessionKey, parent: &Parent) {
        if let Some(holding) = self.holding_mut(session) {
            holding.lose(parent);
            self.is_changed = true;
        }
    }

    /// Hands the holdings of a replaced session to the successor.
    pub fn replace(&mut self, session: SessionKey, parent: &Parent) {
        self.lose(session, parent);
        self.replaced.extend(self.segments.get(&session).map(|segment| (session, segment.clone())));
    }

    /// Ends a session, and removes the holdings.
    pub fn end_session(&mut self, session: SessionKey) {
        let Some(segment) = self.segments.get(&session).cloned() else { return };
        self.segments.remove(&session);
        if let Some(holding) = self.by_segment.remove(&segment) {
            self.gone.insert(segment, holding.mount.catalog.load().kinds());
            holding.retire();
            self.is_changed = true;
        }
    }

    /// Notes a change of the table of names.
    pub fn changed(&mut self) {
        self.is_changed = true;
    }

    /// Notes a change of the gates below; gates above learn it with the lists.
    pub fn subtree_changed(&mut self) {
        self.is_changed = true;
        self.is_subtree_changed = true;
    }

    /// Gives the time of the next tree; `None`: no change.
    pub fn due(&self) -> Option<Instant> {
        self.is_changed.then(|| self.published + PAUSE)
    }

    /// Makes a new tree, if due, and notifies listeners.
    pub fn publish(&mut self, now: Instant, mesh: &Arc<Mesh>, parent: &Parent) {
        for (session, segment) in std::mem::take(&mut self.replaced) {
            if self.by_segment.get(&segment).is_some_and(|holding| holding.session == session) {
                self.end_session(session);
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
            if changed.annotations {
                annotations.insert(segment.clone());
            }
            if !changed.lists.is_empty() {
                lists.insert(segment.clone(), changed.lists);
            }
            if is_ready {
                ready.push(Arc::clone(&holding.mount));
            }
        }
        // Before the tree is made, for it says who is lost; who waits for a mount looks there after it is told.
        ready.iter().for_each(|mount| mount.set_state(State::new(Phase::Ready, None, None)));
        mesh.upstreams.set_registered(self.by_segment.values().map(|holding| Arc::clone(&holding.mount)).collect());
        let is_subtree_changed = std::mem::take(&mut self.is_subtree_changed);
        mesh.gate.hub.mounts_changed(&lists, &annotations, is_subtree_changed);
        mesh.gate.mounts.changed.notify_waiters();
    }

    /// Gives the registration of a session, and the first dotted name of the list.
    pub fn held(&self, session: SessionKey) -> Option<(&Registration, Option<String>)> {
        let holding = self.by_segment.get(self.segments.get(&session)?)?;
        Some((holding.mount.registration.as_ref()?, holding.dotted()))
    }

    fn holding_mut(&mut self, session: SessionKey) -> Option<&mut ServerHolding> {
        self.by_segment.get_mut(self.segments.get(&session)?)
    }
}
