//! How a command that serves is told to end. Does not end anything itself.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that end a gate: Ctrl-C, a supervisor's word, a terminal that closes.
pub(crate) struct Signals([Signal; 3]);

impl Signals {
    /// Receives them from now on, in place of ending at once.
    pub(crate) fn new() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|e| Failure::Failed(format!("signals can't be received: {e}")));
        Ok(Self([on(SignalKind::hangup())?, on(SignalKind::interrupt())?, on(SignalKind::terminate())?]))
    }

    /// Waits for one of them.
    pub(crate) async fn stop(&mut self) {
        let [hang_up, interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = hang_up.recv() => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
