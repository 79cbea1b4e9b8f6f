//! The command line as clap sees it. What a command does stands in its own file below `command/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::command::{completions, man};
use crate::failure::Failure;
use crate::output::Output;

/// One gate in front of all your MCP servers.
#[derive(Parser)]
#[command(name = "banyan", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Print JSON with a stable shape (docs/cli.md) in place of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which configuration or which running gateway a command is about.
#[derive(Args)]
pub(crate) struct Place {
    /// Configuration to use [default: ./banyan.toml, then banyan/banyan.toml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE", env = "BANYAN_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// What can be asked for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Write the manual pages into a directory
    Man(man::Man),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self, _place: &Place, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Completions(command) => command.run(output),
            Self::Man(command) => command.run(output),
        }
    }
}
