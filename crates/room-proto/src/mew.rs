//! A second language at the same table: clients of MEW v0.4, which grew out of MCPx v0.1, sit in a room as everybody else does.
//!
//! What a MEW peer sends becomes an envelope of MCPx before the room judges it, and what the room sends it becomes one of MEW, so that there
//! is one room, one set of rules and one record. The kind of MEW names no method: MEW peers believe the payload. So METHOD and CONTEXT are
//! taken from the payload on the way in, and on the way out a message whose kind and payload differ is held back (MCPx 4.3). Kinds
//! that MEW v0.4 does not have stay out. Who a peer is, and which of its messages are taken, is not decided here.

mod capability;
mod inward;
mod join;
mod memory;
mod outward;
mod write;

use bytes::Bytes;

pub use capability::{object_of, pattern_of};
pub use join::{Join, NotJoined, told};

use crate::participant::Mismatch;
use crate::refusal::Refusal;
use memory::Memory;

/// The version that is spoken.
pub const PROTOCOL: &str = "mew/v0.4";
/// Versions that are read.
const READ: [&str; 2] = [PROTOCOL, "mew/v0.3"];
/// Where the ids stand in an envelope of MCPx when there is not just one: it has a text where MEW has a list.
const ALL_IDS: &str = "correlation_ids";
/// How many there may be.
const MAX_IDS: usize = 100;

/// The classes of MCP.
const PROPOSAL: &str = "mcp/proposal";
const REJECT: &str = "mcp/reject";
const REQUEST: &str = "mcp/request";
const RESPONSE: &str = "mcp/response";
const WITHDRAW: &str = "mcp/withdraw";

/// What clients of MEW ask of their gateway, and this one does not do for messages.
const ADMINS: [&str; 2] = ["capability/", "space/"];
const STREAMS: [&str; 4] = ["stream/grant-write", "stream/request", "stream/revoke-write", "stream/transfer-ownership"];

/// The kinds of MEW v0.4 that are the same in MCPx. Data of streams are frames without an envelope in MEW, and messages here.
const SAME: [&str; 20] = [
    "chat",
    "chat/acknowledge",
    "chat/cancel",
    "participant/clear",
    "participant/compact",
    "participant/compact-done",
    "participant/forget",
    "participant/pause",
    "participant/request-status",
    "participant/restart",
    "participant/resume",
    "participant/shutdown",
    "participant/status",
    "reasoning/cancel",
    "reasoning/conclusion",
    "reasoning/start",
    "reasoning/thought",
    "stream/close",
    "stream/data",
    "stream/open",
];

/// What a message of a MEW peer is to the room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inward {
    /// An envelope of MCPx, for the room to judge.
    Envelope(Bytes),
    /// It asks to join, and is here.
    Join,
}

/// What a message of the room is to MEW peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outward {
    /// The same in MEW.
    Envelope(Bytes),
    /// Its kind says one thing and its payload another: nobody who believes payloads gets it.
    Held {
        /// Whose it is.
        from: String,
        /// What does not hold.
        why: Mismatch,
    },
    /// MEW v0.4 has no such thing.
    Unknown,
}

/// Between one room and the MEW peers in it.
#[derive(Debug, Default)]
pub struct Translator {
    /// What was asked and proposed: an answer in MCPx is called as what it answers.
    memory: Memory,
}

impl Translator {
    /// A message of a MEW peer, of at most `most` bytes.
    ///
    /// # Errors
    /// Why it can be none of MCPx, and its id if it has a legal one.
    pub fn inward(&self, text: &[u8], most: usize) -> Result<Inward, crate::envelope::Refused> {
        inward::read(&self.memory, text, most)
    }

    /// A message that the room sends.
    pub fn outward(&mut self, envelope: &[u8]) -> Outward {
        outward::write(&mut self.memory, envelope)
    }
}

fn invalid(member: &'static str, why: &'static str) -> Refusal {
    Refusal::Invalid { member, why }
}

#[cfg(test)]
mod tests;
