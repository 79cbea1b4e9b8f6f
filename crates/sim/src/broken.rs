//! A history that broke a rule, by an error or a panic. The rules are not known here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A history that broke a rule.
#[derive(Debug)]
pub struct BrokenHistory {
    /// The seed for a replay.
    pub seed: u64,
    /// The broken rule, and how it broke.
    pub what: String,
    /// Earlier events, a line each; of a long history the last thousands.
    pub trace: Vec<String>,
}

impl BrokenHistory {
    /// Describes the history for the reader of a failed test, with the command for a replay: test `name` in the file `test`.
    pub fn describe(&self, test: &str, name: &str) -> String {
        let (seed, what) = (self.seed, &self.what);
        let replay = format!("BANYAN_SIM_SEED={seed} cargo test -p sim --test it -- --nocapture {test}::{name}");
        format!("seed {seed} breaks a rule. Its history:\n{}\n{what}\nreplay: {replay}", self.trace.join("\n"))
    }
}

/// Reads a number from the environment.
///
/// # Panics
/// When the variable holds anything else.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Lives through a history; a panic is an error, too.
pub(crate) fn caught(live: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(live)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("a machine panicked: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")))
    })
}
