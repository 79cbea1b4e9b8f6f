//! Who calls us: streamable HTTP of both eras on one endpoint, and stdio.
//!
//! What a request means is not known here; `call` does that.

pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod door;
pub(crate) mod doors;
pub(crate) mod endpoint;
pub(crate) mod entrance;
mod events;
pub(crate) mod exchange;
pub(crate) mod held;
pub(crate) mod http;
pub(crate) mod initialize;
pub(crate) mod known;
pub(crate) mod lane;
pub(crate) mod mcp;
pub(crate) mod origin;
mod parked;
mod plain;
mod pour;
pub(crate) mod reply;
pub(crate) mod revoked;
mod rewind;
pub(crate) mod session;
pub(crate) mod sign_in;
mod socket;
mod stateless;
pub(crate) mod stdio;
pub(crate) mod subscriptions;

use std::sync::Arc;

use entrance::Entrance;
pub(crate) use parked::Parked;

/// The gate as an MCP server.
pub(crate) struct McpServer {
    pub(crate) entrance: Arc<Entrance>,
    /// Calls whose callers are asked for something.
    pub(crate) parked: Parked,
}

impl McpServer {
    pub(crate) fn new(entrance: Arc<Entrance>) -> Arc<Self> {
        let parked = Parked::of(&entrance.gate.node.id);
        Arc::new(Self { entrance, parked })
    }
}
