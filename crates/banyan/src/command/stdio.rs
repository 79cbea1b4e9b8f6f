//! `banyan stdio`: serves the client that started this process, by the gate of its configuration. Prints nothing of its own on standard
//! output.

use clap::Args;
use gateway::bridge::Bridge;
use tokio_util::sync::CancellationToken;

use crate::arguments::Place;
use crate::bridged::BridgedGate;
use crate::failure::Failure;
use crate::log::Log;
use crate::output::Output;
use crate::signals::Signals;
use crate::threads;

/// Serves the gate on standard input and output, for clients that start a process.
#[derive(Args)]
#[command(
    after_help = "The gate is the one that runs with the same configuration. Where none runs, it is started, and ends when nobody uses it any \
    more. All of its clients share its approvals, record and budgets."
)]
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
        let gates = BridgedGate::new(self.from.as_deref(), place, self.log.format(), "banyan stdio", output)?;
        let runtime = threads::waiting()?;
        let outcome = runtime.block_on(async {
            let mut signals = Signals::new()?;
            let first = tokio::select! {
                first = gates.reach(true) => first?,
                () = signals.stop() => return Ok(()),
            };
            let connection = first.ok_or_else(|| Failure::NotFound("no gate is running".to_owned()))?;
            let stop = CancellationToken::new();
            let serving = Bridge::new(gates, connection, tokio::io::stdin(), tokio::io::stdout()).serve(stop.clone());
            tokio::pin!(serving);
            tokio::select! {
                () = &mut serving => {}
                () = signals.stop() => {
                    stop.cancel();
                    serving.await;
                }
            }
            Ok(())
        });
        // A read of standard input can't be taken back, and nobody waits for it.
        runtime.shutdown_background();
        outcome
    }
}
