//! The gate as a server: streamable HTTP of both eras on one endpoint, and stdio.
//!
//! Knows no request's meaning; `call` does.

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

pub use crate::downstream::parked::ParkedCalls;
use door::entrance::Entrance;

/// The gate as an MCP server.
pub struct McpServer {
    pub entrance: Arc<Entrance>,
    /// Calls that wait for answers of their callers.
    pub parked: ParkedCalls,
}

impl McpServer {
    /// Makes the server behind an entrance.
    pub fn new(entrance: Arc<Entrance>) -> Arc<Self> {
        let parked = ParkedCalls::of_gate(&entrance.gate.node.id);
        Arc::new(Self { entrance, parked })
    }
}
