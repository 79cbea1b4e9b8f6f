//! `banyan doctor`: names the broken thing and what mends it. Mends nothing by itself, and starts servers only when told to.

use clap::Args;
use gateway::config::secret::SystemSources;
use gateway::import::{self, Found};
use serde::Serialize;

use crate::arguments::Place;
use crate::asked::Asked;
use crate::command::tools::too_many;
use crate::examine::{self, Finding, Level};
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::plan::{self, Wish};
use crate::printable::printable;
use crate::table::counted;
use crate::{gate, places, runtime};

/// Looks for what is broken and says how to mend it.
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
        let mut findings = at_rest(place)?;
        let broken = findings.iter().any(|f| f.level == Level::Problem && f.subject == CONFIGURATION);
        if gate::running(place)?.is_some() || (self.start && !broken) {
            findings.extend(runtime::wait(alive(place, output))??);
        }
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

/// What can be seen without starting anything.
fn at_rest(place: &Place) -> Result<Vec<Finding>, Failure> {
    let Some(path) = places::config_file(place.config.as_deref())? else {
        let found = import::discover(&plan::clients(&Wish { from: None, listen: None, yes: false })?);
        return Ok(unconfigured(&found));
    };
    match gateway::config::load(&path, &SystemSources) {
        Ok(config) => {
            let fine = Finding::ok(CONFIGURATION, format!("{} is fine", path.display()));
            Ok([vec![fine], examine::configuration(&config)].concat())
        }
        Err(error) => {
            let fix = format!("correct {}; `banyan check` tries again", path.display());
            Ok(vec![Finding::problem(CONFIGURATION, error.to_string(), fix)])
        }
    }
}

/// Without a configuration, `banyan up` uses what clients' files name.
fn unconfigured(found: &Found) -> Vec<Finding> {
    let servers = counted(found.mounts().len(), "server");
    let mut findings = vec![Finding::ok(CONFIGURATION, format!("none; `banyan up` finds {servers} in the files of your clients"))];
    for file in &found.files {
        if let Some(problem) = &file.problem {
            let fix = "correct it; its client will most likely not read it either";
            findings.push(Finding::problem(file.path.display().to_string(), printable(problem), fix));
        }
    }
    findings.extend(found.mounts().values().flat_map(|m| examine::mount(m)));
    findings
}

/// What a running gate knows, or one that is started to see.
async fn alive(place: &Place, output: &Output) -> Result<Vec<Finding>, Failure> {
    let asked = Asked::find(place, output).await?;
    let (_, mounts) = asked.mounts().await?;
    let mut findings = Vec::new();
    for mount in &mounts {
        let subject = format!("server {}, running", mount.name);
        findings.push(match &mount.error {
            None => Finding::ok(subject, format!("{} with {}", mount.state, counted(mount.tools, "tool"))),
            Some(error) => {
                let fix = format!("mend what it says; `banyan logs {} -f` shows it trying again", mount.name);
                Finding::problem(subject, format!("{}: {}", mount.state, printable(error)), fix)
            }
        });
        let notes =
            mount.notes.iter().map(|n| Finding::warning(format!("server {}", mount.name), printable(n), "tell whoever makes the server"));
        findings.extend(notes);
    }
    let tools = asked.tools(None).await?.tools.len();
    findings.extend(too_many(tools).map(|(why, fix)| Finding::warning("tools", why, fix)));
    asked.end(output).await;
    Ok(findings)
}

fn print(finding: &Finding, output: &Output) -> Result<(), Failure> {
    let mark = match finding.level {
        Level::Ok => output.paint(Look::Good, "ok      "),
        Level::Problem => output.paint(Look::Bad, "broken  "),
        Level::Warning => output.paint(Look::Warn, "look    "),
    };
    let indented = |text: &str| text.replace('\n', "\n          ");
    output.line(&format!("{mark}  {}: {}", finding.subject, indented(&finding.message)))?;
    finding.fix.iter().try_for_each(|fix| output.line(&format!("          {} {}", output.paint(Look::Strong, "fix:"), indented(fix))))
}
