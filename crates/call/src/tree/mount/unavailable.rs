//! Reasons of a mount for taking no call at present. Not their wording for callers.

use std::time::SystemTime;

use mesh_proto::degraded::DegradedTool;

/// A mount that takes no call at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The registered server is away (AX-61), since that time of the wall clock.
    Degraded(DegradedTool, SystemTime),
    /// The mount has no connection.
    Unconnected { mount: String, why: String, since: SystemTime, next_try: Option<SystemTime> },
}
