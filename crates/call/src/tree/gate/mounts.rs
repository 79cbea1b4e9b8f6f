//! The mounts of a gate and the tree that they make: which there are, when their lists changed, and waiting for them to start. How a mount
//! is kept alive is not known here.

use std::collections::{BTreeSet, HashSet};
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

/// How long the first lists wait for servers that are starting.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

/// The mounts, and the tree.
pub struct Mounts {
    pub tree: ArcSwap<Tree>,
    pub all: ArcSwap<Vec<Arc<Mount>>>,
    /// Wakes whoever waits for mounts to settle.
    pub changed: Notify,
    publishing: Mutex<()>,
    started: Instant,
}

impl Mounts {
    /// No mount yet.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            tree: ArcSwap::from_pointee(Tree::new(config)),
            all: ArcSwap::default(),
            changed: Notify::new(),
            publishing: Mutex::new(()),
            started: Instant::now(),
        }
    }

    /// Keeps everybody else from changing which mounts there are.
    pub fn publishing(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mount of this name.
    pub fn find(&self, name: &str) -> Option<Arc<Mount>> {
        self.all.load().iter().find(|m| m.config.name.as_str() == name).cloned()
    }

    /// Checks that no mount is in its first start.
    pub fn is_settled(&self) -> bool {
        self.is_settled_in(None)
    }

    /// The same of one mount, where there is one.
    pub fn is_settled_in(&self, scope: Option<&Segment>) -> bool {
        // Who registers begins when it likes: nobody waits for it.
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

    /// The mount of this name, once it has another connection than `old`; `None` where it has none for so long.
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

    /// How long a list may still wait: what is not there some time after the start comes as a change.
    pub fn startup_wait(&self) -> Duration {
        STARTUP_WAIT.saturating_sub(self.started.elapsed())
    }

    /// Waits a little for a mount in its first start; `false`: it is in none.
    pub async fn started(&self, name: &str) -> bool {
        let Some(mount) = self.find(name).filter(|m| m.state.load().phase == Phase::Starting) else { return false };
        mount.settle(STARTUP_WAIT).await;
        true
    }

    /// Passes a client's notification on to the connections that are its own, where it says nothing but what MCP has it say.
    pub async fn to_own_connections(&self, session: &Arc<Session>, notification: &Notification) {
        for mount in self.all.load_full().iter() {
            if let Some(instance) = mount.own_of(session) {
                instance.notify(&notification.method, notification.whole.clone()).await;
            }
        }
    }
}

impl GateTree {
    /// A mount's lists changed: the tree is made anew, and whoever wants to know is told.
    pub fn publish(&self, mount: &Segment, kinds: &[Kind]) {
        self.rebuild();
        self.mounts_changed();
        self.hub.lists_changed(Some(mount), kinds);
        self.mounts.changed.notify_waiters();
    }

    /// What is known of a mount's tools changed: only who sees that is told.
    pub fn reannotate(&self, mount: &Mount) {
        mount.note_anew();
        self.rebuild();
        self.hub.annotations_changed(&mount.config.name);
    }

    /// To be called by one at a time.
    pub fn replace(&self, mounts: Vec<Arc<Mount>>) {
        let names: HashSet<&str> = mounts.iter().map(|m| m.config.name.as_str()).collect();
        self.record.metrics.retain_mounts(|name| names.contains(name));
        let old = self.mounts.all.swap(Arc::new(mounts));
        self.remake();
        self.hub.left.change(&old, &self.mounts.all.load());
    }

    /// The gates that stand below mounts may be others.
    pub fn mounts_changed(&self) {
        if let Some(mesh) = self.mesh() {
            mesh.mounts_changed();
        }
    }

    /// The ids of this gate and of all gates below it, mounted or registered.
    pub fn gates(&self, tree: &Tree) -> BTreeSet<String> {
        let registered = self.mesh().map(|mesh| mesh.registered()).unwrap_or_default();
        let mounted = tree.gates_below().into_iter().map(str::to_owned);
        mounted.chain(registered).chain([self.node.id.to_string()]).collect()
    }

    fn rebuild(&self) {
        let _one = self.mounts.publishing();
        self.remake();
    }

    /// To be called by one at a time.
    fn remake(&self) {
        let tree = self.mounts.tree.load().then(self.config.load_full(), &self.mounts.all.load());
        self.mounts.tree.store(Arc::new(tree));
    }
}
