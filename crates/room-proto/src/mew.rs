//! A second language at the same table: clients of MEW v0.4, the successor of MCPx v0.1, as ordinary participants of a room.
//!
//! Messages of a MEW peer become envelopes of MCPx before the room judges them, and messages of the room become envelopes of MEW: one room,
//! one set of rules, one record. A kind of MEW names no method, since MEW peers believe the payload. So METHOD and CONTEXT are taken from
//! the payload on the way in, and on the way out a message whose kind and payload differ is held back (MCPx 4.3). Kinds unknown to MEW v0.4
//! stay out. Decides neither the identity of a peer nor the acceptance of a message.

mod capability;
mod inward;
mod join;
mod memory;
mod outward;
mod write;

use bytes::Bytes;

pub use capability::{object_of, pattern_of};
pub use join::{Join, NotJoined, error_envelope};

use crate::participant::Mismatch;
use crate::refusal::Refusal;
use memory::Memory;

/// Version spoken.
pub const PROTOCOL: &str = "mew/v0.4";
/// Versions read.
const READ: [&str; 2] = [PROTOCOL, "mew/v0.3"];
/// Member of an MCPx envelope for several correlation ids: MCPx has a text where MEW has a list.
const ALL_IDS: &str = "correlation_ids";
/// Most correlation ids of a message.
const MAX_IDS: usize = 100;

/// Classes of MCP.
const PROPOSAL: &str = "mcp/proposal";
const REJECT: &str = "mcp/reject";
const REQUEST: &str = "mcp/request";
const RESPONSE: &str = "mcp/response";
const WITHDRAW: &str = "mcp/withdraw";

/// Requests of MEW clients to their gateway which this gateway does not serve by messages.
const ADMINS: [&str; 2] = ["capability/", "space/"];
const STREAMS: [&str; 4] = ["stream/grant-write", "stream/request", "stream/revoke-write", "stream/transfer-ownership"];

/// Kinds of MEW v0.4 with the same name in MCPx. Data of streams are frames without an envelope in MEW, and messages here.
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

/// Translation of a MEW peer's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inward {
    /// An envelope of MCPx, for the room to judge.
    Envelope(Bytes),
    /// A request to join by a peer who has joined.
    Join,
}

/// Translation of a room's message for MEW peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outward {
    Envelope(Bytes),
    /// Kind and payload differ: no believer of payloads gets the message.
    Held {
        from: String,
        why: Mismatch,
    },
    /// A kind without a counterpart in MEW v0.4.
    Unknown,
}

/// Translator between a room and its MEW peers.
#[derive(Debug, Default)]
pub struct Translator {
    /// Requests and proposals: an answer in MCPx bears the kind of its request.
    memory: Memory,
}

impl Translator {
    /// Translates a message of a MEW peer, of at most `most` bytes.
    ///
    /// # Errors
    /// The fault, with the id of the message where legal.
    pub fn inward(&self, text: &[u8], most: usize) -> Result<Inward, crate::envelope::RefusedEnvelope> {
        inward::read(&self.memory, text, most)
    }

    /// Translates a message of the room.
    pub fn outward(&mut self, envelope: &[u8]) -> Outward {
        outward::write(&mut self.memory, envelope)
    }
}

fn invalid(member: &'static str, why: &'static str) -> Refusal {
    Refusal::Invalid { member, why }
}

#[cfg(test)]
mod tests;
