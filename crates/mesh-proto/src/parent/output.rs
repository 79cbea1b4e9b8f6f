//! What comes out of the machine of an aggregator, and what goes into it beside requests. It is not carried out here.

use banyan_model::Segment;

use super::claims::Claim;
use crate::authority::Identity;
use crate::id::{CallId, LinkId, NodeId, RequestId, SessionKey};
use crate::refusal::{Ended, Refusal};

/// A request that a subserver sent.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The link on which it came, and on which the registrations it makes are held.
    pub link: LinkId,
    /// How the answer names it.
    pub request: RequestId,
    /// Who is at the other end. A proof within the request is verified before, and what it proves stands here.
    pub identity: &'a Identity,
    /// The method.
    pub method: &'a str,
    /// The raw `params`.
    pub params: &'a [u8],
}

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// The answer to a request: its raw result, or why it is refused.
    Answer {
        /// On which link.
        link: LinkId,
        /// To which request.
        request: RequestId,
        /// The answer.
        answer: Result<String, Refusal>,
    },
    /// A `mcpax/parent` request. A link that carries no requests downward is answered for with [`Reply::Mute`](crate::reply::Reply).
    Ask {
        /// On which link.
        link: LinkId,
        /// How the reply names it.
        call: CallId,
        /// The raw params.
        params: String,
    },
}

/// What a shared store of registrations says of a subserver (AX-25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreAnswer {
    /// It is registered with nobody, or with us.
    Free,
    /// It is registered with another aggregator.
    RegisteredWith(NodeId),
    /// The store does not answer: the subserver is asked instead.
    Unavailable,
}

/// ParentOutput of the machine: all events before the first message, for a driver enters what happened before it tells anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentOutput {
    /// News for the driver.
    Event(Event),
    /// A message or order for the network.
    Transmit(Transmit),
}

/// Something the driver has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Ask the store with whom a subserver is registered, then call `handle_store_answer`.
    AskStore {
        /// How the answer names the question.
        call: CallId,
        /// Of whom.
        subserver_id: NodeId,
    },
    /// Keep this claim over restarts (AX-12).
    ClaimMade(Claim),
    /// Forget the claim of this segment.
    ClaimReleased(Segment),
    /// A session is over and holds nothing any more.
    Ended {
        /// Which.
        session: SessionKey,
        /// What it held.
        segment: Segment,
        /// Why.
        why: Ended,
    },
    /// Fetch `tools/list`, all its pages, then call `handle_tools` or `handle_tools_failed`.
    FetchTools {
        /// Whose.
        session: SessionKey,
        /// Over which link.
        link: LinkId,
    },
    /// The table of names changed: take the new one, and tell whoever listens (`list_changed`).
    NamespaceChanged,
    /// A session began.
    Registered {
        /// Which.
        session: SessionKey,
        /// Of whom.
        subserver_id: NodeId,
        /// What it holds.
        segment: Segment,
    },
    /// A subserver is lost; what it held is kept for a while (AX-60).
    SubserverLost {
        /// Which session ended with it.
        session: SessionKey,
        /// What it holds still.
        segment: Segment,
        /// Why.
        why: Ended,
    },
    /// The set of aggregators below changed: hand it to the child machine.
    SubtreeChanged,
}
