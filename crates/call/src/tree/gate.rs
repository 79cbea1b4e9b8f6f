//! The tree of a gate, with the parts that mounts and lists use. Each part has a single concern, and a function takes the part it uses. Parts
//! of a single family (rooms, links, the listener) are not here but in that family's own structs; the parts that judge stand in `judge`.

pub mod mounts;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use banyan_model::{Principal, Segment};
use bytes::Bytes;
use config::resolved::{Config, Limits};
use futures_util::future::BoxFuture;
use mesh_proto::id::SessionKey;
use mesh_proto::refusal::Refusal;
use runtime::lateness::Lateness;
use store::{Journal, Stores};
use telemetry::metrics::Metrics;
use telemetry::otlp::Otlp;
use telemetry::traffic::Traffic;
use tokio_util::sync::CancellationToken;

use crate::tree::caller::Caller;
use crate::tree::desk::Desk;
use crate::tree::hub::Hub;
use crate::tree::remembered::{SeenUris, Tasks};
use crate::words::node::Node;
use crate::words::refusals::Refusals;
use crate::words::shares::Shares;

pub use crate::tree::gate::mounts::Mounts;

/// Parts used by mounts and lists.
pub struct GateTree {
    pub config: ArcSwap<Config>,
    pub node: Node,
    pub mounts: Mounts,
    pub record: Recorder,
    pub load: Load,
    pub hub: Hub,
    /// Desk where lists wait to be compared with known definitions.
    pub pinning: Arc<Desk>,
    /// Stores of data that outlives a run.
    pub stores: Arc<dyn Stores>,
    /// Mesh of this gate, once it has begun.
    pub mesh: OnceLock<Arc<dyn Mesh>>,
    pub stop: CancellationToken,
}

/// Parts that record calls.
pub struct Recorder {
    pub journal: Arc<dyn Journal>,
    pub metrics: Metrics,
    pub otlp: Otlp,
    pub traffic: Traffic,
}

/// Bounded memory that callers can fill.
pub struct Load {
    pub shares: Arc<Shares>,
    pub lateness: Lateness,
    pub refusals: Arc<Refusals>,
    pub seen: SeenUris,
    pub tasks: Tasks,
}

/// Gates above and below this one, as far as calls and lists need them.
pub trait Mesh: Send + Sync {
    /// Answers a request of MCP-AX that came as an ordinary request: the raw result, or the refusal.
    fn answer<'a>(&'a self, method: &'a str, params: &'a Bytes, caller: &'a Caller) -> BoxFuture<'a, Result<String, Refusal>>;

    /// Notes that the gates below mounts may have changed.
    fn mounts_changed(&self);

    /// Passes a notification of a registered server on to everybody.
    fn relay(&self, session: SessionKey, whole: Bytes);

    /// Passes a notification of a mount on to gates above of a principal.
    fn relay_mount(&self, mount: &Segment, principal: Principal, whole: Bytes);

    /// Ids of registered gates below.
    fn registered(&self) -> Vec<String>;

    /// Counts of dropped notifications, as JSON.
    fn dropped(&self) -> String;
}

impl GateTree {
    /// Mesh of this gate, if begun.
    pub fn mesh(&self) -> Option<&dyn Mesh> {
        self.mesh.get().map(|mesh| &**mesh)
    }

    /// Limits in force.
    pub fn limits(&self) -> Limits {
        self.config.load().limits.clone()
    }
}
