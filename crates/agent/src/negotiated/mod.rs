//! Negotiation with other agents: their capability documents, and the choice of a protocol. Calls no agent.

pub mod documents;
pub mod negotiation_door;
