//! `banyan tools`: the tools shown to a client, and their cost to a model. Does not change the selection: profiles do.

use std::collections::BTreeMap;

use clap::Args;
use gateway::admin::shapes::{ToolDefinition, ToolRow, Tools as ToolsShape};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::Place;
use crate::asked::AskedGate;
use crate::client_name::ClientName;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::{printable, printable_lines};
use crate::signature::ToolSignature;
use crate::similar::did_you_mean;
use crate::table::{self, Align};
use crate::threads;

/// Lists tools with about how many tokens each costs a model that is shown it.
#[derive(Args)]
pub(crate) struct Tools {
    /// Only the tools of these servers; or one tool, with its arguments
    #[arg(value_name = "SERVER|TOOL")]
    servers: Vec<String>,
    /// As this client sees them: a name of `banyan connect`, or the name that another program calls itself
    #[arg(long, value_name = "NAME", value_parser = ClientName::read)]
    client: Option<ClientName>,
    /// Only the sums
    #[arg(short, long)]
    summary: bool,
}

/// `banyan tools --json`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    shown: &'a ToolsShape,
    mounts: Vec<Sum<'a>>,
    total: Sum<'a>,
    /// Number of tools that are not asked about on their server's own word alone.
    #[serde(skip_serializing_if = "is_none")]
    ungated_by_server: usize,
    warnings: Vec<String>,
}

/// The joint cost of some tools.
#[derive(Serialize, Default)]
struct Sum<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    tools: usize,
    bytes: usize,
    tokens: usize,
}

impl Tools {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        ClientName::remark(self.client.as_ref(), output);
        let (mut shown, one) = threads::wait(self.ask(place, output))??;
        if let Some(one) = one {
            return definition(&one, output);
        }
        self.narrow(&mut shown)?;
        let report = report(&shown, self.client.as_ref().map(ClientName::as_str));
        if output.wants_json() {
            return output.json(&report);
        }
        if !self.summary {
            for mount in &report.mounts {
                for line in listed(mount.name, &shown.tools, output) {
                    output.line(&line)?;
                }
            }
        }
        for line in sums(&report, self.client.as_ref().map(ClientName::as_str)) {
            output.line(&line)?;
        }
        for warning in &report.warnings {
            output.remark(&format!("{} {warning}", output.paint_remark(Look::Warn, "warning:")));
        }
        Ok(())
    }

    /// The tools, and the definition of one where only that is asked for.
    async fn ask(&self, place: &Place, output: &Output) -> Result<(ToolsShape, Option<ToolDefinition>), Failure> {
        let asked = AskedGate::find(place, output).await?;
        let answer = self.answered(&asked).await;
        asked.finish(output).await;
        answer
    }

    async fn answered(&self, asked: &AskedGate) -> Result<(ToolsShape, Option<ToolDefinition>), Failure> {
        let shown = asked.tools(self.client.as_ref().map(ClientName::as_str)).await?;
        let only = match self.servers.as_slice() {
            [name] if !shown.tools.iter().any(|tool| tool.mount == *name) => ToolRow::find(&shown.tools, name),
            _ => None,
        };
        let Some(tool) = only else { return Ok((shown, None)) };
        let one = asked.definition(&tool.dotted).await?;
        Ok((shown, Some(one)))
    }

    fn narrow(&self, shown: &mut ToolsShape) -> Result<(), Failure> {
        if self.servers.is_empty() {
            return Ok(());
        }
        for server in &self.servers {
            if !shown.tools.iter().any(|t| t.mount == *server) {
                let names = shown.tools.iter().flat_map(|t| [t.mount.as_str(), t.dotted.as_str()]);
                let hint = did_you_mean(server, names);
                return Err(Failure::NotFound(format!(
                    "no server `{server}` shows a tool, and no tool is called so{hint}\n  `banyan status` says how servers are"
                )));
            }
        }
        shown.tools.retain(|t| self.servers.contains(&t.mount));
        Ok(())
    }
}

/// Shows a tool: its description, its arguments, and an example of a call.
fn definition(one: &ToolDefinition, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.json(one);
    }
    let tool = &one.tool;
    let written: Value =
        serde_json::from_str(one.definition.get()).map_err(|error| Failure::Failed(format!("its definition is no JSON: {error}")))?;
    let signature = ToolSignature::read(&written);
    let tokens = table::short(tool.tokens);
    output.line(&format!(
        "{}  ({} for clients, about {tokens} tokens)",
        output.paint(Look::Strong, &printable(&tool.dotted)),
        printable(&tool.shown)
    ))?;
    let description = written["description"].as_str().unwrap_or_default();
    if !description.is_empty() {
        output.line(&printable_lines(description.trim()))?;
    }
    output.line("\narguments")?;
    signature.lines().iter().try_for_each(|line| output.line(line))?;
    output.line(&format!("\nexample\n  {}", signature.example(&tool.dotted)))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

fn report<'a>(shown: &'a ToolsShape, client: Option<&str>) -> Report<'a> {
    let mut mounts: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
    let mut total = Sum::default();
    for tool in &shown.tools {
        let sum = mounts.entry(&tool.mount).or_insert_with(|| Sum { name: &tool.mount, ..Sum::default() });
        for sum in [sum, &mut total] {
            sum.tools += 1;
            sum.bytes += tool.bytes;
            sum.tokens += tool.tokens;
        }
    }
    let ungated_by_server = shown.tools.iter().filter(|tool| tool.ungated_by_server).count();
    let warnings = warnings(total.tools, client, ungated_by_server);
    Report { shown, mounts: mounts.into_values().collect(), total, ungated_by_server, warnings }
}

fn warnings(tools: usize, client: Option<&str>, ungated_by_server: usize) -> Vec<String> {
    let many = too_many(tools, client).map(|(why, remedy)| format!("{why}\n  {remedy}"));
    let word = (ungated_by_server > 0).then(|| {
        let tools = table::counted(ungated_by_server, "tool");
        format!(
            "{tools} marked `*`: nobody is asked about calls, because the server says that they change little\n  \
             with mode = \"unlisted\" in [approvals], only tools that [mount.NAME.tools] calls mutable = false go unasked"
        )
    });
    many.into_iter().chain(word).collect()
}

/// Describes the limit below so many tools, and the remedy; `None` for few. A named client has only its own limits, beside those of models.
pub(crate) fn too_many(tools: usize, client: Option<&str>) -> Option<(String, &'static str)> {
    let limits = [
        (128, "visual studio code", "VS Code and models of OpenAI refuse more than 128 tools in a request"),
        (80, "cursor", "Cursor shows a model 80 tools at most"),
        (40, "", "models choose worse among so many, and some clients stop at 40"),
    ];
    let client = client.map(str::to_lowercase);
    let counts = |whose: &str| client.as_ref().is_none_or(|client| client.contains(whose));
    let (_, _, why) = limits.into_iter().find(|(limit, whose, _)| tools > *limit && counts(whose))?;
    Some((format!("{tools} tools: {why}"), "narrow it with include/exclude in a profile, or set search = \"always\" there"))
}

fn listed(mount: &str, tools: &[ToolRow], output: &Output) -> Vec<String> {
    let rows = tools.iter().filter(|t| t.mount == mount).map(|t| {
        let about = output.paint(Look::Dim, &printable(&table::first_line(&t.description, 70)));
        let mark = if t.ungated_by_server { " *" } else { "" };
        vec![format!("  {}{mark}", printable(&t.shown)), table::short(t.tokens), about]
    });
    let lines = table::lines(&[Align::Left, Align::Right, Align::Left], &rows.collect::<Vec<_>>());
    std::iter::once(output.paint(Look::Strong, mount)).chain(lines).chain([String::new()]).collect()
}

fn sums(report: &Report<'_>, client: Option<&str>) -> Vec<String> {
    let row = |name: &str, s: &Sum<'_>, more: String| vec![name.to_owned(), s.tools.to_string(), table::short(s.tokens), more];
    let head = ["SERVER", "TOOLS", "TOKENS"].map(str::to_owned).to_vec();
    let mounts = report.mounts.iter().map(|m| row(m.name, m, String::new()));
    let seen = client.map(|c| format!("as `{c}` sees them")).unwrap_or_default();
    let rows: Vec<_> = std::iter::once(head).chain(mounts).chain([row("total", &report.total, seen)]).collect();
    table::lines(&[Align::Left, Align::Right, Align::Right, Align::Left], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_limit_that_is_passed_is_named() {
        let named = |n| warnings(n, None, 0).first().map(|w| w.lines().next().unwrap_or_default().to_owned());
        assert_eq!(named(40), None);
        assert!(named(41).unwrap().contains("stop at 40"));
        assert!(named(81).unwrap().contains("Cursor"));
        assert!(named(129).unwrap().contains("128"));
        let of = |client| too_many(129, Some(client)).unwrap().0;
        assert!(of("claude-ai").contains("stop at 40") && of("cursor-vscode").contains("Cursor"), "{}", of("claude-ai"));
        assert!(of("Visual Studio Code").contains("128"));
    }

    #[test]
    fn m12_what_goes_unasked_on_its_servers_own_word_is_told() {
        let told = warnings(3, None, 2);
        assert!(told[0].starts_with("2 tools marked `*`") && told[0].contains("unlisted"), "{told:?}");
        assert!(warnings(3, None, 0).is_empty());
    }
}
