//! A seeded virtual world around a room in which a server sits, proposals wait at the gate, and which is mounted: people ask, propose, decide
//! and leave, participants offer tools and serve, and everything is under way for as long as the seed says.
//!
//! There is no clock, socket or task. What a plain reference model knows is held against what comes out, step by step and once all is quiet.

mod reference;
mod world;

use std::collections::BTreeMap;

use crate::broken::{Broken, caught};
use world::World;

/// What came of a history.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Everything that happened, a line each.
    pub trace: Vec<String>,
    /// How often what happened.
    pub counts: BTreeMap<&'static str, usize>,
}

/// Lives through the history of `seed`.
///
/// # Errors
/// When a machine panics or breaks a rule of the reference model.
pub fn live(seed: u64) -> Result<Outcome, Box<Broken>> {
    let mut world = World::new(seed);
    match caught(|| world.live()) {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(Broken { seed, what, trace: world.outcome.trace })),
    }
}
