//! Signals that end a serving command. Does not end anything itself.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The ending signals: Ctrl-C, a supervisor's word, a closing terminal.
pub(crate) struct Signals([Signal; 3]);

impl Signals {
    /// Receives them from now on, in place of ending at once.
    pub(crate) fn new() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|e| Failure::Failed(format!("signals can't be received: {e}")));
        Ok(Self([on(SignalKind::hangup())?, on(SignalKind::interrupt())?, on(SignalKind::terminate())?]))
    }

    /// Waits for any ending signal.
    pub(crate) async fn stop(&mut self) {
        let [hang_up, interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = hang_up.recv() => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
