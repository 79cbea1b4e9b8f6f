//! A seeded virtual world around one room: participants that come, go, come twice, flood, lie and read slowly.
//!
//! There is no clock, socket or task: a seed is a whole history. After each step, all that each connection was sent is compared with what a
//! plain reference model says, which shares no code with the room and decides nothing for it.

mod message;
mod reference;
mod said;
mod world;

pub use world::Outcome;

use crate::broken::{Broken, caught};
use world::World;

/// Lives through the history of `seed`.
///
/// # Errors
/// When the room panics or breaks a rule of the reference model.
pub fn live(seed: u64) -> Result<Outcome, Box<Broken>> {
    let mut world = World::new(seed);
    match caught(|| world.live()) {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(Broken { seed, what, trace: world.outcome.trace })),
    }
}
