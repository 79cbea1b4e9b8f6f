//! Reasons of a mount for taking no call at present. What a caller is told of them is not known here.

use std::time::SystemTime;

use mesh_proto::degraded::DegradedTool;

/// A mount that takes no call at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The server is registered and not there (AX-61), since then on the wall clock.
    Degraded(DegradedTool, SystemTime),
    /// The mount has no connection.
    Unconnected { mount: String, why: String, since: SystemTime, next_try: Option<SystemTime> },
}
