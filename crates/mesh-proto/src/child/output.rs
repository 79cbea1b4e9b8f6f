//! Outputs of a subserver's machine. Carries nothing out.

use crate::id::{CallId, LinkId, NodeId};
use crate::message::{Ancestry, Method, ReceivedRefusal, RegistrationResult};

/// An order for the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// Connect to a parent, then call `handle_link_up` or `handle_dial_failed`.
    Dial {
        /// Counted from 0, the preferred parent first.
        parent: usize,
    },
    /// Close a link, without a report.
    HangUp { link: LinkId },
    /// A request of MCP-AX.
    Request {
        link: LinkId,
        /// Name for the reply.
        call: CallId,
        method: Method,
        /// The raw params.
        params: String,
    },
}

/// Output of the machine: all events before the first message, so that a driver records before anybody hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildOutput {
    Event(Event),
    Transmit(Transmit),
}

/// An event for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// New ancestry: to be handed to the machine of the same node's aggregator, if any.
    Above(Ancestry),
    /// Ids both below and above: to be handed to the machine of the same node's aggregator.
    Cycle { ids: Vec<NodeId> },
    /// The registration is over.
    Lost { parent: usize, why: LostWhy },
    /// A parent refused the registration. The machine tries again, there or elsewhere.
    Refused { parent: usize, refused: Box<ReceivedRefusal> },
    /// The registration is made. Tools are listed and called over this link, or over a link dialled by the parent.
    Registered {
        parent: usize,
        link: LinkId,
        /// The parent's answer.
        registered: Box<RegistrationResult>,
    },
    /// The tree was left as ordered.
    Stopped,
    /// Number of tools hidden by the parent.
    Withheld(u64),
}

/// Reasons for the end of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostWhy {
    /// The own id was among the ancestors.
    Cycle,
    /// The parent restarted, or ended the session.
    Forgotten,
    /// A preferred parent was in reach.
    Leaving,
    LinkLost,
    /// The parent did not answer.
    Silent,
    /// The driver ordered a stop.
    Stopped,
}
