//! Requests of agents in any binding with a codec, read as calls of tools, and their answers. Runs no call, and knows no door.

pub mod ancestry;
pub mod form;
pub mod heard;
pub mod incoming;
pub mod key;
pub mod pair;
pub mod target;

/// Path of the endpoint.
pub const TRANSLATE: &str = "/aepb/translate";

/// Raw `clientInfo` of callers at the endpoint.
pub const CLIENT: &[u8] = b"{\"name\":\"aepb\"}";
