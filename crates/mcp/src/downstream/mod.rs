//! Who calls us: streamable HTTP of both eras on one endpoint, and stdio.
//!
//! What a request means is not known here; `call` does that.

pub mod endpoint;
pub mod exchange;
pub mod initialize;
pub mod mcp;
pub mod parked;
pub mod plain;
pub mod revoked;
pub mod stateless;
pub mod stdio;

use std::sync::Arc;

pub use crate::downstream::parked::Parked;
use door::entrance::Entrance;

/// The gate as an MCP server.
pub struct McpServer {
    pub entrance: Arc<Entrance>,
    /// Calls whose callers are asked for something.
    pub parked: Parked,
}

impl McpServer {
    /// Makes the server behind an entrance.
    pub fn new(entrance: Arc<Entrance>) -> Arc<Self> {
        let parked = Parked::of(&entrance.gate.node.id);
        Arc::new(Self { entrance, parked })
    }
}
