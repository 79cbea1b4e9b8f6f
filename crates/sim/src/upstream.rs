//! A seeded virtual world around one upstream: a server of many faults behind the machines of `mcp-proto`, and callers that come and go.
//!
//! There is no clock, socket or task: a seed is a whole history. The reference model knows what each line of the server must
//! lead to and is compared after each; it decides nothing about the gateway's driver, which has tests of its own.

mod reference;
mod said;
mod server;
mod wire;
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
    /// All that happened before, a line each.
    pub trace: Vec<String>,
}

/// Lives through the history of `seed`, the server's stream cut by `cut`, which must change nothing.
///
/// # Errors
/// When a machine panics or breaks a rule of the reference model.
pub fn live(seed: u64, cut: u64) -> Result<Outcome, Box<Broken>> {
    let mut world = World::new(seed, cut);
    let lived = catch_unwind(AssertUnwindSafe(|| world.live()));
    let what = match lived {
        Ok(Ok(())) => return Ok(world.outcome),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            format!("a machine panicked: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word"))
        }
    };
    Err(Box::new(Broken { seed, what, trace: world.outcome.trace }))
}
