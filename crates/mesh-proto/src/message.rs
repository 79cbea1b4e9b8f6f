//! The requests of MCP-AX and their results, from and to the JSON of `params` and `result` (section 6, AX-20 to AX-25).
//!
//! Members that are not known are left alone; a member that stands twice is refused. `mcpax/subtree` and `mcpax/parent`, and
//! the members that the draft does not have, are ours. Who may send what is not decided here.

mod ask;
mod budget;
mod heartbeat;
mod limit;
mod node_ids;
mod refused;
mod register;
mod registered;
mod subtree;

pub use ask::{AskParent, ParentIs};
pub use budget::Budget;
pub use heartbeat::{Alive, Deregister, Heartbeat};
pub use limit::{HEARTBEAT_LEAST, HEARTBEAT_MOST, MAX_ANCESTORS, MAX_BYTES, MAX_PROOF_BYTES, MAX_SUBTREE_IDS, MAX_URL_BYTES};
pub use refused::Refused;
pub use register::{Capabilities, Proof, Register};
pub use registered::{Above, Registered};
pub use subtree::{Subtree, SubtreeChange};

use crate::refusal::Refusal;

/// The version of MCP-AX that is spoken.
pub const VERSION: &str = "2026-05-01";

/// The methods of MCP-AX.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Method {
    /// `mcpax/deregister`, upward
    Deregister,
    /// `mcpax/heartbeat`, upward
    Heartbeat,
    /// `mcpax/parent`, downward
    Parent,
    /// `mcpax/register`, upward
    Register,
    /// `mcpax/subtree`, upward
    Subtree,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Deregister, Self::Heartbeat, Self::Parent, Self::Register, Self::Subtree];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deregister => "mcpax/deregister",
            Self::Heartbeat => "mcpax/heartbeat",
            Self::Parent => "mcpax/parent",
            Self::Register => "mcpax/register",
            Self::Subtree => "mcpax/subtree",
        }
    }

    /// The method of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// A request that came in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// `mcpax/deregister`
    Deregister(Deregister),
    /// `mcpax/heartbeat`
    Heartbeat(Heartbeat),
    /// `mcpax/parent`
    Parent(AskParent),
    /// `mcpax/register`
    Register(Box<Register>),
    /// `mcpax/subtree`
    Subtree(Subtree),
}

impl Request {
    /// Reads the params of a request.
    ///
    /// # Errors
    /// [`Refusal::MethodUnknown`], and whatever is wrong with the params.
    pub fn decode(method: &str, params: &[u8]) -> Result<Self, Refusal> {
        Ok(match Method::parse(method).ok_or(Refusal::MethodUnknown)? {
            Method::Deregister => Self::Deregister(Deregister::decode(params)?),
            Method::Heartbeat => Self::Heartbeat(Heartbeat::decode(params)?),
            Method::Parent => Self::Parent(AskParent::decode(params)?),
            Method::Register => Self::Register(Box::new(Register::decode(params)?)),
            Method::Subtree => Self::Subtree(Subtree::decode(params)?),
        })
    }

    /// Its method and params, as they are sent.
    pub fn encode(&self) -> (Method, String) {
        match self {
            Self::Deregister(message) => (Method::Deregister, message.encode()),
            Self::Heartbeat(message) => (Method::Heartbeat, message.encode()),
            Self::Parent(message) => (Method::Parent, message.encode()),
            Self::Register(message) => (Method::Register, message.encode()),
            Self::Subtree(message) => (Method::Subtree, message.encode()),
        }
    }
}
