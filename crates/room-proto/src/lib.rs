//! MCPx v0.1: rooms in which people and agents propose, decide and call, as decisions over bytes.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments.

pub mod capability;
pub mod envelope;
pub mod kind;
pub mod name;
pub mod refusal;
