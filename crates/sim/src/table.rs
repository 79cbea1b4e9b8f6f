//! A seeded virtual world around a room in which a server sits, proposals wait at the gate, and which is mounted: people ask, propose, decide
//! and leave, participants offer tools and serve, and everything is under way for as long as the seed says.
//!
//! There is no clock, socket or task. What a plain reference model knows is held against what comes out, step by step and once all is quiet.

mod reference;
mod world;

use std::collections::BTreeMap;

use crate::broken::{BrokenHistory, caught};
use world::World;

/// The outcome of a history.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Every event, a line each.
    pub trace: Vec<String>,
    /// Number of events of each kind.
    pub counts: BTreeMap<&'static str, usize>,
}

/// Lives through the history of `seed`.
///
/// # Errors
/// When a machine panics or breaks a rule of the reference model.
pub fn live(seed: u64) -> Result<Outcome, Box<BrokenHistory>> {
    let mut world = World::new(seed);
    match caught(|| world.live()) {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(BrokenHistory { seed, what, trace: world.outcome.trace })),
    }
}
