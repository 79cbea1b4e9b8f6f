//! The calls of a server that sits in a room, as its driver gets them and as they are remembered meanwhile. Decides nothing.

use bytes::Bytes;
use json::{Members, quote};

use super::ChainId;
use crate::envelope::{Envelope, MAX_ID};
use crate::name::ParticipantId;
use crate::participant::Mismatch;

/// What may be asked of a server in a room.
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

/// Who sits there, and how much may be asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The name of the room.
    pub room: String,
    /// The server's id in it.
    pub name: ParticipantId,
    /// Calls under way at once.
    pub calls: usize,
    /// Calls of one participant under way at once.
    pub of_one: usize,
    /// Proposals that wait for the gate at once; those beyond are left to the room.
    pub proposals: usize,
    /// No longer message is sent, in bytes.
    pub message_bytes: usize,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which call it is.
    pub call: CallId,
    /// Who asks, or proposes.
    pub by: String,
    /// The MCP method: one of [`SERVED`].
    pub method: String,
    /// The raw params, an object.
    pub params: Bytes,
    /// The raw id that JSON-RPC gives it.
    pub id: Bytes,
}

impl Asked {
    pub(super) fn of(call: CallId, envelope: &Envelope<'_>, params: Bytes) -> Self {
        let method = envelope.kind().method().unwrap_or_default().to_owned();
        Self { call, by: envelope.from.to_string(), method, params, id: id(envelope).into() }
    }
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The gate's own request was the first to fulfil the proposal of a call: it goes out, and nobody else makes it.
    Approved(CallId),
    /// Begin a call, and say what came of it.
    Call(Asked),
    /// Nobody waits for a call any more; where it waits for the gate, that ends too.
    Cancel {
        /// Which.
        call: CallId,
        /// Why, for people.
        why: String,
    },
    /// A message did not hold, and nothing was done.
    Dropped {
        /// Whose it was.
        from: String,
        /// Why.
        why: Mismatch,
    },
    /// Begin a call that goes out only when people have agreed to it and [`Output::Approved`] has come.
    Propose(Asked),
    /// Send a message in this server's name.
    Send(Bytes),
    /// Send a message in the name of the gate.
    SendAsGate(Bytes),
}

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct Underway {
    /// Whose it is.
    pub(super) from: String,
    /// The request as it came; `None`: it is proposed, and waits.
    pub(super) request: Option<Bytes>,
    pub(super) proposal: Option<ChainId>,
    /// The raw params of what is proposed, an object; empty for what is asked for.
    pub(super) params: Bytes,
    /// The raw id that JSON-RPC gives it.
    pub(super) id: Vec<u8>,
    /// The id of its envelope, as JSON.
    pub(super) envelope: Vec<u8>,
}

impl Underway {
    pub(super) fn requested(envelope: &Envelope<'_>, bytes: &Bytes) -> Self {
        Self { request: Some(bytes.clone()), ..Self::new(envelope) }
    }

    pub(super) fn proposed(envelope: &Envelope<'_>, proposal: ChainId, params: Bytes) -> Self {
        Self { proposal: Some(proposal), params, ..Self::new(envelope) }
    }

    /// Whether somebody has asked for it itself. What was proposed and agreed to is nobody's to take back.
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

/// A proposal has none of its own: that of its envelope stands for it.
fn id(envelope: &Envelope<'_>) -> Vec<u8> {
    Members::again(envelope.payload)
        .get("id")
        .filter(|id| id.len() <= MAX_ID)
        .map_or_else(|| quote(&envelope.id).into_bytes(), <[u8]>::to_vec)
}

/// A raw `error` object.
pub(super) fn told(code: i64, why: &str) -> String {
    format!("{{\"code\":{code},\"message\":{}}}", quote(why))
}
