//! `banyan demo NAME`: a demonstration server on standard input and output. Hidden: `up` mounts these servers where there is
//! nothing else. Takes no configuration.

use clap::Args;

use crate::failure::Failure;
use crate::threads;

/// Serves a demonstration server.
#[derive(Args)]
pub(crate) struct Demo {
    /// Name of the demonstration server
    #[arg(value_parser = demo::NAMES)]
    name: String,
}

impl Demo {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let runtime = threads::serving()?;
        let served = runtime.block_on(demo::serve(&self.name, tokio::io::stdin(), tokio::io::stdout()));
        // A read of standard input can't be taken back, and nobody waits for it.
        runtime.shutdown_background();
        served.map_err(|e| Failure::Failed(e.to_string()))
    }
}
