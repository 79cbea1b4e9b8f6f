//! The driver of other agents: an agent that speaks A2A is a mount whose skills are tools, and the gate
//! itself is an agent.
//!
//! Knows no policy and no caller's rights: a call comes in ready to send. `agent_proto` reads and writes all messages.

pub mod evidence;
pub mod lookup;
pub mod mounted;
pub mod negotiated;
pub mod part;
pub mod rate;
pub mod served;
pub mod settings;
pub mod translated;

pub use mounted::family::{KnownAgent, ask};
pub use part::AgentPart;
