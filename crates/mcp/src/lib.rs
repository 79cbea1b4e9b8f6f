//! MCP in both directions: the gate as a server, and servers as upstreams. What may be called is not decided here.

pub mod bridge;
pub mod downstream;
pub mod upstream;
