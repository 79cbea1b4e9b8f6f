//! Identity of this gate among gates: its id, and its description for servers. Does not know the gates below; the tree does.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use mcp_proto::client::Identity;
use mcp_proto::mcpax;
use mesh_proto::id::NodeId;

/// Our identity, as a raw `serverInfo` object.
pub const SERVER_INFO: &str = concat!(r#"{"name":"banyan","title":"Banyan","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// Client capabilities declared on a shared connection: all that any client might have.
const SHARED_CAPABILITIES: &[u8] = br#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{}}"#;

/// A gate as others see it.
#[derive(Debug)]
pub struct Node {
    /// Aggregator id, a UUID.
    pub id: Arc<str>,
    shared: Bytes,
    /// Locked file of the id, so that no two running gates have the same.
    _kept: Option<File>,
}

impl Node {
    /// Makes a gate of this id, which `kept` reserves as long as the gate runs.
    pub fn with_id(id: Arc<str>, kept: Option<File>) -> Self {
        let shared = mcpax::declared(SHARED_CAPABILITIES, &id).into();
        Self { id, shared, _kept: kept }
    }

    /// Id in the form of MCP-AX.
    pub fn node_id(&self) -> NodeId {
        // The id was made or read as one.
        NodeId::parse(&self.id).unwrap_or(NodeId::new(0))
    }

    /// Identity on a shared connection.
    pub fn shared(&self) -> Identity {
        Identity { info: Self::info(), capabilities: self.shared.clone() }
    }

    /// Identity for another gate, on behalf of a client with `capabilities`.
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
    fn a_gate_tells_its_own_id() {
        let (one, two) = (
            Node::with_id("11111111-1111-4111-8111-111111111111".into(), None),
            Node::with_id("22222222-2222-4222-8222-222222222222".into(), None),
        );
        assert_ne!(one.id, two.id);
        assert_eq!(peer(&one.shared().capabilities), Peer::Gate(one.id.to_string()));
        assert_eq!(peer(&one.with(b"{}").capabilities), Peer::Gate(one.id.to_string()));
    }
}
