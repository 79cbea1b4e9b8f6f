//! `banyan doctor`: names broken things and their remedies. Mends nothing by itself, and starts servers only on request.

use clap::Args;
use config::resolved::Join;
use config::secret::SystemSources;
use gateway::admin::shapes::MountStatus;
use import::{self, Found};
use serde::Serialize;

use crate::arguments::Place;
use crate::asked::AskedGate;
use crate::command::tools::too_many;
use crate::examine::{self, Finding, Level};
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::plan::{self, Wish};
use crate::printable::printable;
use crate::table::counted;
use crate::{gate, places, threads, trouble};

/// Finds broken parts and their remedies.
#[derive(Args)]
pub(crate) struct Doctor {
    /// Start the servers of the configuration as well, where no gate runs, to see whether they come up
    #[arg(long)]
    start: bool,
}

/// `banyan doctor --json`.
#[derive(Serialize)]
struct Report {
    problems: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let Rest { mut findings, servers, parents } = at_rest(place)?;
        let broken = findings.iter().any(|f| f.level == Level::Problem && f.subject == CONFIGURATION);
        let is_running = gate::running(place)?.is_some();
        if is_running || (self.start && !broken) {
            findings.extend(threads::wait(alive(place, servers, output))??);
        } else {
            findings.extend(servers);
        }
        // A running gate knows better.
        findings.extend(parents.filter(|_| !is_running).iter().flat_map(examine::parents));
        let count = |level| findings.iter().filter(|f| f.level == level).count();
        let report = Report { problems: count(Level::Problem), warnings: count(Level::Warning), findings };
        if output.wants_json() {
            output.json(&report)?;
        } else {
            report.findings.iter().try_for_each(|f| print(f, output))?;
        }
        match report.problems {
            0 => Ok(()),
            many => Err(Failure::Failed(format!("{} found", counted(many, "problem")))),
        }
    }
}

const CONFIGURATION: &str = "configuration";

/// Findings made without starting anything.
#[derive(Default)]
struct Rest {
    findings: Vec<Finding>,
    /// Findings about servers, with subjects `server NAME`.
    servers: Vec<Finding>,
    parents: Option<Join>,
}

fn at_rest(place: &Place) -> Result<Rest, Failure> {
    let Some(path) = places::config_file(place.config.as_deref())? else {
        let found = import::discover(&plan::clients(&Wish { from: None, listen: None, yes: false })?);
        let servers = examine::servers(found.mounts().values().map(|mount| &**mount));
        return Ok(Rest { findings: unconfigured(&found), servers, parents: None });
    };
    Ok(match gateway::parts::sections().load(&path, &SystemSources) {
        Ok(config) => {
            let fine = Finding::ok(CONFIGURATION, format!("{} can be read", path.display()));
            let findings = [vec![fine], examine::configuration(&config)].concat();
            Rest { findings, servers: examine::servers(config.mounts.values().map(|mount| &**mount)), parents: config.join }
        }
        Err(error) => {
            let fix = format!("correct {}; `banyan check` tries again", path.display());
            Rest { findings: vec![Finding::problem(CONFIGURATION, error.to_string(), fix)], ..Rest::default() }
        }
    })
}

/// Lists findings without a configuration, where `banyan up` uses clients' files.
fn unconfigured(found: &Found) -> Vec<Finding> {
    let servers = counted(found.mounts().len(), "server");
    let mut findings = vec![Finding::ok(CONFIGURATION, format!("none; `banyan up` finds {servers} in the files of your clients"))];
    for file in &found.files {
        if let Some(problem) = &file.problem {
            let fix = "correct it; its client will most likely not read it either";
            findings.push(Finding::problem(file.path.display().to_string(), printable(problem), fix));
        }
    }
    findings
}

/// Adds the findings of a running gate, or of a gate started for a look. `rest`: findings about its servers made without it.
async fn alive(place: &Place, rest: Vec<Finding>, output: &Output) -> Result<Vec<Finding>, Failure> {
    let asked = AskedGate::find(place, output).await?;
    let mut findings = Vec::new();
    if let Some(status) = asked.status().await? {
        findings.extend(trouble::of_gate(&status));
        findings.extend(status.joined.iter().flat_map(trouble::of_parents));
    }
    let (_, mounts) = asked.mounts().await?;
    for mount in &mounts {
        let subject = format!("server {}", mount.name);
        let known: Vec<&Finding> = rest.iter().filter(|f| f.subject == subject && f.level == Level::Problem).collect();
        findings.push(running(mount, &known));
        let notes =
            mount.notes.iter().map(|n| Finding::warning(format!("server {}", mount.name), printable(n), "tell whoever makes the server"));
        findings.extend(notes);
    }
    let tools = asked.tools(None).await?.tools.len();
    findings.extend(too_many(tools, None).map(|(why, fix)| Finding::warning("tools", why, fix)));
    asked.finish(output).await;
    Ok(findings)
}

/// Makes the finding about a running server. A finding in `known` names the better remedy.
fn running(mount: &MountStatus, known: &[&Finding]) -> Finding {
    let subject = format!("server {}", mount.name);
    let known: Vec<String> = known.iter().map(|f| format!("{}: {}", f.message, f.fix.as_deref().unwrap_or_default())).collect();
    match (&mount.error, known.is_empty()) {
        (None, true) => Finding::ok(subject, format!("{} with {}", mount.state, counted(mount.tools, "tool"))),
        (None, false) => {
            let message = format!("{} with {}, but it would not start again", mount.state, counted(mount.tools, "tool"));
            Finding::warning(subject, message, known.join("\n"))
        }
        (Some(error), true) => {
            let fix = format!("mend what it says; `banyan logs {} -f` shows it trying again", mount.name);
            Finding::problem(subject, format!("{}: {}", mount.state, printable(error)), fix)
        }
        (Some(error), false) => Finding::problem(subject, format!("{}: {}", mount.state, printable(error)), known.join("\n")),
    }
}

/// Prints a finding in lines for people.
pub(super) fn print(finding: &Finding, output: &Output) -> Result<(), Failure> {
    let mark = match finding.level {
        Level::Ok => output.paint(Look::Good, "ok      "),
        Level::Problem => output.paint(Look::Bad, "broken  "),
        Level::Warning => output.paint(Look::Warn, "warning "),
    };
    let indented = |text: &str| text.replace('\n', "\n          ");
    output.line(&format!("{mark}  {}: {}", finding.subject, indented(&finding.message)))?;
    finding.fix.iter().try_for_each(|fix| output.line(&format!("          {} {}", output.paint(Look::Strong, "fix:"), indented(fix))))
}
