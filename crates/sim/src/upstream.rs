//! A seeded virtual world around one upstream: a server of many faults behind the machines of `mcp-proto`, and callers that come and go.
//!
//! There is no clock, socket or task: a seed is a whole history. The reference model knows the consequences of each line of the server
//! and is compared after each; it decides nothing about the gateway's driver, which has tests of its own.

mod reference;
mod said;
mod server;
mod wire;
mod world;

pub use world::Outcome;

use crate::broken::{BrokenHistory, caught};
use world::World;

/// Lives through the history of `seed`, the server's stream cut by `cut`, which must change nothing.
///
/// # Errors
/// When a machine panics or breaks a rule of the reference model.
pub fn live(seed: u64, cut: u64) -> Result<Outcome, Box<BrokenHistory>> {
    let mut world = World::new(seed, cut);
    match caught(|| world.live()) {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(BrokenHistory { seed, what, trace: world.outcome.trace })),
    }
}
