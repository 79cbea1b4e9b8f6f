//! Agents of other protocols: A2A 1.0 (package `lf.a2a.v1`), read from raw JSON and written as raw JSON.
//!
//! No clock, socket, task, lock or `await` stands in this crate. The driver (`agent`) has the connections.
//!
//! [`capability`] is AEPB: documents of agents, the choice of a protocol, and the life of an agent. [`card`] is an agent's description of itself, [`operation`] a request in the two bindings over HTTP, [`task`] the answers, [`turn`] the
//! collection of all that an agent says until its turn is over, and [`fault`] an agent's refusal.

pub mod capability;
pub mod card;
pub mod fault;
pub mod operation;
pub mod part;
pub mod served;
pub mod task;
pub mod turn;
