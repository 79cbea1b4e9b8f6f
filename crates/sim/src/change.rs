//! A seeded virtual device whose configuration is changed while processes die, acknowledgements get lost, the device is slow or does half
//! of the work, clocks jump and the machine restarts.
//!
//! There is no clock, socket or task. The law is held against the world after every single step.

mod timer;
mod world;

use std::collections::BTreeMap;

use crate::broken::{BrokenHistory, caught};
use world::DeviceWorld;

/// Result of a history.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DeviceHistory {
    /// Everything that happened, a line each.
    pub trace: Vec<String>,
    /// Events by kind.
    pub counts: BTreeMap<&'static str, usize>,
}

/// Lives through the history of `seed`.
///
/// # Errors
/// When a machine panics or the law is broken.
pub fn live(seed: u64) -> Result<DeviceHistory, Box<BrokenHistory>> {
    let mut world = DeviceWorld::new(seed);
    let lived = caught(|| {
        world.live();
        Ok(())
    });
    match lived {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(BrokenHistory { seed, what, trace: world.outcome.trace })),
    }
}
