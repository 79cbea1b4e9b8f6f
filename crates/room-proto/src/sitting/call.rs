//! Calls of a server in a room, for the driver and in memory. Decides nothing.

use bytes::Bytes;
use json::{Members, quote};

use super::ChainId;
use crate::envelope::{Envelope, MAX_ID};
use crate::name::ParticipantId;
use crate::participant::Mismatch;

/// Methods served in a room.
pub const SERVED: [&str; 9] = [
    "completion/complete",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tools/call",
    "tools/list",
];

/// Names of room and server, and bounds of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    pub room: String,
    /// The server's id in the room.
    pub name: ParticipantId,
    /// Simultaneous calls.
    pub calls: usize,
    /// Simultaneous calls of one participant.
    pub of_one: usize,
    /// Proposals waiting for the gate; further proposals are left to the room.
    pub proposals: usize,
    /// Longest message sent, in bytes.
    pub message_bytes: usize,
}

/// Number of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call of the server, requested or proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCall {
    pub call: CallId,
    /// The caller or proposer.
    pub by: String,
    /// Among [`SERVED`].
    pub method: String,
    /// A raw object.
    pub params: Bytes,
    /// The raw JSON-RPC id.
    pub id: Bytes,
}

impl ServerCall {
    pub(super) fn from_envelope(call: CallId, envelope: &Envelope<'_>, params: Bytes) -> Self {
        let method = envelope.kind().method().unwrap_or_default().to_owned();
        Self { call, by: envelope.from.to_string(), method, params, id: id(envelope).into() }
    }
}

/// Work for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The gate's own request was the first to fulfil the proposal: make the call. Nobody else does.
    Approved(CallId),
    /// Make a call, and hand in the answer.
    Call(ServerCall),
    /// Stop a call nobody waits for any more, or its wait at the gate.
    Cancel {
        call: CallId,
        /// The reason for people.
        why: String,
    },
    /// A message was dropped for a mismatch.
    Dropped { from: String, why: Mismatch },
    /// Put a call before people, to be made only after their approval and [`Output::Approved`].
    Propose(ServerCall),
    /// Send a message in the server's name.
    Send(Bytes),
    /// Send a message in the gate's name.
    SendAsGate(Bytes),
}

/// An unfinished call.
#[derive(Debug)]
pub(super) struct Underway {
    pub(super) from: String,
    /// The raw request; `None`: proposed, and waiting.
    pub(super) request: Option<Bytes>,
    pub(super) proposal: Option<ChainId>,
    /// The raw params of a proposal, an object; empty for a request.
    pub(super) params: Bytes,
    /// The raw JSON-RPC id.
    pub(super) id: Vec<u8>,
    /// The id of the envelope, as JSON.
    pub(super) envelope: Vec<u8>,
}

impl Underway {
    pub(super) fn requested(envelope: &Envelope<'_>, bytes: &Bytes) -> Self {
        Self { request: Some(bytes.clone()), ..Self::new(envelope) }
    }

    pub(super) fn proposed(envelope: &Envelope<'_>, proposal: ChainId, params: Bytes) -> Self {
        Self { proposal: Some(proposal), params, ..Self::new(envelope) }
    }

    /// Tells whether a participant requested the call itself. A call proposed and approved is nobody's to cancel.
    pub(super) fn is_asked_by(&self, id: &str) -> bool {
        self.proposal.is_none() && self.from == id
    }

    fn new(envelope: &Envelope<'_>) -> Self {
        let envelope_id = quote(&envelope.id).into_bytes();
        Self {
            from: envelope.from.to_string(),
            request: None,
            proposal: None,
            params: Bytes::new(),
            id: id(envelope),
            envelope: envelope_id,
        }
    }
}

/// Gives the raw JSON-RPC id. A proposal has none: the envelope's id takes its place.
fn id(envelope: &Envelope<'_>) -> Vec<u8> {
    Members::again(envelope.payload)
        .get("id")
        .filter(|id| id.len() <= MAX_ID)
        .map_or_else(|| quote(&envelope.id).into_bytes(), <[u8]>::to_vec)
}

/// Writes a raw `error` object.
pub(super) fn error_object(code: i64, why: &str) -> String {
    format!("{{\"code\":{code},\"message\":{}}}", quote(why))
}
