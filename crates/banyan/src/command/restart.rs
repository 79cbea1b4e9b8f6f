//! `banyan restart`: a server, started anew by the running gate. Does not end the gate.

use clap::Args;
use gateway::admin::shapes::{RestartReply, Status};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::similar::did_you_mean;
use crate::{gate, threads};

/// Starts a server anew; calls of the server that are under way fail.
#[derive(Args)]
pub(crate) struct Restart {
    /// The server
    #[arg(value_name = "SERVER")]
    name: String,
}

impl Restart {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let reply = threads::wait(async {
            let status: Status = gate.get("/-/status", &[]).await?;
            if !status.mounts.iter().any(|mount| mount.name == self.name) {
                let hint = did_you_mean(&self.name, status.mounts.iter().map(|mount| mount.name.as_str()));
                let name = printable(&self.name);
                return Err(Failure::NotFound(format!("there is no server `{name}`{hint}\n  `banyan status` shows the servers")));
            }
            Ok(gate.post(&format!("/-/restart/{}", self.name), &()).await?)
        })??;
        let reply: RestartReply =
            serde_json::from_slice(&reply).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if output.wants_json() {
            return output.json(&reply);
        }
        output.line(&format!("{} starts anew; `banyan status` shows when it is ready", printable(&reply.restarting)))
    }
}
