//! A history that broke a rule, by an error or a panic. Which rules there are is not known here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A history that broke a rule.
#[derive(Debug)]
pub struct Broken {
    /// The seed that replays it.
    pub seed: u64,
    /// Which rule, and how.
    pub what: String,
    /// What happened before, a line each; of a long history the last thousands of them.
    pub trace: Vec<String>,
}

impl Broken {
    /// All of it for whoever reads a failed test, with the command that replays it: that of `name` in the file `test`.
    pub fn told(&self, test: &str, name: &str) -> String {
        let (seed, what) = (self.seed, &self.what);
        let replay = format!("BANYAN_SIM_SEED={seed} cargo test -p sim --test {test} -- --nocapture {name}");
        format!("seed {seed} breaks a rule. Its history:\n{}\n{what}\nreplay: {replay}", self.trace.join("\n"))
    }
}

/// A number that the environment sets for a test.
///
/// # Panics
/// When it is set to something else.
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
