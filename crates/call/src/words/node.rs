//! Who this gate is among gates: its id, and what it says about itself to servers. It does not know which gates stand below it: the tree does.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use disk::ids;
use mcp_proto::client::Identity;
use mcp_proto::mcpax;
use mesh_proto::id::NodeId;

use crate::way::SERVER_INFO;

/// What a connection that everybody shares says Banyan's clients can do: whatever any of them might.
const SHARED_CAPABILITIES: &[u8] = br#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{}}"#;

/// A gate as others see it.
#[derive(Debug)]
pub struct Node {
    /// Its aggregator id, a UUID.
    pub id: Arc<str>,
    shared: Bytes,
    /// What the id is kept in. It is locked, so that no two gates that run have the same.
    _kept: Option<File>,
}

impl Node {
    /// A gate with an id for as long as the process lasts.
    pub fn new() -> Self {
        Self::of(ids::fresh(), None)
    }

    /// The gate of `place`, with the id that it had before (MCP-AX 6.1). `state_dir` keeps the ids of all gates of this machine.
    pub fn kept(state_dir: &Path, place: &Path) -> Self {
        match ids::keep(state_dir, place) {
            Ok((id, file)) => Self::of(id, Some(file)),
            Err(error) => {
                let place = place.display();
                tracing::warn!(%place, %error, "the id of this gate is not kept: parents will take it for another one after a restart");
                Self::new()
            }
        }
    }

    fn of(id: Arc<str>, kept: Option<File>) -> Self {
        let shared = mcpax::declared(SHARED_CAPABILITIES, &id).into();
        Self { id, shared, _kept: kept }
    }

    /// Its id as MCP-AX counts them.
    pub fn node_id(&self) -> NodeId {
        // It is always one: it was made or read as such.
        NodeId::parse(&self.id).unwrap_or(NodeId::new(0))
    }

    /// What is said over a connection that everybody shares.
    pub fn shared(&self) -> Identity {
        Identity { info: Self::info(), capabilities: self.shared.clone() }
    }

    /// What is said to another gate on behalf of a client that can do `capabilities`.
    pub fn with(&self, capabilities: &[u8]) -> Identity {
        Identity { info: Self::info(), capabilities: mcpax::declared(capabilities, &self.id).into() }
    }

    /// Our raw `clientInfo`.
    pub fn info() -> Bytes {
        Bytes::from_static(SERVER_INFO.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use mcp_proto::mcpax::{Peer, peer};

    use super::*;

    #[test]
    fn ax_20_a_gate_keeps_its_id_over_restarts_and_no_two_that_run_have_one() {
        let (state, place) = (tempfile::tempdir().unwrap(), Path::new("/etc/a.toml"));
        let first = Node::kept(state.path(), place);
        let (beside, elsewhere) = (Node::kept(state.path(), place), Node::kept(state.path(), Path::new("/etc/b.toml")));
        assert!(first.id != beside.id && first.id != elsewhere.id);
        let id = Arc::clone(&first.id);
        drop(first);
        assert_eq!(Node::kept(state.path(), place).id, id);
        assert_ne!(NodeId::parse(&id), None);
    }

    #[test]
    fn a_gate_has_an_id_of_its_own_and_says_it() {
        let (one, two) = (Node::new(), Node::new());
        assert_ne!(one.id, two.id);
        assert_eq!(peer(&one.shared().capabilities), Peer::Gate(one.id.to_string()));
        assert_eq!(peer(&one.with(b"{}").capabilities), Peer::Gate(one.id.to_string()));
    }
}
