//! A connection between a gate and a parent dialled by that gate, turned round: the parent calls, the child serves (MCP-AX 6, ours).
//!
//! The child sends `GET /link` with `Upgrade: mcpax`; after the `101` HTTP/2 is spoken, with the parent as client. Its requests are like
//! those of any downstream client. One stream stays open for lines of JSON-RPC in both directions, over which the child registers. Does not
//! choose the time to dial, and knows no registrations.

pub mod child;
pub mod control;
pub mod link_door;
pub mod parent;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use crate::link::child::{DialTerms, DialledLink, dial};
pub use crate::link::control::{Control, LinkMessage};
pub use crate::link::link_door::LinkDoor;
pub use crate::link::parent::{Link, accept};

/// Protocol after the upgrade.
pub const PROTOCOL: &str = "mcpax";

/// Path of links at a parent.
pub const PATH: &str = "/link";

/// Path of the stream of lines at a child.
const CONTROL: &str = "/link/control";

/// Header field with the child's interval of heartbeats, in milliseconds.
pub const BEAT: &str = "mcpax-heartbeat-ms";

/// Shortest and longest interval of checks for the other side.
const LOOK: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// Time for calls under way over a link given up.
const DRAIN: Duration = Duration::from_secs(10);

/// Bytes under way of one long result. With a round trip of 50 ms, 20 MB pass in a second.
const STREAM_WINDOW: u32 = 1 << 20;

/// Bytes under way of all results: so many that slow readers can't hold up the others.
const LINK_WINDOW: u32 = 1 << 30;

/// Size of the pieces of results, in bytes.
const FRAME: u32 = 64 << 10;

/// Simultaneous calls over a link. The bound of a mount is lower.
const STREAMS: u32 = 4096;

/// Gives the interval of checks for the other side, and the patience for an answer: both together stay within one interval of heartbeats,
/// so that a dead link is given up well before three of them.
fn look(beat: Duration) -> Duration {
    let [least, most] = LOOK;
    if beat.is_zero() { most } else { (beat / 2).clamp(least, most) }
}
