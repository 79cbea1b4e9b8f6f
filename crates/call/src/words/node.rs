//! Who this gate is among gates: its id, and what it says about itself to servers. It does not know which gates stand below it: the tree does.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use mcp_proto::client::Identity;
use mcp_proto::mcpax;
use mesh_proto::id::NodeId;

/// Who we are, as a raw `serverInfo` object.
pub const SERVER_INFO: &str = concat!(r#"{"name":"banyan","title":"Banyan","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

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
    /// A gate of this id, which stays locked in `kept` as long as the gate is there.
    pub fn of(id: Arc<str>, kept: Option<File>) -> Self {
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
    fn a_gate_has_an_id_of_its_own_and_says_it() {
        let (one, two) =
            (Node::of("11111111-1111-4111-8111-111111111111".into(), None), Node::of("22222222-2222-4222-8222-222222222222".into(), None));
        assert_ne!(one.id, two.id);
        assert_eq!(peer(&one.shared().capabilities), Peer::Gate(one.id.to_string()));
        assert_eq!(peer(&one.with(b"{}").capabilities), Peer::Gate(one.id.to_string()));
    }
}
