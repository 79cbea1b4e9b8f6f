//! The gate as a whole: what it is made of, how it starts, changes and ends, and what it says about itself. No call passes through here.

mod force;
mod own;
mod status;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use audit::record::{Changed, Record};
use banyan_model::Segment;
use config::diff::{Change, diff};
use config::resolved::{Config, Limits, Transport};
use config::secret::{Sources, SystemSources};
use futures_util::future::BoxFuture;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::Notification;
use mcp_proto::json;
use mcp_proto::projection::style_for;
use runtime::lateness::Lateness;
use runtime::tls::Connector;
use runtime::worker::Workers;
use telemetry::metrics::Metrics;
use telemetry::otlp::Otlp;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::Access;
use crate::approvals::Approvals;
use crate::call::caller::ViewKey;
use crate::call::refusals::Refusals;
use crate::call::remember::{SeenUris, Tasks};
use crate::child::Membership;
use crate::console::Console;
use crate::downstream::door::{About, Entered};
use crate::downstream::session::Session;
use crate::downstream::{Parked, http};
use crate::hub::Hub;
use crate::journal::Journal;
use crate::node::Node;
use crate::pins::Desk;
use crate::policy::{Decisions, Purses};
use crate::registry::{RefusedRegistration, Registry};
use crate::rooms::Rooms;
use crate::shares::Shares;
use crate::tree::Tree;
use crate::trust::Trust;
use crate::upstream::Instance;
use crate::upstream::mount::{Mount, Phase};
use crate::upstream::oauth::OAuthClient;
use crate::upstream::origins::Origins;
use crate::upstream::supervise::supervise;

pub use force::{NotInForce, Reloaded};
pub(crate) use own::rows;
pub use status::{MountStatus, RegisteredStatus, ToolRow};

/// How long the first lists wait for servers that are starting.
const STARTUP_WAIT: Duration = Duration::from_secs(5);
const SWEEP: Duration = Duration::from_secs(30);

/// Everything a call can need.
pub(crate) struct Inner {
    pub(crate) config: ArcSwap<Config>,
    force: force::Force,
    pub(crate) tree: ArcSwap<Tree>,
    pub(crate) mounts: ArcSwap<Vec<Arc<Mount>>>,
    pub(crate) node: Node,
    pub(crate) trust: Trust,
    /// With whom it is registered.
    pub(crate) membership: Membership,
    /// Whether it registers with the parents that its configuration names.
    joins: bool,
    pub(crate) hub: Hub,
    pub(crate) registry: Registry,
    pub(crate) rooms: Arc<Rooms>,
    /// Calls that wait for somebody to agree.
    pub(crate) approvals: Approvals,
    pub(crate) parked: Parked,
    pub(crate) seen: SeenUris,
    pub(crate) tasks: Tasks,
    pub(crate) shares: Arc<Shares>,
    pub(crate) lateness: Lateness,
    pub(crate) refusals: Arc<Refusals>,
    /// The last decisions of the rules.
    pub(crate) decisions: Decisions,
    /// What callers have spent of their budgets.
    pub(crate) purses: Purses,
    pub(crate) metrics: Metrics,
    pub(crate) otlp: Otlp,
    pub(crate) journal: Journal,
    pub(crate) connector: Arc<Connector>,
    pub(crate) origins: Origins,
    pub(crate) sources: Box<dyn Sources>,
    pub(crate) state_dir: PathBuf,
    /// Where lists wait to be held against what is known of their servers.
    pub(crate) pinning: Arc<Desk>,
    /// Somebody looked at definitions, by whichever gate of this state directory.
    pub(crate) looks: Notify,
    /// Wakes whoever waits for mounts to settle.
    pub(crate) changed: Notify,
    pub(crate) stop: CancellationToken,
    pub(crate) admin: Access,
    pub(crate) console: Console,
    /// Connections that stand open.
    pub(crate) open: TaskTracker,
    publishing: Mutex<()>,
    started: Instant,
}

/// A running gate. Clones are the same gate.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Inner>);

impl Gateway {
    /// Starts every mount of `config` in the background. Needs a tokio runtime. `state_dir` keeps tokens of upstreams.
    ///
    /// It is a gate for now: it has a new id each time, and registers with nobody.
    pub fn start(config: Config, state_dir: PathBuf) -> Self {
        Self::of(config, state_dir, Node::new(), None)
    }

    /// The same for a gate that lasts: it has its id over restarts, and registers with the parents that `config` names. `place` tells
    /// it from other gates of the same `state_dir`: the path of its configuration, as a rule.
    pub fn start_at(config: Config, state_dir: PathBuf, place: &Path) -> Self {
        let node = Node::kept(&state_dir, place);
        Self::of(config, state_dir, node, Some(place))
    }

    fn of(config: Config, state_dir: PathBuf, node: Node, place: Option<&Path>) -> Self {
        let joins = place.is_some();
        runtime::tls::install_crypto();
        let config = Arc::new(config);
        let connector = Arc::new(Connector::new());
        let journal = Journal::new(&config.audit, &state_dir, place, &node.id);
        journal.parts().share_by(config.share());
        let inner = Arc::new(Inner {
            tree: ArcSwap::from_pointee(Tree::new(Arc::clone(&config))),
            shares: Shares::new(journal.parts()),
            lateness: Lateness::of_workers(),
            refusals: Arc::default(),
            decisions: Decisions::new(),
            purses: Purses::default(),
            config: ArcSwap::new(Arc::clone(&config)),
            force: force::Force::default(),
            mounts: ArcSwap::default(),
            trust: Trust::new(&config, Arc::clone(&connector)),
            parked: Parked::of(&node.id),
            console: Console::of(&node),
            node,
            membership: Membership::default(),
            joins,
            hub: Hub::default(),
            registry: Registry::new(),
            rooms: Rooms::new(),
            approvals: Approvals::new(&state_dir),
            seen: SeenUris::new(),
            tasks: Tasks::default(),
            metrics: Metrics::new(),
            otlp: Otlp::start(config.telemetry.otlp.as_ref(), Arc::clone(&connector)).unwrap_or_else(|error| {
                tracing::warn!(%error, "spans are not exported");
                Otlp::off()
            }),
            journal,
            connector,
            origins: Origins::default(),
            sources: Box::new(SystemSources),
            pinning: Desk::new(&state_dir),
            state_dir,
            looks: Notify::new(),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            admin: Access::default(),
            open: TaskTracker::new(),
            publishing: Mutex::new(()),
            started: Instant::now(),
        });
        inner.mount(&config);
        Registry::begin(&inner);
        inner.rooms.begin(&inner);
        if joins {
            inner.journal.start();
            crate::policy::recorded::changed(&inner, None, &config);
        }
        Approvals::begin(&inner);
        if joins {
            tokio::spawn(crate::rooms::resume(Arc::clone(&inner)));
        }
        if joins && config.join.is_some() {
            inner.membership.begin(&inner, config.join.as_ref());
        }
        tokio::spawn(sweep(Arc::clone(&inner)));
        tokio::spawn(crate::pins::follow(Arc::clone(&inner)));
        tokio::spawn(crate::trust::follow(Arc::clone(&inner)));
        Self(inner)
    }

    /// Serves HTTP on `workers` until `stop` fires; calls in flight may finish.
    ///
    /// As everything here that may come to a call, it is boxed: it would else be compiled a second time for whoever awaits it.
    pub fn serve_http(&self, listener: TcpListener, stop: CancellationToken, workers: Workers) -> BoxFuture<'static, ()> {
        // Before anything is awaited: a configuration may come meanwhile.
        self.0.force.listens(&listener);
        let gateway = Arc::clone(&self.0);
        Box::pin(async move { http::serve(gateway, listener, stop, &workers).await })
    }

    /// Changes only what differs; calls in flight finish on what they began with.
    fn change(&self, config: Config) -> Vec<Change> {
        let old = self.0.config.load_full();
        let changes = diff(&old, &config);
        if changes.is_empty() {
            return changes;
        }
        let lines = changes.iter().map(|change| change.to_string().into()).collect();
        self.0.journal.append(&Record::Changed(Changed { lines, version: None, what: "configuration".into() }));
        crate::policy::recorded::changed(&self.0, Some(&old), &config);
        let config = Arc::new(config);
        self.0.trust.apply(&config);
        self.0.config.store(Arc::clone(&config));
        self.0.journal.parts().share_by(config.share());
        self.0.rooms.apply(&self.0, &config.rooms);
        self.0.trust.in_force();
        if old.gate != config.gate || old.policy != config.policy {
            self.0.approvals.apply(&self.0, &config);
        }
        self.0.mount(&config);
        self.0.hub.follow(&config);
        crate::downstream::revoked::end(&self.0, &old, &config);
        crate::call::decide_anew(&self.0, &old, &config);
        if self.0.joins && old.join != config.join {
            self.0.membership.begin(&self.0, config.join.as_ref());
        }
        self.0.registry.config_changed();
        crate::pins::apply(&self.0, &old, &config);
        let shows = |c: &Config| (c.profiles.clone(), c.names, c.tokens.clone(), c.policy.clone(), c.groups.clone(), c.registry.is_some());
        if shows(&old) != shows(&config) {
            self.0.hub.lists_changed(None, &Kind::ALL);
        }
        changes
    }

    /// Ends every connection and child process.
    pub async fn shutdown(&self) {
        self.0.membership.end().await;
        self.0.stop.cancel();
        let mounts = self.0.mounts.load_full();
        futures_util::future::join_all(mounts.iter().map(|m| m.close())).await;
        self.0.journal.end().await;
        self.0.otlp.stop(Duration::from_secs(3)).await;
    }

    /// Waits until no mount is in its first start, or `longest` has passed. `true`: none is.
    pub async fn settled(&self, longest: Duration) -> bool {
        self.0.settled_in(None, longest).await;
        self.0.is_settled()
    }

    /// Ready when some mount's state or lists have changed since this was called.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.0.changed.notified()
    }

    /// The last registrations that were refused, of this segment or subserver id where one is given; the newest first.
    pub fn refused(&self, of: Option<&str>) -> Vec<RefusedRegistration> {
        self.0.registry.refused.of(of)
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.0.config.load_full()
    }

    /// The counters, as `/metrics` shows them.
    pub fn metrics(&self) -> String {
        let journal = &self.0.journal;
        self.0.metrics.set_record(journal.unrecorded(), journal.removed(), journal.is_full());
        self.0.metrics.set_over_share(journal.parts().over().into_iter().map(|over| over.principal).collect());
        self.0.metrics.encode()
    }
}

impl Inner {
    /// Makes the running mounts those of `config`.
    fn mount(self: &Arc<Self>, config: &Arc<Config>) {
        let publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let (registered, old): (Vec<_>, Vec<_>) = self.mounts.load_full().iter().cloned().partition(|m| m.registration.is_some());
        let mut mounts = Vec::with_capacity(config.mounts.len() + registered.len());
        for wanted in config.mounts.values() {
            // Whoever has registered a segment keeps it; the mount begins when that is over.
            if registered.iter().any(|m| m.config.name == wanted.name) {
                tracing::warn!(mount = %wanted.name, "a registered server has this segment: the mount waits until its registration ends");
                continue;
            }
            let same = old.iter().find(|m| m.config == *wanted || (m.config.name == wanted.name && *m.config == **wanted));
            mounts.push(match same {
                Some(same) => Arc::clone(same),
                None => self.begin(wanted),
            });
        }
        let gone: Vec<_> = old.iter().filter(|m| !mounts.iter().any(|n| Arc::ptr_eq(n, m))).cloned().collect();
        mounts.extend(registered);
        self.replace(mounts);
        drop(publishing);
        self.changed.notify_waiters();
        self.membership.mounts_changed();
        for gone in gone {
            self.hub.lists_changed(Some(&gone.config.name), &Kind::ALL);
            let gateway = Arc::clone(self);
            // Out of the tree at once; closed when its calls are over.
            tokio::spawn(async move {
                gone.drain(Duration::from_secs(30)).await;
                gateway.hub.left.leave(&gone);
                gone.close().await;
            });
        }
    }

    fn begin(self: &Arc<Self>, config: &Arc<config::resolved::Mount>) -> Arc<Mount> {
        let oauth = match &config.transport {
            Transport::Http(remote) | Transport::Sse(remote) => remote
                .oauth
                .clone()
                .map(|oauth| Arc::new(OAuthClient::new(config.name.as_str(), remote.url.clone(), oauth, &self.state_dir))),
            Transport::Rooms | Transport::Stdio(_) => None,
        };
        let mount = Mount::new(Arc::clone(config), Arc::clone(self), oauth);
        tokio::spawn(supervise(Arc::clone(&mount)));
        mount
    }

    /// A mount's lists changed: the tree is made anew, and whoever wants to know is told.
    pub(crate) fn publish(&self, mount: &Segment, kinds: &[Kind]) {
        self.rebuild();
        self.membership.mounts_changed();
        self.hub.lists_changed(Some(mount), kinds);
        self.changed.notify_waiters();
    }

    /// What is known of a mount's tools changed: only who sees that is told.
    pub(crate) fn reannotate(&self, mount: &Mount) {
        mount.note_anew();
        self.rebuild();
        self.hub.annotations_changed(&mount.config.name);
    }

    /// The mounts of registered servers are these from now on.
    pub(crate) fn set_registered(self: &Arc<Self>, registered: Vec<Arc<Mount>>) {
        let is_waiting = {
            let _one = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut mounts: Vec<_> = self.mounts.load().iter().filter(|m| m.registration.is_none()).cloned().collect();
            mounts.extend(registered);
            let running: HashSet<Segment> = mounts.iter().map(|m| m.config.name.clone()).collect();
            self.replace(mounts);
            self.config.load().mounts.keys().any(|name| !running.contains(name))
        };
        if is_waiting {
            self.mount(&self.config.load_full());
        }
    }

    /// To be called by one at a time.
    fn replace(&self, mounts: Vec<Arc<Mount>>) {
        let names: HashSet<&str> = mounts.iter().map(|m| m.config.name.as_str()).collect();
        self.metrics.retain_mounts(|name| names.contains(name));
        let old = self.mounts.swap(Arc::new(mounts));
        self.remake();
        self.hub.left.change(&old, &self.mounts.load());
    }

    fn rebuild(&self) {
        let _one = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        self.remake();
    }

    /// To be called by one at a time.
    fn remake(&self) {
        let tree = self.tree.load().then(self.config.load_full(), &self.mounts.load());
        self.tree.store(Arc::new(tree));
    }

    /// The ids of this gate and of all gates below it, mounted or registered.
    pub(crate) fn gates(&self, tree: &Tree) -> BTreeSet<String> {
        let registered = self.registry.subtree().borrow().iter().map(ToString::to_string).collect::<Vec<_>>();
        let mounted = tree.gates_below().into_iter().map(str::to_owned);
        mounted.chain(registered).chain([self.node.id.to_string()]).collect()
    }

    /// The bounds in force.
    pub(crate) fn limits(&self) -> Limits {
        self.config.load().limits.clone()
    }

    /// Whether no mount is in its first start.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled_in(None)
    }

    /// The same of one mount, where there is one.
    pub(crate) fn is_settled_in(&self, scope: Option<&Segment>) -> bool {
        // Who registers begins when it likes: nobody waits for it.
        let within = |m: &Mount| m.registration.is_none() && scope.is_none_or(|s| *s == m.config.name);
        self.mounts.load().iter().all(|m| !within(m) || m.state.load().phase != Phase::Starting)
    }

    /// Waits until no mount of `scope` (`None`: of all) is in its first start, or `longest` has passed.
    pub(crate) async fn settled_in(&self, scope: Option<&Segment>, longest: Duration) {
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
    pub(crate) async fn reconnected(&self, name: &Segment, old: &Arc<Instance>, longest: Duration) -> Option<Arc<Mount>> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let mount = self.find(name.as_str());
                let is_new = |mount: &Arc<Mount>| mount.shared.load().as_ref().is_some_and(|new| !Arc::ptr_eq(new, old) && !new.is_lost());
                if let Some(mount) = mount.filter(is_new) {
                    return mount;
                }
                changed.await;
            }
        };
        tokio::time::timeout(longest, waiting).await.ok()
    }

    /// How long a list may still wait: what is not there some time after the start comes as a change.
    pub(crate) fn startup_wait(&self) -> Duration {
        STARTUP_WAIT.saturating_sub(self.started.elapsed())
    }

    /// Waits a little for a mount in its first start; `false`: it is in none.
    pub(crate) async fn started(&self, name: &str) -> bool {
        let Some(mount) = self.find(name).filter(|m| m.state.load().phase == Phase::Starting) else { return false };
        mount.settle(STARTUP_WAIT).await;
        true
    }

    /// What a client that calls itself `name` is shown.
    pub(crate) fn scope_of(&self, name: &str) -> ViewKey {
        let config = self.config.load();
        let info = format!("{{\"name\":{}}}", json::quote(name));
        let asked = (name.is_empty()).then(|| style_for(""));
        Entered::local().scope(&config, None, About { info: info.as_bytes(), capabilities: b"{}" }, asked)
    }

    /// Passes a client's notification on to the connections that are its own, where it says nothing but what MCP has it say.
    pub(crate) async fn to_own_connections(&self, session: &Arc<Session>, notification: &Notification) {
        for mount in self.mounts.load_full().iter() {
            if let Some(instance) = mount.own_of(session) {
                instance.notify(&notification.method, notification.whole.clone()).await;
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Mount>> {
        self.mounts.load().iter().find(|m| m.config.name.as_str() == name).cloned()
    }
}

/// Ends what nobody has used for long.
async fn sweep(gateway: Arc<Inner>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = gateway.stop.cancelled() => return,
        }
        gateway.parked.sweep();
        gateway.journal.sweep();
        gateway.purses.sweep(&gateway.config.load());
        for session in gateway.hub.sweep(Instant::now(), gateway.limits().session_idle) {
            session.end();
            crate::call::forget(&gateway, &session).await;
        }
    }
}
