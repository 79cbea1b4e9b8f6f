//! The gate as an agent: its tools are the skills of a card, and a message calls one. Tells nothing of policy.

pub mod agent_door;
pub mod asked;
pub mod capability_door;
#[cfg(test)]
mod fixtures;
pub mod life;
pub mod onward;
pub mod operation;
pub mod problem;
pub mod push;
pub mod run;
pub mod running;
pub mod shelf;
pub mod skills;
pub mod streams;
pub mod tasks;
pub mod translate_door;
pub mod wishes;
