//! `banyan man DIR`. Does not install the pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::Output;

/// Writes one manual page a command.
#[derive(Args)]
pub(crate) struct Man {
    /// Directory to write into; made when it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, output: &Output) -> Result<(), Failure> {
        let failed = |e: std::io::Error| Failure::Failed(format!("the manual pages can't be written to {}: {e}", self.directory.display()));
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        clap_mangen::generate_to(Arguments::command().version(env!("CARGO_PKG_VERSION")), &self.directory).map_err(failed)?;
        if output.wants_json() {
            return output.json(&serde_json::json!({ "directory": self.directory }));
        }
        output.line(&format!("manual pages written to {} (try `man -l {}/banyan.1`)", self.directory.display(), self.directory.display()))
    }
}
