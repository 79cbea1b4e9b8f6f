//! What comes out of the machine of a subserver. It is not carried out here.

use crate::id::{CallId, LinkId, NodeId};
use crate::message::{Above, Method, Refused, Registered};

/// Something to do on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// Connect to a parent, then call `handle_link_up` or `handle_dial_failed`.
    Dial {
        /// Which, counted from 0, the preferred one first.
        parent: usize,
    },
    /// Close a link. That it is closed need not be told.
    HangUp {
        /// Which.
        link: LinkId,
    },
    /// A request of MCP-AX.
    Request {
        /// On which link.
        link: LinkId,
        /// How the reply names it.
        call: CallId,
        /// The method.
        method: Method,
        /// The raw params.
        params: String,
    },
}

/// ChildOutput of the machine: all events before the first message, for a driver enters what happened before it tells anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildOutput {
    /// News for the driver.
    Event(Event),
    /// A message or order for the network.
    Transmit(Transmit),
}

/// Something the driver has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What stands above changed: hand it to the machine of the same node's aggregator, if it is one.
    Above(Above),
    /// These ids stand below and above: hand them to the machine of the same node's aggregator.
    Cycle {
        /// Which.
        ids: Vec<NodeId>,
    },
    /// It is registered no more.
    Lost {
        /// With which parent it was.
        parent: usize,
        /// Why.
        why: LostWhy,
    },
    /// A parent refused it. It tries again, there or elsewhere.
    Refused {
        /// Which parent.
        parent: usize,
        /// Why.
        refused: Box<Refused>,
    },
    /// It is registered. Tools are listed and called over this link, or over that which the parent dials.
    Registered {
        /// With which parent.
        parent: usize,
        /// Over which link.
        link: LinkId,
        /// What the parent answered.
        registered: Box<Registered>,
    },
    /// It has left the tree, as it was told to.
    Stopped,
    /// How many of its tools the parent does not show.
    Withheld(u64),
}

/// Why a registration is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostWhy {
    /// Its own id stands above it.
    Cycle,
    /// The parent does not know it: it restarted, or ended the session.
    Forgotten,
    /// It left for a parent that it prefers.
    Leaving,
    /// The link broke.
    LinkLost,
    /// The parent answers nothing.
    Silent,
    /// It was told to leave.
    Stopped,
}
