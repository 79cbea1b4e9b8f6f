//! The family of gates and registered servers that this gate belongs to: what is below it, what is above it, and the links between.
//! Nothing is decided here.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use config::secret::Sources;
use futures_util::future::BoxFuture;
use mesh_proto::id::SessionKey;
use mesh_proto::message::Method;
use mesh_proto::refusal::Refusal;

use crate::call::caller::Caller;
use crate::child::Membership;
use crate::downstream::McpServer;
use crate::gate::{self, Gate};
use crate::registry::Registry;
use crate::trust::{self, Trust};
use crate::upstream::Upstreams;

/// The gates above and below this one, and what links to them need.
pub(crate) struct Mesh {
    pub(crate) gate: Arc<Gate>,
    pub(crate) trust: Arc<Trust>,
    /// Connections to registered servers.
    pub(crate) upstreams: Arc<Upstreams>,
    /// Answers parents, over links that this gate has dialled.
    pub(crate) server: Arc<McpServer>,
    /// Servers and gates that are registered here.
    pub(crate) registry: Registry,
    /// Parents with which this gate is registered.
    pub(crate) membership: Membership,
    pub(crate) sources: Arc<dyn Sources>,
    pub(crate) state_dir: PathBuf,
}

impl gate::Mesh for Mesh {
    fn answer<'a>(&'a self, method: &'a str, params: &'a Bytes, caller: &'a Caller) -> BoxFuture<'a, Result<String, Refusal>> {
        Box::pin(async move {
            if method == Method::Parent.as_str() {
                return self.membership.ask(method, params).await;
            }
            let identity = trust::identity(caller);
            let way = (trust::is_private(caller), trust::is_here(caller));
            self.registry.request_by_http(&identity, way, method, params.clone()).await
        })
    }

    fn mounts_changed(&self) {
        self.membership.mounts_changed();
    }

    fn relay(&self, session: SessionKey, whole: Bytes) {
        self.registry.relay(session, whole);
    }

    fn registered(&self) -> Vec<String> {
        self.registry.subtree().borrow().iter().map(ToString::to_string).collect()
    }

    fn dropped(&self) -> String {
        self.registry.dropped.told()
    }
}
