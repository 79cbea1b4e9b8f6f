//! Evidence of calls: Execution Context Tokens that come with messages of agents, and those that the gate makes. Decides on no call.

pub mod arrived;
pub mod kept;
pub mod notary;
pub mod witness;
