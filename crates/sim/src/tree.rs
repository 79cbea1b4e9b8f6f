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

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use world::Outcome;
use world::World;

/// A history that broke a rule.
#[derive(Debug)]
pub struct Broken {
    /// The seed that replays it.
    pub seed: u64,
    /// Which rule, and how.
    pub what: String,
    /// What happened before, a line each, the last thousands of them.
    pub trace: Vec<String>,
}

/// Lives through the history of `seed`.
///
/// # Errors
/// When a machine panics or breaks a rule of the reference model.
pub fn live(seed: u64) -> Result<Outcome, Box<Broken>> {
    let mut world = World::new(seed);
    let lived = catch_unwind(AssertUnwindSafe(|| world.live()));
    let what = match lived {
        Ok(Ok(())) => return Ok(world.outcome),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            format!("a machine panicked: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word"))
        }
    };
    Err(Box::new(Broken { seed, what, trace: world.outcome.trace.into() }))
}
