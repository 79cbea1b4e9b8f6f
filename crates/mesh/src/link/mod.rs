//! One connection between a gate and the parent that it dialled, turned round: the parent calls, the child serves (MCP-AX 6, ours).
//!
//! The child sends `GET /link` with `Upgrade: mcpax`; from the `101` on HTTP/2 is spoken, with the parent as its client. Its requests are
//! those of any downstream client. One of its streams stays open for lines of JSON-RPC in both directions, by which the child registers.
//! Who is registered, and when a link is dialled, is not decided here.

pub mod child;
pub mod control;
pub mod link_door;
pub mod parent;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use crate::link::child::{Dialled, Wanted, dial};
pub use crate::link::control::{Control, Said};
pub use crate::link::link_door::LinkDoor;
pub use crate::link::parent::{Link, take};

/// What is spoken after the upgrade.
pub const PROTOCOL: &str = "mcpax";

/// Where a parent takes links.
pub const PATH: &str = "/link";

/// Where the child takes the stream of lines.
const CONTROL: &str = "/link/control";

/// The field in which the child says how often, in milliseconds, it will send heartbeats.
pub const BEAT: &str = "mcpax-heartbeat-ms";

/// How often each side looks whether the other one is there, at most and at least.
const LOOK: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// How long calls under way may go on over a link that is given up.
const DRAIN: Duration = Duration::from_secs(10);

/// How much of one long result may be under way, in bytes. At 50 ms there and back this lets 20 MB pass in a second.
const STREAM_WINDOW: u32 = 1 << 20;

/// How much of all of them: so much that callers who read slowly can't hold up the others.
const LINK_WINDOW: u32 = 1 << 30;

/// How large the pieces are in which results travel, in bytes.
const FRAME: u32 = 64 << 10;

/// How many calls a link carries at once. What may be under way to one mount bounds it more closely.
const STREAMS: u32 = 4096;

/// How often to look whether the other side is there, and for how long it may be silent then: both together stay within one interval of
/// heartbeats, so that a link on which nothing arrives any more is given up well before three of them.
fn look(beat: Duration) -> Duration {
    let [least, most] = LOOK;
    if beat.is_zero() { most } else { (beat / 2).clamp(least, most) }
}
