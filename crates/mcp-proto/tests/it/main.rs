//! The protocol of MCP over bytes, from outside. Opens no connection.

mod header;
mod http1;
mod json;
mod projection;
mod resources;
mod streams;
