//! The parts of a gate that calls go through. Each belongs to one concern, and a function takes the part that it uses. What one family alone
//! needs (rooms, links, the listener) is not here but in the structs of that family.

mod mounts;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use config::resolved::{Config, Limits};
use futures_util::future::BoxFuture;
use mesh_proto::id::SessionKey;
use mesh_proto::refusal::Refusal;
use runtime::lateness::Lateness;
use store::{Budgets, Bus, Journal, Stores};
use telemetry::metrics::Metrics;
use telemetry::otlp::Otlp;
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::call::caller::Caller;
use crate::call::refusals::Refusals;
use crate::call::remember::{SeenUris, Tasks};
use crate::hub::Hub;
use crate::node::Node;
use crate::pins::Desk;
use crate::policy::Decisions;
use crate::shares::Shares;

pub(crate) use mounts::Mounts;

/// Everything that calls and lists go through.
pub(crate) struct Gate {
    pub(crate) config: ArcSwap<Config>,
    pub(crate) node: Node,
    pub(crate) mounts: Mounts,
    pub(crate) rules: Rules,
    pub(crate) record: Recorder,
    pub(crate) load: Load,
    pub(crate) hub: Hub,
    /// What outlives a run.
    pub(crate) stores: Arc<dyn Stores>,
    /// The family of gates that this one belongs to, once it has begun.
    pub(crate) mesh: OnceLock<Arc<dyn Mesh>>,
    pub(crate) stop: CancellationToken,
}

/// Everything that says whether a call may be made.
pub(crate) struct Rules {
    /// The last decisions of the rules.
    pub(crate) decisions: Decisions,
    /// What callers have spent of their budgets.
    pub(crate) budget: Arc<dyn Budgets>,
    /// Calls that wait for somebody to agree.
    pub(crate) approvals: Approvals,
    /// Where lists wait to be held against what is known of their servers.
    pub(crate) pinning: Arc<Desk>,
    /// Wakes when somebody looked at definitions, by whichever gate of this state directory.
    pub(crate) looks: Arc<dyn Bus>,
}

/// Everything that is written down of calls.
pub(crate) struct Recorder {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) metrics: Metrics,
    pub(crate) otlp: Otlp,
}

/// Everything that a caller can make a gate hold.
pub(crate) struct Load {
    pub(crate) shares: Arc<Shares>,
    pub(crate) lateness: Lateness,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) seen: SeenUris,
    pub(crate) tasks: Tasks,
}

/// The gates above and below this one, as far as calls and lists need them.
pub(crate) trait Mesh: Send + Sync {
    /// Answers a request of MCP-AX that came as an ordinary request: the raw result, or why it is refused.
    fn answer<'a>(&'a self, method: &'a str, params: &'a Bytes, caller: &'a Caller) -> BoxFuture<'a, Result<String, Refusal>>;

    /// Hears that the gates below mounts may be others.
    fn mounts_changed(&self);

    /// Passes on to everybody what a registered server notified.
    fn relay(&self, session: SessionKey, whole: Bytes);

    /// The ids of the gates below that are registered.
    fn registered(&self) -> Vec<String>;

    /// Counts of dropped notifications, as JSON.
    fn dropped(&self) -> String;
}

impl Gate {
    /// The gates around this one; `None`: it begins, or stands alone.
    pub(crate) fn mesh(&self) -> Option<&dyn Mesh> {
        self.mesh.get().map(|mesh| &**mesh)
    }

    /// The bounds in force.
    pub(crate) fn limits(&self) -> Limits {
        self.config.load().limits.clone()
    }
}
