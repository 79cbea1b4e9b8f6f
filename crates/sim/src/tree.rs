//! A seeded virtual world of a whole tree: the machines of `mesh-proto` at every node, joined by a network with faults.
//!
//! There is no clock, socket or task: a seed is a whole history. Nodes crash, restart, sleep and leave, links break unnoticed, messages
//! wait behind partitions, and some nodes lie. What each step may lead to is known by a reference model that shares no code with the
//! machines and decides nothing for them.

mod drain;
mod faults;
mod liar;
mod network;
mod node;
mod plan;
mod reference;
mod settled;
mod world;

pub use world::Outcome;

use crate::broken::{BrokenHistory, caught};
use world::World;

/// Lives through the history of `seed`.
///
/// # Errors
/// When a machine panics or breaks a rule of the reference model.
pub fn live(seed: u64) -> Result<Outcome, Box<BrokenHistory>> {
    let mut world = World::new(seed);
    match caught(|| world.live()) {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(BrokenHistory { seed, what, trace: world.outcome.trace.into() })),
    }
}
