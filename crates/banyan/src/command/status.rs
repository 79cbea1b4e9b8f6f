//! `banyan status`: which servers there are and how they are. Asks a running gate; never starts a server.

use clap::Args;
use gateway::admin::shapes::{MountRow, Status as StatusShape};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::table::{self, Align};
use crate::{gate, runtime};

/// Shows every server of the running gate.
#[derive(Args)]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let status: StatusShape = runtime::wait(gate.get("/-/status", &[]))??;
        if output.wants_json() {
            return output.json(&status);
        }
        let up = table::duration(status.uptime_seconds);
        output.line(&format!("{}  up {up}, process {}, version {}", status.url, status.pid, status.version))?;
        for line in mounts(&status.mounts, output) {
            output.line(&line)?;
        }
        Ok(())
    }
}

/// One line a server, and below it why it is not ready.
fn mounts(mounts: &[MountRow], output: &Output) -> Vec<String> {
    let rows: Vec<Vec<String>> = mounts.iter().map(|m| row(m, output)).collect();
    let columns = [Align::Left, Align::Left, Align::Right, Align::Left, Align::Left];
    let mut lines = Vec::new();
    for (mount, line) in mounts.iter().zip(table::lines(&columns, &rows)) {
        lines.push(line);
        lines.extend(mount.error.iter().flat_map(|e| e.lines()).map(|l| format!("    {l}")));
    }
    lines
}

fn row(mount: &MountRow, output: &Output) -> Vec<String> {
    let since = table::duration(mount.for_seconds);
    let next = mount.next_try_in_seconds.map(|s| format!(", next try in {}", table::duration(s))).unwrap_or_default();
    let restarts = if mount.restarts == 0 { String::new() } else { format!(", restarted {}x", mount.restarts) };
    let state = format!("{} {since}{next}{restarts}", output.paint(look(&mount.state), &mount.state));
    let origin = output.paint(Look::Dim, &mount.origin);
    vec![mount.name.clone(), state, format!("{} tools", mount.tools), mount.transport.clone(), origin]
}

/// How a state stands out.
pub(crate) fn look(state: &str) -> Look {
    match state {
        "ready" => Look::Good,
        "failed" => Look::Bad,
        _ => Look::Warn,
    }
}
