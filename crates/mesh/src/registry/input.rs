//! Inputs of the registry's task. Decides nothing.

use std::collections::BTreeMap;

use banyan_model::Segment;
use bytes::Bytes;
use mesh_proto::authority::Identity;
use mesh_proto::id::{CallId, LinkId, NodeId, SessionKey};
use mesh_proto::message::Ancestry;
use mesh_proto::refusal::Refusal;
use mesh_proto::reply::Reply;
use tokio::sync::oneshot;

use crate::registry::holding::FetchedLists;
use crate::registry::inbox::{HeldNotifications, NotificationSource};
use crate::registry::links::LinkEnd;

/// An input.
pub enum Input {
    Above(Ancestry),
    Answered(CallId, SubserverReply),
    ConfigChanged,
    Cycle(Vec<NodeId>, oneshot::Sender<()>),
    /// `None`: the fetch failed.
    Fetched(SessionKey, Option<Box<FetchedLists>>),
    LinkLost(LinkId),
    LinkOpened(LinkId, LinkEnd),
    ListChanged(SessionKey),
    /// Lists of all sessions on the link.
    ListsChanged(LinkId),
    Notified(BTreeMap<NotificationSource, HeldNotifications>),
    /// The operator frees a segment; the answer tells if an authority had kept it.
    Release(Segment, oneshot::Sender<bool>),
    Request(MeshRequest),
    /// The claim could not be stored, and the registrant was told so.
    Unkept(SessionKey),
}

/// A request of MCP-AX.
pub struct MeshRequest {
    pub way: Way,
    pub identity: Identity,
    pub method: String,
    /// A raw object.
    pub params: Bytes,
    pub reply: oneshot::Sender<Result<String, Refusal>>,
}

/// Way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A request by HTTP.
    Http {
        /// Safe from eavesdroppers (AX-42).
        is_private: bool,
        /// From this machine.
        is_here: bool,
    },
    /// A request over a link.
    Link {
        id: LinkId,
        /// From this machine.
        is_here: bool,
    },
}

/// Reply of a subserver to a question.
#[derive(Debug)]
pub enum SubserverReply {
    Error(Bytes),
    Lost,
    Mute,
    Result(Bytes),
}

impl SubserverReply {
    /// Borrows the reply for the machine.
    pub fn as_reply(&self) -> Reply<'_> {
        match self {
            Self::Error(error) => Reply::Error(error),
            Self::Lost => Reply::Lost,
            Self::Mute => Reply::Mute,
            Self::Result(result) => Reply::Result(result),
        }
    }
}
