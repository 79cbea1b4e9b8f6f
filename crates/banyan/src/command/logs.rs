//! `banyan logs SERVER`: a server's standard error. Keeps nothing itself; the gate keeps the last lines.

use clap::Args;
use gateway::admin::client::AdminClient;
use gateway::admin::shapes::{LogLine, Status};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::similar::did_you_mean;
use crate::{gate, threads};

/// Shows the last lines of a server's standard error.
#[derive(Args)]
pub(crate) struct Logs {
    /// The server
    server: String,
    /// Go on with new lines, until interrupted
    #[arg(short, long)]
    follow: bool,
}

impl Logs {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(self.print(&gate, output))?
    }

    async fn print(&self, gate: &AdminClient, output: &Output) -> Result<(), Failure> {
        let status: Status = gate.get("/-/status", &[]).await?;
        if !status.mounts.iter().any(|m| m.name == self.server) {
            let hint = did_you_mean(&self.server, status.mounts.iter().map(|m| m.name.as_str()));
            return Err(Failure::NotFound(format!("there is no server `{}`{hint}\n  `banyan status` lists them", self.server)));
        }
        let query: &[(&str, &str)] = if self.follow { &[("follow", "1")] } else { &[] };
        let (mut end, mut silent) = (Ok(()), true);
        let each = |line: &[u8]| {
            silent = false;
            end = self.line(line, output);
            end.is_ok()
        };
        gate.lines(&format!("/-/logs/{}", self.server), query, each).await?;
        if silent && !output.wants_json() {
            output.remark(&format!("{} has written nothing on its standard error", self.server));
        }
        end
    }

    fn line(&self, line: &[u8], output: &Output) -> Result<(), Failure> {
        if output.wants_json() {
            return output.raw(&[line, b"\n"].concat());
        }
        let line: LogLine =
            serde_json::from_slice(line).map_err(|e| Failure::Failed(format!("the gate sent a line that is no JSON: {e}")))?;
        output.line(&printable(&line.line))
    }
}
