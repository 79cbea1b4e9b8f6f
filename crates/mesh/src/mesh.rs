//! The mesh of gates and registered servers around this gate: below, above, and the links between. Decides nothing.

use std::path::PathBuf;
use std::sync::Arc;

use banyan_model::{Principal, Segment};
use bytes::Bytes;
use config::secret::Sources;
use futures_util::future::BoxFuture;
use mesh_proto::id::SessionKey;
use mesh_proto::message::Method;
use mesh_proto::refusal::Refusal;

use crate::child::Membership;
use crate::registry::Registry;
use call::judge::gate::Gate;
use call::tree::caller::Caller;
use call::tree::gate;
use mcp::downstream::McpServer;
use mcp::upstream::Upstreams;
use trust;
use trust::Trust;

/// The gates above and below this one, with the resources of links.
pub struct Mesh {
    pub gate: Arc<Gate>,
    pub trust: Arc<Trust>,
    /// Connections to registered servers.
    pub upstreams: Arc<Upstreams>,
    /// Answers parents, over links dialled by this gate.
    pub server: Arc<McpServer>,
    /// Servers and gates registered here.
    pub registry: Registry,
    /// Parents of this gate.
    pub membership: Membership,
    pub sources: Arc<dyn Sources>,
    pub state_dir: PathBuf,
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

    fn relay_mount(&self, mount: &Segment, principal: Principal, whole: Bytes) {
        self.registry.relay_mount(mount, principal, whole);
    }

    fn registered(&self) -> Vec<String> {
        self.registry.subtree().borrow().iter().map(ToString::to_string).collect()
    }

    fn dropped(&self) -> String {
        self.registry.dropped.to_json()
    }
}
