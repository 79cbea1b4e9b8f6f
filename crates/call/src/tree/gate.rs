//! The tree of a gate, and what mounts and lists go through. Each part belongs to one concern, and a function takes the part that it uses. What
//! one family alone needs (rooms, links, the listener) is not here but in the structs of that family; what judges stands in `judge`.

pub mod mounts;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use config::resolved::{Config, Limits};
use futures_util::future::BoxFuture;
use mesh_proto::id::SessionKey;
use mesh_proto::refusal::Refusal;
use runtime::lateness::Lateness;
use store::{Journal, Stores};
use telemetry::metrics::Metrics;
use telemetry::otlp::Otlp;
use tokio_util::sync::CancellationToken;

use crate::tree::caller::Caller;
use crate::tree::desk::Desk;
use crate::tree::hub::Hub;
use crate::tree::remembered::{SeenUris, Tasks};
use crate::words::node::Node;
use crate::words::refusals::Refusals;
use crate::words::shares::Shares;

pub use crate::tree::gate::mounts::Mounts;

/// Everything that mounts and lists go through.
pub struct GateTree {
    pub config: ArcSwap<Config>,
    pub node: Node,
    pub mounts: Mounts,
    pub record: Recorder,
    pub load: Load,
    pub hub: Hub,
    /// Lists that wait to be held against what is known of their servers.
    pub pinning: Arc<Desk>,
    /// What outlives a run.
    pub stores: Arc<dyn Stores>,
    /// The family of gates that this one belongs to, once it has begun.
    pub mesh: OnceLock<Arc<dyn Mesh>>,
    pub stop: CancellationToken,
}

/// Everything that is written down of calls.
pub struct Recorder {
    pub journal: Arc<dyn Journal>,
    pub metrics: Metrics,
    pub otlp: Otlp,
}

/// Everything that a caller can make a gate hold.
pub struct Load {
    pub shares: Arc<Shares>,
    pub lateness: Lateness,
    pub refusals: Arc<Refusals>,
    pub seen: SeenUris,
    pub tasks: Tasks,
}

/// The gates above and below this one, as far as calls and lists need them.
pub trait Mesh: Send + Sync {
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

impl GateTree {
    /// The gates around this one; `None`: it begins, or stands alone.
    pub fn mesh(&self) -> Option<&dyn Mesh> {
        self.mesh.get().map(|mesh| &**mesh)
    }

    /// The bounds in force.
    pub fn limits(&self) -> Limits {
        self.config.load().limits.clone()
    }
}
