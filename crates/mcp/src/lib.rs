//! MCP in both directions: the gate as a server, and servers as upstreams. Does not decide about calls.

pub mod bridge;
pub mod downstream;
pub mod upstream;
