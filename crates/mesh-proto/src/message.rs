//! Requests of MCP-AX and their results, from and to the JSON of `params` and `result` (section 6, AX-20 to AX-25).
//!
//! Unknown members are ignored; duplicate members are refused. `mcpax/subtree`, `mcpax/parent` and the members absent from the draft are
//! ours. Does not know who may send a message.

mod ask;
mod budget;
mod heartbeat;
mod limit;
mod node_ids;
mod refused;
mod register;
mod registered;
mod subtree;

pub use ask::{AskParent, ParentAnswer};
pub use budget::Budget;
pub use heartbeat::{Deregister, Heartbeat, HeartbeatAnswer};
pub use limit::{HEARTBEAT_LEAST, HEARTBEAT_MOST, MAX_ANCESTORS, MAX_BYTES, MAX_PROOF_BYTES, MAX_SUBTREE_IDS, MAX_URL_BYTES};
pub use refused::ReceivedRefusal;
pub use register::{Capabilities, Proof, Register};
pub use registered::{Ancestry, RegistrationResult};
pub use subtree::{Subtree, SubtreeChange};

use crate::refusal::Refusal;

/// Version of MCP-AX spoken.
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
    /// All methods.
    pub const ALL: [Self; 5] = [Self::Deregister, Self::Heartbeat, Self::Parent, Self::Register, Self::Subtree];

    /// Gives the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deregister => "mcpax/deregister",
            Self::Heartbeat => "mcpax/heartbeat",
            Self::Parent => "mcpax/parent",
            Self::Register => "mcpax/register",
            Self::Subtree => "mcpax/subtree",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// A received request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    Deregister(Deregister),
    Heartbeat(Heartbeat),
    Parent(AskParent),
    Register(Box<Register>),
    Subtree(Subtree),
}

impl Request {
    /// Reads the params of a request.
    ///
    /// # Errors
    /// [`Refusal::MethodUnknown`], and any fault of the params.
    pub fn decode(method: &str, params: &[u8]) -> Result<Self, Refusal> {
        Ok(match Method::parse(method).ok_or(Refusal::MethodUnknown)? {
            Method::Deregister => Self::Deregister(Deregister::decode(params)?),
            Method::Heartbeat => Self::Heartbeat(Heartbeat::decode(params)?),
            Method::Parent => Self::Parent(AskParent::decode(params)?),
            Method::Register => Self::Register(Box::new(Register::decode(params)?)),
            Method::Subtree => Self::Subtree(Subtree::decode(params)?),
        })
    }

    /// Gives method and params, as sent.
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
