//! What one registered server holds: its mount, what was fetched of it, and what of that may be shown. Whether it may hold it is not
//! decided here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use banyan_model::Segment;
use config::resolved;
use mesh_proto::id::SessionKey;
use mesh_proto::namespace::{self, Namespace, Part};
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

/// How long calls in flight may take to end once their server is out of the tree.
const DRAIN: Duration = Duration::from_secs(30);

/// What a registered server lists, over which connection, and the tools as the machine takes them.
pub struct Fetched {
    pub instance: Arc<Instance>,
    pub catalog: Arc<Catalog>,
    pub offers: Vec<namespace::Offer>,
}

/// What changed for clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// The lists themselves.
    pub lists: bool,
    /// Only whether the tools are there.
    pub annotations: bool,
}

/// What one registered server holds.
pub struct Holding {
    pub mount: Arc<Mount>,
    pub session: SessionKey,
    fetched: Option<Fetched>,
    /// The part of the table as it was published last.
    part: Option<Arc<Part>>,
    /// Something besides the part changed.
    news: bool,
    /// Whether the tools were published last as those of a server that is not there.
    was_lost: bool,
    /// Tells the runner to fetch.
    wanted: Arc<Notify>,
    _over: DropGuard,
}

impl Holding {
    /// Of a session that began. What stood there before is shown, as degraded, until the new list is there.
    pub fn begin(
        mesh: &Arc<Mesh>,
        (config, link): (resolved::Mount, Option<Arc<Pool>>),
        registration: Registration,
        before: Option<&Self>,
    ) -> Self {
        let session = registration.session;
        let config = Arc::new(config);
        let dialer = Dialer::registered(&mesh.upstreams, &config, link);
        let mount = Mount::new(config, &mesh.gate, Arc::new(dialer), Some(registration));
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

    /// Lets the lists be fetched.
    pub fn fetch(&self) {
        self.wanted.notify_one();
    }

    /// The lists were fetched, or could not be.
    pub fn take(&mut self, fetched: Option<Fetched>) {
        self.fetched = fetched;
        self.news = true;
    }

    /// Nothing goes to its server any more.
    pub fn lose(&mut self, parent: &Parent) {
        self.fetched = None;
        self.news = true;
        self.degrade(parent);
    }

    /// Brings the mount in line with what the machine holds. What has to be told, and whether the mount became ready, which it is to be
    /// once it is in the tree.
    pub fn refresh(&mut self, parent: &Parent) -> (Changed, bool) {
        let part = parent.namespace().part(self.segment().as_str());
        let same = match (part, &self.part) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (now, then) => now.is_none() && then.is_none(),
        };
        if same && !std::mem::take(&mut self.news) {
            return (Changed::default(), false);
        }
        self.news = false;
        self.part = part.cloned();
        let lists_tools = parent.session(self.session).is_none_or(|session| session.capabilities.tools);
        let is_there = part.map_or(!lists_tools, |part| !part.is_degraded());
        match (&self.fetched, is_there) {
            (Some(fetched), true) => {
                let catalog = published(fetched, self.segment(), parent.namespace(), part);
                let lists = *self.mount.catalog.load_full() != catalog;
                self.mount.known.store(Some(Arc::new(fetched.instance.negotiated.clone())));
                self.mount.metrics.set_tools(catalog.tools.len());
                self.mount.catalog.store(Arc::new(catalog));
                self.mount.connections.shared.store(Some(Arc::clone(&fetched.instance)));
                if let Some(registration) = &self.mount.registration {
                    registration.lost.store(None);
                }
                (Changed { lists, annotations: std::mem::take(&mut self.was_lost) }, true)
            }
            (None, true) => {
                self.unplug();
                (Changed { lists: false, annotations: !std::mem::replace(&mut self.was_lost, true) }, false)
            }
            (_, false) => (self.gone(parent, part.is_some()), false),
        }
    }

    /// The first dotted name among its tools.
    pub fn dotted(&self) -> Option<String> {
        let tools = self.fetched.iter().flat_map(|fetched| &fetched.catalog.tools);
        tools.map(|tool| &tool.entry.key).find(|key| key.contains('.')).map(|key| key.chars().take(80).collect())
    }

    /// Out of the tree: closed when its calls are over.
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

    /// Its tools are not to be called: shown as degraded, or not at all.
    fn gone(&mut self, parent: &Parent, is_shown: bool) -> Changed {
        self.degrade(parent);
        let was_lost = std::mem::replace(&mut self.was_lost, true);
        if is_shown || self.mount.catalog.load().is_empty() {
            return Changed { lists: false, annotations: is_shown && !was_lost };
        }
        self.mount.catalog.store(Arc::default());
        Changed { lists: true, annotations: false }
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

/// What of the lists may be shown: of the tools those that the table has, each once (AX-13, AX-14, AX-41).
fn published(fetched: &Fetched, segment: &Segment, namespace: &Namespace, part: Option<&Arc<Part>>) -> Catalog {
    let mut catalog = Catalog::clone(&fetched.catalog);
    let mut shown = BTreeSet::new();
    let all = catalog.tools.len();
    catalog.tools.retain(|offer| {
        let name = format!("{segment}.{}", offer.entry.key);
        namespace.resolve(&name).is_some() && shown.insert(name)
    });
    let withheld = all - catalog.tools.len();
    if withheld > 0 {
        catalog.notes.push(format!("{withheld} of its tools are not shown: {}", reasons(part)));
    }
    catalog
}

fn reasons(part: Option<&Arc<Part>>) -> String {
    let Some(part) = part else { return String::new() };
    let withheld = part.tools().iter().filter_map(|tool| Some((tool.withheld()?, tool.local().to_string())));
    let refused = part.refused().iter().map(|refused| (refused.why, refused.name.clone()));
    let all: Vec<String> = withheld.chain(refused).map(|(why, name)| format!("`{name}` ({})", why.as_str())).collect();
    let more = if all.len() > 5 { format!(" and {} more", all.len() - 5) } else { String::new() };
    format!("{}{more}", all.iter().take(5).cloned().collect::<Vec<_>>().join(", "))
}
