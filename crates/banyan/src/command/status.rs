//! `banyan status`: the servers and their states. Asks a running gate; never starts a server.

use std::collections::BTreeMap;

use clap::Args;
use gateway::admin::shapes::{MountStatus, Status as StatusShape};

use crate::arguments::Place;
use crate::command::doctor;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::similar::did_you_mean;
use crate::table::{self, Align};
use crate::{budgets, gate, joined, meeting, threads, time, trouble};

/// Failed servers below a gate that are named.
const LISTED: usize = 5;

/// Shows every server of the running gate, those in trouble first.
#[derive(Args)]
pub(crate) struct Status {
    /// Only this server
    #[arg(value_name = "SERVER")]
    name: Option<String>,
}

impl Status {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let mut status: StatusShape = threads::wait(gate.get("/-/status", &[]))??;
        if let Some(name) = &self.name {
            only(&mut status.mounts, name)?;
        }
        if output.wants_json() {
            return output.json(&status);
        }
        let up = table::duration(status.uptime_seconds);
        output.line(&format!("{}  up {up}, process {}, version {}", status.url, status.pid, status.version))?;
        trouble::of_gate(&status).iter().try_for_each(|finding| doctor::print(finding, output))?;
        let joined = status.joined.iter().flat_map(|joined| joined::lines(joined, output));
        let servers = joined.chain(mounts(&status.mounts, output));
        if status.mounts.len() > 1 {
            output.line(&summary(&status.mounts, output))?;
        }
        for line in servers.chain(meeting::lines(&status.rooms)).chain(budgets::lines(&status.budgets)) {
            output.line(&line)?;
        }
        Ok(())
    }
}

/// Keeps one server of a list.
fn only(mounts: &mut Vec<MountStatus>, name: &str) -> Result<(), Failure> {
    if mounts.iter().any(|mount| mount.name == name) {
        mounts.retain(|mount| mount.name == name);
        return Ok(());
    }
    let hint = did_you_mean(name, mounts.iter().map(|mount| mount.name.as_str()));
    Err(Failure::NotFound(format!("there is no server `{}`{hint}\n  `banyan status` shows all servers", printable(name))))
}

/// Counts the servers by their states, troubles first.
fn summary(mounts: &[MountStatus], output: &Output) -> String {
    let mut counts: BTreeMap<(u8, &str), usize> = BTreeMap::new();
    mounts.iter().for_each(|mount| *counts.entry((rank(mount), &mount.state)).or_default() += 1);
    let part = |((_, state), count): (&(u8, &str), &usize)| format!("{count} {}", output.paint(look(state), state));
    let below: usize = mounts.iter().map(|mount| mount.failed_below.len()).sum();
    let below = (below > 0).then(|| format!("{below} {} below other gates", output.paint(look("failed"), "failed")));
    format!("{}: {}", table::counted(mounts.len(), "server"), counts.iter().map(part).chain(below).collect::<Vec<_>>().join(", "))
}

/// Order of servers by their need for a look.
fn rank(mount: &MountStatus) -> u8 {
    match mount.state.as_str() {
        "failed" => 0,
        "degraded" => 1,
        "starting" => 2,
        _ => 3,
    }
}

/// Draws a line for each server, and below it the reason for not being ready and notes on its lists.
fn mounts(mounts: &[MountStatus], output: &Output) -> Vec<String> {
    let mut mounts: Vec<&MountStatus> = mounts.iter().collect();
    mounts.sort_by_key(|mount| rank(mount));
    let rows: Vec<Vec<String>> = mounts.iter().map(|m| row(m, output)).collect();
    let columns = [Align::Left, Align::Left, Align::Left, Align::Right, Align::Left, Align::Left];
    let mut lines = Vec::new();
    for (mount, line) in mounts.into_iter().zip(table::lines(&columns, &rows)) {
        lines.push(line);
        let more =
            mount.error.iter().flat_map(|e| e.lines()).map(str::to_owned).chain(failed_below(mount)).chain(mount.notes.iter().cloned());
        lines.extend(more.map(|l| format!("    {}", printable(&l))));
    }
    lines
}

/// Names the failed servers below a gate.
pub(crate) fn failed_below(mount: &MountStatus) -> Option<String> {
    let failed = &mount.failed_below;
    let all = failed.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = if failed.len() > LISTED { format!(" and {} more", failed.len() - LISTED) } else { String::new() };
    let advice = "`banyan status` at that gate says why";
    (!failed.is_empty()).then(|| format!("{} below failed: {all}{more}; {advice}", table::counted(failed.len(), "server")))
}

fn row(mount: &MountStatus, output: &Output) -> Vec<String> {
    let now = time::now();
    let since = table::duration(now.saturating_sub(mount.since));
    let next = mount.next_try.map(|t| format!(", next try in {}", table::duration(t.saturating_sub(now)))).unwrap_or_default();
    let restarts = if mount.restarts == 0 { String::new() } else { format!(", tried again {}x", mount.restarts) };
    let state = output.paint(look(&mount.state), &mount.state);
    let origin = output.paint(Look::Dim, &printable(&mount.origin));
    vec![
        mount.name.clone(),
        state,
        format!("{since}{next}{restarts}"),
        table::counted(mount.tools, "tool"),
        mount.transport.clone(),
        origin,
    ]
}

/// Chooses the look of a state.
pub(crate) fn look(state: &str) -> Look {
    match state {
        "ready" => Look::Good,
        "failed" => Look::Bad,
        _ => Look::Warn,
    }
}
