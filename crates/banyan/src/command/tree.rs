//! `banyan tree`: the tree of servers and tools as text, and of the gates below. Asks only one gate, never the gates below.

use std::collections::BTreeMap;

use clap::Args;
use gateway::admin::shapes::{JoinStatus, MountStatus, ToolRow};
use serde::Serialize;

use crate::arguments::Place;
use crate::asked::AskedGate;
use crate::client_name::ClientName;
use crate::command::status::{failed_below, look};
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::counted;
use crate::{joined, threads};

/// Draws the tree.
#[derive(Args)]
pub(crate) struct Tree {
    /// Only the servers, without their tools
    #[arg(short, long)]
    servers: bool,
    /// As this client sees them: a name of `banyan connect`, or the name that another program calls itself
    #[arg(long, value_name = "NAME", value_parser = ClientName::read)]
    client: Option<ClientName>,
}

/// `banyan tree --json`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined: Option<&'a JoinStatus>,
    mounts: Vec<Branch<'a>>,
}

/// Answers of a gate.
struct GateAnswers {
    url: Option<String>,
    joined: Option<JoinStatus>,
    mounts: Vec<MountStatus>,
    tools: Vec<ToolRow>,
}

#[derive(Serialize)]
struct Branch<'a> {
    #[serde(flatten)]
    mount: &'a MountStatus,
    names: Vec<&'a str>,
    /// The names in the tree, in the same order.
    paths: Vec<&'a str>,
    #[serde(skip)]
    tools: Vec<&'a ToolRow>,
}

/// Content below one segment.
#[derive(Default)]
struct Below<'a> {
    segments: BTreeMap<&'a str, Self>,
    tools: Vec<&'a ToolRow>,
}

impl Tree {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let told = threads::wait(self.fetch(place, output))??;
        let mounts = told.mounts.iter().map(|m| branch(m, &told.tools)).collect();
        let report = Report { url: told.url.as_deref(), joined: told.joined.as_ref(), mounts };
        if output.wants_json() {
            return output.json(&report);
        }
        report.joined.iter().flat_map(|joined| joined::lines(joined, output)).try_for_each(|line| output.line(&line))?;
        output.line(&output.paint(Look::Strong, report.url.unwrap_or("banyan")))?;
        let last = report.mounts.len().saturating_sub(1);
        for (i, branch) in report.mounts.iter().enumerate() {
            for line in drawn(branch, i == last, output) {
                output.line(&line)?;
            }
        }
        Ok(())
    }

    async fn fetch(&self, place: &Place, output: &Output) -> Result<GateAnswers, Failure> {
        let asked = AskedGate::find(place, output).await?;
        let tools = if self.servers { Vec::new() } else { asked.tools(self.client.as_ref().map(ClientName::as_str)).await?.tools };
        let (url, mounts, joined) = asked.standing().await?;
        asked.finish(output).await;
        Ok(GateAnswers { url, joined, mounts, tools })
    }
}

fn branch<'a>(mount: &'a MountStatus, tools: &'a [ToolRow]) -> Branch<'a> {
    let tools: Vec<&ToolRow> = tools.iter().filter(|t| t.mount == mount.name).collect();
    let (names, paths) = tools.iter().map(|t| (t.shown.as_str(), t.dotted.as_str())).unzip();
    Branch { mount, names, paths, tools }
}

fn drawn(branch: &Branch<'_>, last: bool, output: &Output) -> Vec<String> {
    let mount = branch.mount;
    let (fork, stem) = limbs(last);
    let state = output.paint(look(&mount.state), &mount.state);
    let name = output.paint(Look::Strong, &mount.name);
    let mut about = vec![state, counted(mount.tools, "tool"), mount.transport.clone()];
    about.extend(mount.registered.as_ref().map(|by| format!("registered by {}", printable(&by.principal))));
    about.extend(mount.gate.then(|| "a gate".to_owned()));
    about.extend(mount.p50_ms.map(|p50| format!("p50 {p50:.1} ms")));
    let mut lines = vec![format!("{fork}{name}  {}", about.join(", "))];
    lines.extend(mount.error.iter().flat_map(|e| e.lines()).map(|l| format!("{stem}  {}", printable(l))));
    lines.extend(failed_below(mount).map(|text| format!("{stem}  {}", output.paint(Look::Bad, &printable(&text)))));
    let mut below = Below::default();
    branch.tools.iter().for_each(|tool| below.put(tool));
    lines.extend(below.drawn(output).iter().map(|line| format!("{stem}{line}")));
    lines
}

/// Gives the branch in front of an item, and in front of all items below it.
fn limbs(last: bool) -> (&'static str, &'static str) {
    if last { ("└── ", "    ") } else { ("├── ", "│   ") }
}

impl<'a> Below<'a> {
    /// Puts a tool at its place in the tree. In the dotted name the mount comes first, the tool last.
    fn put(&mut self, tool: &'a ToolRow) {
        let mut segments: Vec<&str> = tool.dotted.split('.').skip(1).collect();
        segments.pop();
        let place = segments.into_iter().fold(self, |below, segment| below.segments.entry(segment).or_default());
        place.tools.push(tool);
    }

    fn all(&self) -> Vec<&'a ToolRow> {
        self.segments.values().flat_map(Self::all).chain(self.tools.iter().copied()).collect()
    }

    fn drawn(&self, output: &Output) -> Vec<String> {
        let mut lines = Vec::new();
        let end = (self.segments.len() + self.tools.len()).saturating_sub(1);
        for (i, (segment, below)) in self.segments.iter().enumerate() {
            let (fork, stem) = limbs(i == end);
            let tools = below.all();
            let mut about = vec![counted(tools.len(), "tool")];
            about.extend(tools.iter().map(|t| t.hops).max().map(|hops| counted(usize::from(hops), "hop")));
            let lost = tools.iter().all(|t| t.availability == "degraded");
            about.extend(lost.then(|| output.paint(Look::Warn, "degraded")));
            lines.push(format!("{fork}{}  {}", output.paint(Look::Strong, &printable(segment)), about.join(", ")));
            lines.extend(below.drawn(output).iter().map(|line| format!("{stem}{line}")));
        }
        for (i, tool) in self.tools.iter().enumerate() {
            let (fork, _) = limbs(i + self.segments.len() == end);
            lines.push(format!("{fork}{}", printable(&tool.shown)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_gates_below_are_drawn_as_branches() {
        let row = |dotted: &str, hops: u8, availability: &str| {
            let shown = dotted.replace('.', "__");
            serde_json::json!({"dotted": dotted, "shown": shown, "original": "", "mount": "infra", "description": "", "bytes": 1, "tokens": 1,
                "reason": "kept", "hops": hops, "availability": availability})
        };
        let rows = [row("infra.edge.stm.dma", 3, "degraded"), row("infra.edge.ping", 2, "always"), row("infra.reset", 1, "always")];
        let rows: Vec<ToolRow> = rows.into_iter().map(|row| serde_json::from_value(row).unwrap()).collect();
        let mut below = Below::default();
        rows.iter().for_each(|row| below.put(row));
        let drawn = below.drawn(&Output::new(false));
        let wanted = [
            "├── edge  2 tools, 3 hops",
            "│   ├── stm  1 tool, 3 hops, degraded",
            "│   │   └── infra__edge__stm__dma",
            "│   └── infra__edge__ping",
            "└── infra__reset",
        ];
        assert_eq!(drawn, wanted);
    }
}
