//! A seeded virtual world around one room: participants that come, go, come twice, flood, lie and read slowly.
//!
//! There is no clock, socket or task: a seed is a whole history. After each step, everything sent to each connection is compared with a
//! plain reference model, which shares no code with the room and decides nothing for it.

mod message;
mod reference;
mod said;
mod world;

pub use world::Outcome;

use crate::broken::{BrokenHistory, caught};
use world::World;

/// Lives through the history of `seed`.
///
/// # Errors
/// When the room panics or breaks a rule of the reference model.
pub fn live(seed: u64) -> Result<Outcome, Box<BrokenHistory>> {
    let mut world = World::new(seed);
    match caught(|| world.live()) {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(BrokenHistory { seed, what, trace: world.outcome.trace })),
    }
}
