//! The gate as a whole: parts, start, change, end, and statements about itself. No call passes through here.

mod force;
mod identity;
mod own;
mod status;
#[cfg(test)]
mod tests {
    mod child;
    mod renewal;
    mod revoked;
}

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use audit::record::{Changed, Record};
use config::diff::{Change, diff};
use config::resolved::Config;
use config::secret::{Sources, SystemSources};
use disk::{DiskBus, DiskJournal, DiskStores};
use futures_util::future::BoxFuture;
use mcp_proto::catalog::Kind;
use runtime::lateness::Lateness;
use runtime::tls::Connector;
use runtime::worker::Workers;
use store::memory::MemoryBudget;
use store::{Journal, Stores};
use telemetry::metrics::Metrics;
use telemetry::otlp::Otlp;
use telemetry::traffic::Traffic;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{Access, AdminDoor, Receivers};
use crate::listener;
use crate::listener::Listener;
use crate::parts::PartList;
use call::judge::approvals::Approvals;
use call::judge::gate::{Gate, Rules};
use call::judge::policy::Decisions;
use call::tree::desk::Desk;
use call::tree::gate::{GateTree, Load, Mounts, Recorder};
use call::tree::hub::Hub;
use call::tree::remembered::{SeenUris, Tasks};
use call::words::node::Node;
use call::words::shares::Shares;
use door::entrance::Entrance;
use door::part::{Ground, InstalledPart};
use door::port::Door;
use mcp::downstream::McpServer;
use mcp::downstream::mcp::McpDoor;
use mcp::upstream::Upstreams;
use mcp::upstream::origins::Origins;
use mesh::child::Membership;
use mesh::link::LinkDoor;
use mesh::mesh::Mesh;
use mesh::registry::{RefusedRegistration, Registry};
use trust::{Besides, Trust};

pub use crate::gateway::force::{NotInForce, ReloadOutcome};
pub(crate) use crate::gateway::own::rows;
pub use crate::gateway::status::{MountStatus, RegisteredStatus, ToolRow};

const SWEEP: Duration = Duration::from_secs(30);

/// All parts of a gate. Everything below is given only the parts in use there.
pub(crate) struct Parts {
    pub(crate) gate: Arc<Gate>,
    force: force::Force,
    pub(crate) trust: Arc<Trust>,
    pub(crate) entrance: Arc<Entrance>,
    upstreams: Arc<Upstreams>,
    pub(crate) server: Arc<McpServer>,
    pub(crate) mesh: Arc<Mesh>,
    /// Families of the list of parts.
    pub(crate) installed: Vec<Arc<dyn InstalledPart>>,
    sources: Arc<dyn Sources>,
    /// Set for a gate that registers with the parents of the configuration.
    joins: bool,
    pub(crate) admin: Access,
    /// Open connections.
    pub(crate) open: TaskTracker,
    /// News of looks at definitions by other gates.
    looks: Arc<DiskBus>,
}

/// A running gate. Clones are the same gate.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Parts>);

impl Gateway {
    /// Starts every mount of `config` in the background. Needs a tokio runtime. `state_dir` keeps tokens of upstreams.
    ///
    /// The gate is temporary: new id, no registration with parents.
    pub fn start(config: Config, state_dir: PathBuf) -> Self {
        Self::assemble(&PartList::default(), config, state_dir, None)
    }

    /// Starts a lasting gate, with the same id after a restart, registered with the parents in `config`. `place`, as a rule the path of the
    /// configuration, distinguishes gates with the same `state_dir`.
    pub fn start_at(config: Config, state_dir: PathBuf, place: &Path) -> Self {
        Self::assemble(&PartList::default(), config, state_dir, Some(place))
    }

    /// Starts a gate of other parts. Sections of `list` must have read `config`. With a `place` the gate lasts.
    pub fn assemble(list: &PartList, config: Config, state_dir: PathBuf, place: Option<&Path>) -> Self {
        runtime::tls::install_crypto();
        let config = Arc::new(config);
        let parts = Arc::new(Parts::new(list, &config, state_dir, place));
        parts.begin(&config);
        Self(parts)
    }

    /// Serves HTTP on `workers` until `stop` fires; calls in flight may finish.
    ///
    /// Boxed like every future here that leads to calls, to be compiled once and not again in every awaiting crate.
    pub fn serve_http(&self, listener: TcpListener, stop: CancellationToken, workers: Workers) -> BoxFuture<'static, ()> {
        // Before anything is awaited: a configuration may come meanwhile.
        self.0.force.listens(&listener);
        let serving = Arc::new(Listener {
            entrance: Arc::clone(&self.0.entrance),
            first: Arc::new(McpDoor(Arc::clone(&self.0.server))),
            doors: self.doors(),
            open: self.0.open.clone(),
        });
        Box::pin(async move { listener::serve(serving, listener, stop, &workers).await })
    }

    /// Lists the doors at the listener; the first door that knows a path answers.
    fn doors(&self) -> Vec<Arc<dyn Door>> {
        let mcp: Arc<dyn Door> = Arc::new(McpDoor(Arc::clone(&self.0.server)));
        let link: Arc<dyn Door> = Arc::new(LinkDoor(Arc::clone(&self.0.mesh)));
        let admin: Arc<dyn Door> = Arc::new(AdminDoor(self.clone()));
        let parts = self.0.installed.iter().flat_map(|part| part.doors());
        [mcp, link].into_iter().chain(parts).chain([admin]).collect()
    }

    /// Changes only differing parts; calls in flight finish on the configuration of their beginning.
    fn change(&self, config: Config) -> Vec<Change> {
        let old = self.0.gate.config.load_full();
        let changes = diff(&old, &config);
        if changes.is_empty() {
            return changes;
        }
        let lines = changes.iter().map(|change| change.to_string().into()).collect();
        self.0.gate.record.journal.append(&Record::Changed(Changed { lines, version: None, what: "configuration".into() }));
        call::judge::policy::recorded::changed(&self.0.gate.record, Some(&old), &config);
        let config = Arc::new(config);
        self.0.trust.apply(&config);
        self.0.gate.config.store(Arc::clone(&config));
        self.0.gate.record.journal.share_by(config.share());
        self.0.installed.iter().for_each(|part| part.apply(&config));
        self.0.trust.in_force();
        if old.gate != config.gate || old.policy != config.policy {
            self.0.gate.rules.approvals.apply(&self.0.gate, &config);
        }
        self.0.upstreams.mount(&config);
        self.0.gate.hub.follow(&config);
        mcp::downstream::revoked::end_revoked(&self.0.gate, &old, &config);
        call::way::decide_anew(&self.0.gate, &old, &config);
        if self.0.joins && old.join != config.join {
            self.0.mesh.membership.begin(&self.0.mesh, config.join.as_ref());
        }
        self.0.mesh.registry.config_changed();
        call::judge::pins::apply(&self.0.gate.mounts, &old, &config);
        let shows = |c: &Config| (c.profiles.clone(), c.names, c.tokens.clone(), c.policy.clone(), c.groups.clone(), c.registry.is_some());
        if shows(&old) != shows(&config) {
            self.0.gate.hub.lists_changed(None, &Kind::ALL);
        }
        changes
    }

    /// Ends every connection and child process.
    pub async fn shutdown(&self) {
        self.0.mesh.membership.leave().await;
        self.0.gate.stop.cancel();
        futures_util::future::join_all(self.0.installed.iter().map(|part| part.end_work())).await;
        let mounts = self.0.gate.mounts.all.load_full();
        futures_util::future::join_all(mounts.iter().map(|m| m.close())).await;
        self.0.gate.record.journal.close().await;
        self.0.gate.record.otlp.stop(Duration::from_secs(3)).await;
    }

    /// Waits until no mount is in its first start, or `longest` has passed. `true`: none is.
    pub async fn settled(&self, longest: Duration) -> bool {
        self.0.gate.mounts.settled_in(None, longest).await;
        self.0.gate.mounts.is_settled()
    }

    /// Waits until the state or the lists of some mount have changed since the call of this function.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.0.gate.mounts.changed.notified()
    }

    /// Lists the last refused registrations, the newest first; with `of`, only those of a segment or subserver id.
    pub fn refused(&self, of: Option<&str>) -> Vec<RefusedRegistration> {
        self.0.mesh.registry.refused.matching(of)
    }

    /// Gives the configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.0.gate.config.load_full()
    }

    /// Writes the metrics in the format of `/metrics`.
    pub fn metrics(&self) -> String {
        let journal = &self.0.gate.record.journal;
        self.0.gate.record.metrics.set_record(journal.unrecorded(), journal.removed(), journal.is_full());
        self.0.gate.record.metrics.set_over_share(journal.over_share().into_iter().map(|over| over.principal).collect());
        self.0.gate.record.metrics.encode()
    }
}

impl Parts {
    fn new(list: &PartList, config: &Arc<Config>, state_dir: PathBuf, place: Option<&Path>) -> Self {
        let node = place.map_or_else(identity::fresh, |place| identity::kept(&state_dir, place));
        let connector = Arc::new(Connector::new());
        let sources: Arc<dyn Sources> = Arc::new(SystemSources);
        let stores = DiskStores::at(&state_dir);
        let looks = Arc::clone(stores.bus());
        let gate = Arc::new(gate(config, &state_dir, stores, (node, place), &connector));
        let trust = Arc::new(Trust::new(config, Arc::clone(&connector), &state_dir));
        let entrance = Entrance::new(&gate, &trust);
        let installed = list.install(&Ground {
            entrance: Arc::clone(&entrance),
            connector: Arc::clone(&connector),
            sources: Arc::clone(&sources),
            state_dir: state_dir.clone(),
            is_lasting: place.is_some(),
        });
        let upstreams = Arc::new(Upstreams {
            gate: Arc::clone(&gate),
            connector,
            origins: Origins::default(),
            sources: Arc::clone(&sources),
            families: installed.iter().flat_map(|part| part.families()).collect(),
            shared: mcp::upstream::fleet::SharedProcesses::default(),
            state_dir: state_dir.clone(),
        });
        let server = McpServer::new(Arc::clone(&entrance));
        let mesh = Arc::new(Mesh {
            gate: Arc::clone(&gate),
            trust: Arc::clone(&trust),
            upstreams: Arc::clone(&upstreams),
            server: Arc::clone(&server),
            registry: Registry::new(),
            membership: Membership::default(),
            sources: Arc::clone(&sources),
            state_dir,
        });
        Self {
            gate,
            force: force::Force::default(),
            trust,
            entrance,
            upstreams,
            server,
            mesh,
            installed,
            sources,
            joins: place.is_some(),
            admin: Access::default(),
            open: TaskTracker::new(),
            looks,
        }
    }

    /// Begins all work beside calls.
    fn begin(&self, config: &Arc<Config>) {
        // Fails only on a second begin.
        _ = self.gate.mesh.set(Arc::clone(&self.mesh) as Arc<dyn call::tree::gate::Mesh>);
        self.upstreams.mount(config);
        Registry::begin(&self.mesh);
        if self.joins {
            self.gate.record.journal.start();
            call::judge::policy::recorded::changed(&self.gate.record, None, config);
        }
        let receivers = Receivers::new(Arc::clone(&self.gate), Arc::clone(&self.sources), Arc::clone(&self.upstreams.connector));
        Approvals::begin(&self.gate, Box::new(receivers));
        self.installed.iter().for_each(|part| part.begin());
        if self.joins && config.join.is_some() {
            self.mesh.membership.begin(&self.mesh, config.join.as_ref());
        }
        tokio::spawn(sweep(Arc::clone(&self.gate), Arc::clone(&self.server)));
        tokio::spawn(call::judge::pins::follow(Arc::clone(&self.gate)));
        tokio::spawn(trust::follow(Arc::clone(&self.trust), Arc::clone(&self.gate), besides(&self.looks)));
    }
}

/// Has news of looks watched together with the files of trust: one watch is enough for a gate.
fn besides(looks: &Arc<DiskBus>) -> Besides {
    let (file, changed) = (Arc::clone(looks), Arc::clone(looks));
    Besides { file: Box::new(move || file.watched_file()), changed: Box::new(move || changed.file_changed()) }
}

/// Makes the parts in the way of calls.
fn gate(
    config: &Arc<Config>,
    state_dir: &Path,
    stores: Arc<dyn Stores>,
    (node, place): (Node, Option<&Path>),
    connector: &Arc<Connector>,
) -> Gate {
    let journal: Arc<dyn Journal> = Arc::new(DiskJournal::new(&config.audit, state_dir, place, &node.id));
    journal.share_by(config.share());
    let otlp = Otlp::start(config.telemetry.otlp.as_ref(), Arc::clone(connector)).unwrap_or_else(|error| {
        tracing::warn!(%error, "spans are not exported");
        Otlp::off()
    });
    let rules = Rules {
        decisions: Decisions::new(),
        budget: Arc::new(MemoryBudget::default()),
        approvals: Approvals::new(&stores),
        looks: stores.looks(),
    };
    let base = GateTree {
        config: ArcSwap::new(Arc::clone(config)),
        node,
        mounts: Mounts::new(Arc::clone(config)),
        load: Load {
            shares: Arc::new(Shares::new(Arc::clone(&journal))),
            lateness: Lateness::of_workers(),
            refusals: Arc::default(),
            seen: SeenUris::new(),
            tasks: Tasks::default(),
        },
        record: Recorder { journal, metrics: Metrics::new(), otlp, traffic: Traffic::new(Instant::now()) },
        hub: Hub::default(),
        pinning: Desk::new(&stores),
        stores,
        mesh: OnceLock::new(),
        stop: CancellationToken::new(),
    };
    Gate { base: Arc::new(base), rules }
}

/// Ends sessions, parked calls and budgets that are long unused.
async fn sweep(gate: Arc<Gate>, server: Arc<McpServer>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = gate.stop.cancelled() => return,
        }
        server.parked.sweep();
        gate.record.journal.sweep();
        call::judge::policy::sweep(&*gate.rules.budget, &gate.config.load());
        for session in gate.hub.sweep(Instant::now(), gate.limits().session_idle) {
            session.end_session();
            call::way::forget(&gate, &session).await;
        }
    }
}
