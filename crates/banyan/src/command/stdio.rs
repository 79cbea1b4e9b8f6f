//! `banyan stdio`: serves the gate to one client that started this process. Prints nothing of its own on standard output.

use clap::Args;
use gateway::Gateway;
use tokio_util::sync::CancellationToken;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::log::Log;
use crate::output::Output;
use crate::signals::Signals;
use crate::{places, plan, runtime};

/// Serves the gate on standard input and output, for clients that start a process.
#[derive(Args)]
pub(crate) struct Stdio {
    /// Serve exactly the servers of this file: JSON with `mcpServers` as clients write it, or Codex's TOML
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    from: Option<std::path::PathBuf>,
    #[command(flatten)]
    log: Log,
}

impl Stdio {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        self.log.start()?;
        let plan = plan::for_client(self.from.as_deref(), place, output)?;
        let runtime = runtime::serving()?;
        let outcome = runtime.block_on(async {
            let mut signals = Signals::new()?;
            let gate = Gateway::start(plan.config, places::state_dir()?);
            let stop = CancellationToken::new();
            let serving = gate.serve_stdio(tokio::io::stdin(), tokio::io::stdout(), stop.clone());
            tokio::pin!(serving);
            tokio::select! {
                () = &mut serving => {}
                () = signals.stop() => {
                    stop.cancel();
                    serving.await;
                }
            }
            gate.shutdown().await;
            Ok(())
        });
        // A read of standard input can't be taken back, and nobody waits for it.
        runtime.shutdown_background();
        outcome
    }
}
