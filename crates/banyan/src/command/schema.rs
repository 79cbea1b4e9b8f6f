//! `banyan schema`: the JSON Schema of `banyan.toml`, for editors. Does not check a file: `banyan check` does.

use clap::Args;

use crate::failure::Failure;
use crate::output::Output;

/// Prints the JSON Schema of `banyan.toml`.
#[derive(Args)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(&self, output: &Output) -> Result<(), Failure> {
        output.json(gateway::parts::sections().schema())
    }
}
