//! JSON-RPC 2.0 and MCP, both eras, as pure functions and state machines over bytes.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time comes in as an argument, bytes go in and out.

pub mod catalog;
pub mod client;
pub mod cursor;
pub mod envelope;
pub mod era;
pub mod field;
pub mod glob;
pub mod header;
pub mod hidden;
pub mod http1;
pub mod lines;
pub mod mcpax;
pub mod projection;
pub mod recent;
pub mod resource_index;
pub mod splice;
pub mod sse;
pub mod template;

pub use ::json;
