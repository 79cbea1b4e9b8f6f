//! Outputs of an aggregator's machine, and inputs beside requests. Carries nothing out.

use banyan_model::Segment;

use super::claims::Claim;
use crate::authority::Identity;
use crate::id::{CallId, LinkId, NodeId, RequestId, SessionKey};
use crate::refusal::{Refusal, SessionEnd};

/// A request of a subserver.
#[derive(Debug, Clone, Copy)]
pub struct IncomingRequest<'a> {
    /// Link of the request, and of the registrations it makes.
    pub link: LinkId,
    /// Name for the answer.
    pub request: RequestId,
    /// Identity of the other end, with the proofs of the request, verified before.
    pub identity: &'a Identity,
    pub method: &'a str,
    /// The raw `params`.
    pub params: &'a [u8],
}

/// An order for the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// The answer to a request: its raw result, or a refusal.
    Answer { link: LinkId, request: RequestId, answer: Result<String, Refusal> },
    /// A `mcpax/parent` request. A link without requests downward replies [`Reply::Mute`](crate::reply::Reply).
    Ask {
        link: LinkId,
        /// Name for the reply.
        call: CallId,
        /// The raw params.
        params: String,
    },
}

/// Output of the machine: all events before the first message, so that a driver records before anybody hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentOutput {
    Event(Event),
    Transmit(Transmit),
}

/// An event for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Keep this claim over restarts (AX-12).
    ClaimMade(Claim),
    /// Forget the claim of this segment.
    ClaimReleased(Segment),
    /// The end of a session, with all holdings.
    Ended { session: SessionKey, segment: Segment, why: SessionEnd },
    /// Fetch `tools/list`, all pages, then call `handle_tools` or `handle_tools_failed`.
    FetchTools { session: SessionKey, link: LinkId },
    /// The table of names changed: take the new one, and notify listeners (`list_changed`).
    NamespaceChanged,
    /// A session began.
    Registered { session: SessionKey, subserver_id: NodeId, segment: Segment },
    /// A subserver is lost; the holdings are kept for a while (AX-60).
    SubserverLost { session: SessionKey, segment: Segment, why: SessionEnd },
    /// The set of aggregators below changed: hand it to the child machine.
    SubtreeChanged,
    /// A present subserver can't be reached; its tools are degraded until it lists them again, or the grace ends (AX-60, AX-61).
    Unreachable { session: SessionKey, segment: Segment },
}
