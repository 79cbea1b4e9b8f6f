//! `banyan completions SHELL`. Does not install the script anywhere.

use clap::{Args, CommandFactory};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::Output;

/// Prints a completion script.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell to complete for
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(&self, output: &Output) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "banyan", &mut script);
        output.raw(&script)
    }
}
