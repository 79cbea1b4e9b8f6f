//! Runs the asynchronous part of a command. Does not handle signals.

use std::future::Future;

use runtime::worker::Workers;
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// Waits for `work` on a runtime of one thread: for commands that ask and print.
pub(crate) fn wait<F: Future>(work: F) -> Result<F::Output, Failure> {
    Ok(built(Builder::new_current_thread())?.block_on(work))
}

/// Makes a runtime of one thread, for a command that serves one client.
pub(crate) fn waiting() -> Result<Runtime, Failure> {
    built(Builder::new_current_thread())
}

/// Makes a runtime of a thread for each core: for commands that serve.
pub(crate) fn serving() -> Result<Runtime, Failure> {
    built(Builder::new_multi_thread())
}

/// Starts a worker for each core, the calling thread among them.
pub(crate) fn workers() -> Result<Workers, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Workers::start(cores).map_err(|e| Failure::Failed(format!("{cores} threads can't be started: {e}")))
}

fn built(mut builder: Builder) -> Result<Runtime, Failure> {
    builder.enable_all().build().map_err(|e| Failure::Failed(format!("the asynchronous runtime can't be started: {e}")))
}
