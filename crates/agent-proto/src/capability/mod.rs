//! AEPB (draft-d-aepb-protocol-binding-01): the self-description of agents, the choice of a protocol between two, and the end of an agent.
//! Fetches nothing, and takes time as an argument.

pub mod constraints;
pub mod document;
pub mod lifecycle;
pub mod negotiation;
pub mod signed;
pub mod successor;
#[cfg(test)]
mod tests;
pub mod written;
