//! `banyan tree`: the tree of servers and tools as text. Does not follow servers into their own trees.

use clap::Args;
use gateway::admin::shapes::{MountStatus, ToolRow};
use serde::Serialize;

use crate::arguments::Place;
use crate::asked::Asked;
use crate::command::status::look;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::runtime;
use crate::table::counted;

/// Draws the tree.
#[derive(Args)]
pub(crate) struct Tree {
    /// Only the servers, without their tools
    #[arg(short, long)]
    servers: bool,
    /// As this client sees them (the name it gives itself, like `claude-code`)
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
}

/// `banyan tree --json`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    mounts: Vec<Branch<'a>>,
}

#[derive(Serialize)]
struct Branch<'a> {
    #[serde(flatten)]
    mount: &'a MountStatus,
    names: Vec<&'a str>,
}

impl Tree {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let (url, mounts, tools) = runtime::wait(self.fetch(place, output))??;
        let mounts = mounts.iter().map(|m| branch(m, &tools)).collect();
        let report = Report { url: url.as_deref(), mounts };
        if output.wants_json() {
            return output.json(&report);
        }
        output.line(&output.paint(Look::Strong, report.url.unwrap_or("banyan")))?;
        let last = report.mounts.len().saturating_sub(1);
        for (i, branch) in report.mounts.iter().enumerate() {
            for line in drawn(branch, i == last, output) {
                output.line(&line)?;
            }
        }
        Ok(())
    }

    async fn fetch(&self, place: &Place, output: &Output) -> Result<(Option<String>, Vec<MountStatus>, Vec<ToolRow>), Failure> {
        let asked = Asked::find(place, output).await?;
        let tools = if self.servers { Vec::new() } else { asked.tools(self.client.as_deref()).await?.tools };
        let (url, mounts) = asked.mounts().await?;
        asked.end(output).await;
        Ok((url, mounts, tools))
    }
}

fn branch<'a>(mount: &'a MountStatus, tools: &'a [ToolRow]) -> Branch<'a> {
    Branch { mount, names: tools.iter().filter(|t| t.mount == mount.name).map(|t| t.shown.as_str()).collect() }
}

fn drawn(branch: &Branch<'_>, last: bool, output: &Output) -> Vec<String> {
    let mount = branch.mount;
    let (fork, stem) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
    let state = output.paint(look(&mount.state), &mount.state);
    let name = output.paint(Look::Strong, &mount.name);
    let mut lines = vec![format!("{fork}{name}  {state}, {}, {}", counted(mount.tools, "tool"), mount.transport)];
    lines.extend(mount.error.iter().flat_map(|e| e.lines()).map(|l| format!("{stem}  {}", printable(l))));
    let end = branch.names.len().saturating_sub(1);
    lines.extend(branch.names.iter().enumerate().map(|(i, n)| format!("{stem}{}{}", if i == end { "└── " } else { "├── " }, printable(n))));
    lines
}
