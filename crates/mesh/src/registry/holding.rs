//! Holdings of a registered server: mount, fetched lists, and the part of them to show. Grants nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use banyan_model::Segment;
use config::resolved;
use mcp_proto::catalog::Kind;
use mesh_proto::id::SessionKey;
use mesh_proto::namespace::{self, Namespace, Part, Tool, WithholdReason};
use mesh_proto::parent::{Parent, Target};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::mesh::Mesh;
use crate::registry::runner;
use call::tree::catalog::Catalog;
use call::tree::mount::{Mount, Phase, State};
use call::tree::port::Instance;
use call::tree::registration::Registration;
use mcp::upstream::connect::Dialer;
use mcp::upstream::pool::Pool;

/// Time for calls under way after the server has left the tree.
const DRAIN: Duration = Duration::from_secs(30);

/// Lists of a registered server, with the connection, and the tools in the machine's form.
pub struct FetchedLists {
    pub instance: Arc<Instance>,
    pub catalog: Arc<Catalog>,
    pub offers: Vec<namespace::Offer>,
}

/// Changes that clients can see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// Lists with other entries.
    pub lists: BTreeSet<Kind>,
    /// The presence of the tools.
    pub annotations: bool,
}

/// Holdings of a registered server.
pub struct ServerHolding {
    pub mount: Arc<Mount>,
    pub session: SessionKey,
    fetched: Option<FetchedLists>,
    /// The part of the table published last.
    part: Option<Arc<Part>>,
    /// Something besides the part changed.
    news: bool,
    /// The tools were last published as a lost server's.
    was_lost: bool,
    /// Tells the runner to fetch.
    wanted: Arc<Notify>,
    _over: DropGuard,
}

impl ServerHolding {
    /// Makes the holdings of a new session. Earlier tools are shown as degraded until the new list is there.
    pub fn begin(
        mesh: &Arc<Mesh>,
        (config, link): (resolved::Mount, Option<Arc<Pool>>),
        registration: Registration,
        before: Option<&Self>,
    ) -> Self {
        let session = registration.session;
        let config = Arc::new(config);
        let dialer = Dialer::registered(&mesh.upstreams, &config, link);
        let mount = Mount::new(config, &mesh.gate.base, Arc::new(dialer), Some(registration));
        if let Some(before) = before {
            mount.catalog.store(before.mount.catalog.load_full());
            mount.known.store(before.mount.known.load_full());
            mount.role.store(before.mount.role.load_full());
        }
        let (wanted, over) = (Arc::new(Notify::new()), CancellationToken::new());
        tokio::spawn(runner::run(Arc::clone(mesh), Arc::clone(&mount), session, Arc::clone(&wanted), over.clone()));
        Self {
            mount,
            session,
            fetched: None,
            part: None,
            news: true,
            was_lost: before.is_some_and(|before| before.was_lost),
            wanted,
            _over: over.drop_guard(),
        }
    }

    /// Starts a fetch of the lists.
    pub fn fetch(&self) {
        self.wanted.notify_one();
    }

    /// Takes the fetched lists, or a failure.
    pub fn take_lists(&mut self, fetched: Option<FetchedLists>) {
        self.fetched = fetched;
        self.news = true;
    }

    /// Cuts off the lost server.
    pub fn lose(&mut self, parent: &Parent) {
        self.fetched = None;
        self.news = true;
        self.degrade(parent);
    }

    /// Adjusts the mount to the machine's state. Gives the changes for clients, and whether the mount is to become ready once in the tree.
    pub fn refresh(&mut self, parent: &Parent) -> (ListChanges, bool) {
        let part = parent.namespace().part(self.segment().as_str());
        let same = match (part, &self.part) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (now, then) => now.is_none() && then.is_none(),
        };
        if same && !std::mem::take(&mut self.news) {
            return (ListChanges::default(), false);
        }
        self.news = false;
        self.part = part.cloned();
        let lists_tools = parent.session(self.session).is_none_or(|session| session.capabilities.tools);
        let is_there = part.map_or(!lists_tools, |part| !part.is_degraded());
        match (&self.fetched, is_there) {
            (Some(fetched), true) => {
                let catalog = published(fetched, self.segment(), parent.namespace(), part);
                let lists = catalog.changed_since(&self.mount.catalog.load());
                let is_listed = !catalog.tools.is_empty();
                self.mount.known.store(Some(Arc::new(fetched.instance.negotiated.clone())));
                self.mount.metrics.set_tools(catalog.tools.len());
                self.mount.catalog.store(Arc::new(catalog));
                self.mount.connections.shared.store(Some(Arc::clone(&fetched.instance)));
                if let Some(registration) = &self.mount.registration {
                    registration.lost.store(None);
                }
                (ListChanges { lists, annotations: std::mem::take(&mut self.was_lost) && is_listed }, true)
            }
            (None, true) => {
                self.unplug();
                let was_lost = std::mem::replace(&mut self.was_lost, true);
                (ListChanges { annotations: !was_lost && self.lists_tools(), ..ListChanges::default() }, false)
            }
            (_, false) => (self.gone(parent, part.is_some()), false),
        }
    }

    /// Finds the first dotted name among the tools.
    pub fn dotted(&self) -> Option<String> {
        let tools = self.fetched.iter().flat_map(|fetched| &fetched.catalog.tools);
        tools.map(|tool| &tool.entry.key).find(|key| key.contains('.')).map(|key| key.chars().take(80).collect())
    }

    /// Retires the mount from the tree; closed when its calls are over.
    pub fn retire(self) {
        let mount = Arc::clone(&self.mount);
        tokio::spawn(async move {
            mount.drain(DRAIN).await;
            mount.gate.hub.left.leave(&mount);
            mount.close().await;
        });
    }

    fn segment(&self) -> &Segment {
        &self.mount.config.name
    }

    /// Hides the tools, or shows them as degraded.
    fn gone(&mut self, parent: &Parent, is_shown: bool) -> ListChanges {
        self.degrade(parent);
        let was_lost = std::mem::replace(&mut self.was_lost, true);
        if is_shown {
            return ListChanges { annotations: !was_lost && self.lists_tools(), ..ListChanges::default() };
        }
        let lists = self.mount.catalog.load().kinds();
        if !lists.is_empty() {
            self.mount.catalog.store(Arc::default());
        }
        ListChanges { lists, annotations: false }
    }

    /// Checks for tools that clients see.
    fn lists_tools(&self) -> bool {
        !self.mount.catalog.load().tools.is_empty()
    }

    fn degrade(&self, parent: &Parent) {
        self.unplug();
        let (Some(registration), Some(Target::Degraded(degraded))) = (&self.mount.registration, parent.target(self.segment().as_str()))
        else {
            return;
        };
        registration.lose(degraded);
        self.mount.enter(State::new(Phase::Degraded, Some(degraded.why.words().to_owned()), None));
    }

    fn unplug(&self) {
        if let Some(instance) = self.mount.connections.shared.swap(None) {
            tokio::spawn(async move { instance.close().await });
        }
    }
}

/// Gives the part of the lists to show: each tool of the table once (AX-13, AX-14, AX-41).
fn published(fetched: &FetchedLists, segment: &Segment, namespace: &Namespace, part: Option<&Arc<Part>>) -> Catalog {
    let mut catalog = Catalog::clone(&fetched.catalog);
    let mut shown = BTreeSet::new();
    let all = catalog.tools.len();
    catalog.tools.retain(|offer| {
        let name = format!("{segment}.{}", offer.entry.key);
        namespace.resolve(&name).is_some() && shown.insert(name)
    });
    let withheld = all - catalog.tools.len();
    if withheld > 0 {
        let verb = if withheld == 1 { "is" } else { "are" };
        catalog.notes.push(format!("{withheld} of its tools {verb} not shown: {}{}", reasons(part), remedy(part)));
    }
    catalog
}

/// The cure for tools that nobody may change things with, where some are withheld for that.
fn remedy(part: Option<&Arc<Part>>) -> &'static str {
    let is_unproved = |tool: &Tool| tool.withheld() == Some(WithholdReason::AuthorityRequired);
    if !part.is_some_and(|part| part.tools().iter().any(is_unproved)) {
        return "";
    }
    ". Tools that change something need a proved authority: join over TLS with a certificate (`banyan ca init` at the parent), or set \
     `proof = \"never\"` in [registry] at the parent"
}

fn reasons(part: Option<&Arc<Part>>) -> String {
    let Some(part) = part else { return String::new() };
    let withheld = part.tools().iter().filter_map(|tool| Some((tool.withheld()?, tool.local().to_string())));
    let refused = part.refused().iter().map(|refused| (refused.why, refused.name.clone()));
    let all: Vec<String> = withheld.chain(refused).map(|(why, name)| format!("`{name}` ({})", why.as_str())).collect();
    let more = if all.len() > 5 { format!(" and {} more", all.len() - 5) } else { String::new() };
    format!("{}{more}", all.iter().take(5).cloned().collect::<Vec<_>>().join(", "))
}
