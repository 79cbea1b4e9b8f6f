//! What the task of the registry is told. Nothing is decided here.

use bytes::Bytes;
use mcp_proto::envelope::Notification;
use mesh_proto::authority::Identity;
use mesh_proto::id::{CallId, LinkId, NodeId, SessionKey};
use mesh_proto::message::Above;
use mesh_proto::refusal::Refusal;
use mesh_proto::reply::Reply;
use tokio::sync::oneshot;

use crate::registry::holding::Fetched;
use crate::registry::links::LinkEnd;

/// One input.
pub enum Input {
    Above(Above),
    Answered(CallId, Replied),
    ConfigChanged,
    Cycle(Vec<NodeId>, oneshot::Sender<()>),
    /// `None`: it could not be fetched.
    Fetched(SessionKey, Option<Box<Fetched>>),
    LinkLost(LinkId),
    LinkOpened(LinkId, LinkEnd),
    ListChanged(SessionKey),
    Notified(LinkId, Notification),
    Relay(SessionKey, Bytes),
    Request(Asked),
    /// What it claims could not be kept, and whoever registered was told so.
    Unkept(SessionKey),
}

/// A request of MCP-AX.
pub struct Asked {
    pub way: Way,
    pub identity: Identity,
    pub method: String,
    /// The raw params.
    pub params: Bytes,
    pub reply: oneshot::Sender<Result<String, Refusal>>,
}

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By itself.
    Http {
        /// Whether nobody can listen in on it (AX-42).
        is_private: bool,
        /// Whether it comes from this machine.
        is_here: bool,
    },
    /// Over a link.
    Link {
        /// Which one.
        id: LinkId,
        /// Whether it comes from this machine.
        is_here: bool,
    },
}

/// What became of a question to a subserver.
#[derive(Debug)]
pub enum Replied {
    Error(Bytes),
    Lost,
    Mute,
    Result(Bytes),
}

impl Replied {
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
