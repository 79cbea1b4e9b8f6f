//! Mounts of a gate and their tree: changes of lists, and waiting for mounts to start. Does not keep mounts alive.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use banyan_model::Segment;
use config::resolved::Config;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::Notification;
use tokio::sync::Notify;

use crate::tree::gate::GateTree;
use crate::tree::mount::{Mount, Phase};
use crate::tree::port::Instance;
use crate::tree::snapshot::Tree;
use crate::words::session::Session;

/// Longest wait of first lists for starting servers.
const STARTUP_WAIT: Duration = Duration::from_secs(5);
/// Time within which changes of annotations are announced together: each announcement makes every client ask for its list again.
const TOGETHER: Duration = Duration::from_millis(200);

/// Mounts of a gate, and their tree.
pub struct Mounts {
    pub tree: ArcSwap<Tree>,
    pub all: ArcSwap<Vec<Arc<Mount>>>,
    /// Wakes those who wait for mounts to settle.
    pub changed: Notify,
    publishing: Mutex<()>,
    /// Mounts with changed annotations that are not announced yet.
    reannotated: Mutex<BTreeSet<Segment>>,
    started: Instant,
}

impl Mounts {
    /// Begins without mounts.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            tree: ArcSwap::from_pointee(Tree::new(config)),
            all: ArcSwap::default(),
            changed: Notify::new(),
            publishing: Mutex::new(()),
            reannotated: Mutex::default(),
            started: Instant::now(),
        }
    }

    /// Locks the set of mounts against changes.
    pub fn publishing(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a mount by name.
    pub fn find(&self, name: &str) -> Option<Arc<Mount>> {
        self.all.load().iter().find(|m| m.config.name.as_str() == name).cloned()
    }

    /// Checks that no mount is in its first start.
    pub fn is_settled(&self) -> bool {
        self.is_settled_in(None)
    }

    /// Checks that no mount of `scope` is in its first start.
    pub fn is_settled_in(&self, scope: Option<&Segment>) -> bool {
        // Registered servers begin at a time of their own, and nobody waits for them.
        let within = |m: &Mount| m.registration.is_none() && scope.is_none_or(|s| *s == m.config.name);
        self.all.load().iter().all(|m| !within(m) || m.state.load().phase != Phase::Starting)
    }

    /// Waits until no mount of `scope` (`None`: of all) is in its first start, or `longest` has passed.
    pub async fn settled_in(&self, scope: Option<&Segment>, longest: Duration) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if self.is_settled_in(scope) {
                    return;
                }
                changed.await;
            }
        };
        drop(tokio::time::timeout(longest, waiting).await);
    }

    /// Waits up to `longest` for a mount to have a connection other than `old`; `None` if none came.
    pub async fn reconnected(&self, name: &Segment, old: &Arc<Instance>, longest: Duration) -> Option<Arc<Mount>> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let mount = self.find(name.as_str());
                let is_new = |mount: &Arc<Mount>| {
                    mount.connections.shared.load().as_ref().is_some_and(|new| !Arc::ptr_eq(new, old) && !new.is_lost())
                };
                if let Some(mount) = mount.filter(is_new) {
                    return mount;
                }
                changed.await;
            }
        };
        tokio::time::timeout(longest, waiting).await.ok()
    }

    /// Notes a mount with changed annotations; `true` for the first since the last announcement.
    fn note_reannotated(&self, mount: &Segment) -> bool {
        let mut changed = self.reannotated.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = changed.is_empty();
        changed.insert(mount.clone());
        is_first
    }

    /// Mounts to be announced, which count as announced from now on.
    fn take_reannotated(&self) -> BTreeSet<Segment> {
        std::mem::take(&mut *self.reannotated.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Time for which a list may still wait; later arrivals come as changes.
    pub fn startup_wait(&self) -> Duration {
        STARTUP_WAIT.saturating_sub(self.started.elapsed())
    }

    /// Waits a little for a mount in its first start; `false` if it is in none.
    pub async fn started(&self, name: &str) -> bool {
        let Some(mount) = self.find(name).filter(|m| m.state.load().phase == Phase::Starting) else { return false };
        mount.settle(STARTUP_WAIT).await;
        true
    }

    /// Passes a client's notification on to its own connections, unless it has members beyond MCP.
    pub async fn to_own_connections(&self, session: &Arc<Session>, notification: &Notification) {
        for mount in self.all.load_full().iter() {
            if let Some(instance) = mount.own_of(session) {
                instance.notify(&notification.method, notification.whole.clone()).await;
            }
        }
    }
}

impl GateTree {
    /// Publishes changed lists of a mount: makes the tree anew, and notifies listeners.
    pub fn publish(&self, mount: &Segment, kinds: &[Kind]) {
        self.rebuild();
        self.mounts_changed();
        self.hub.lists_changed(Some(mount), kinds);
        self.mounts.changed.notify_waiters();
    }

    /// Publishes changed annotations of a mount: in the tree at once, and announced soon, to clients with annotations.
    pub fn reannotate(self: &Arc<Self>, mount: &Mount) {
        mount.note_anew();
        self.rebuild();
        // Without tools there is nothing to see.
        if !mount.catalog.load().tools.is_empty() && self.mounts.note_reannotated(&mount.config.name) {
            let gate = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(TOGETHER).await;
                let changed = gate.mounts.take_reannotated();
                gate.hub.mounts_changed(&BTreeMap::new(), &changed, false);
            });
        }
    }

    /// Replaces the mounts. Callers take turns by [`Mounts::publishing`].
    pub fn replace(&self, mounts: Vec<Arc<Mount>>) {
        let names: HashSet<&str> = mounts.iter().map(|m| m.config.name.as_str()).collect();
        self.record.metrics.retain_mounts(|name| names.contains(name));
        let failed = self.failed_servers();
        let old = self.mounts.all.swap(Arc::new(mounts));
        self.remake();
        self.hub.left.change(&old, &self.mounts.all.load());
        if failed != self.failed_servers() {
            self.failed_changed();
        }
    }

    /// Notes that the gates below mounts may have changed.
    pub fn mounts_changed(&self) {
        if let Some(mesh) = self.mesh() {
            mesh.mounts_changed();
        }
    }

    /// Tells gates above that a server has failed, or is there again.
    pub fn failed_changed(&self) {
        self.hub.mounts_changed(&BTreeMap::new(), &BTreeSet::new(), true);
    }

    /// Lists the paths of failed servers, of this gate and of gates below.
    pub fn failed_servers(&self) -> BTreeSet<String> {
        let mut failed = BTreeSet::new();
        for mount in self.mounts.all.load().iter() {
            let name = &mount.config.name;
            failed.extend(mount.catalog.load().failed_below.iter().map(|path| format!("{name}.{path}")));
            failed.extend((mount.state.load().phase == Phase::Failed).then(|| name.to_string()));
        }
        failed
    }

    /// Ids of this gate and of all gates below, mounted or registered.
    pub fn gates(&self, tree: &Tree) -> BTreeSet<String> {
        let registered = self.mesh().map(|mesh| mesh.registered()).unwrap_or_default();
        let mounted = tree.gates_below().into_iter().map(str::to_owned);
        mounted.chain(registered).chain([self.node.id.to_string()]).collect()
    }

    fn rebuild(&self) {
        let _one = self.mounts.publishing();
        self.remake();
    }

    /// Makes the tree anew. Callers take turns by [`Mounts::publishing`].
    fn remake(&self) {
        let tree = self.mounts.tree.load().then(self.config.load_full(), &self.mounts.all.load());
        self.mounts.tree.store(Arc::new(tree));
    }
}
