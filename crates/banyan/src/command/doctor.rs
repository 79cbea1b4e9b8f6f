//! `banyan doctor`: names the broken thing and what mends it. Mends nothing by itself, and starts no server.

use clap::Args;
use gateway::config::secret::SystemSources;
use serde::Serialize;

use crate::arguments::Place;
use crate::examine::{self, Finding, Level};
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::places;

/// Looks for what is broken and says how to mend it.
#[derive(Args)]
pub(crate) struct Doctor {}

/// `banyan doctor --json`.
#[derive(Serialize)]
struct Report {
    problems: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let findings = findings(place)?;
        let count = |level| findings.iter().filter(|f| f.level == level).count();
        let report = Report { problems: count(Level::Problem), warnings: count(Level::Warning), findings };
        if output.wants_json() {
            output.json(&report)?;
        } else {
            report.findings.iter().try_for_each(|f| print(f, output))?;
        }
        match report.problems {
            0 => Ok(()),
            1 => Err(Failure::Failed("one thing is broken".to_owned())),
            many => Err(Failure::Failed(format!("{many} things are broken"))),
        }
    }
}

fn findings(place: &Place) -> Result<Vec<Finding>, Failure> {
    let Some(path) = places::config_file(place.config.as_deref())? else {
        return Ok(vec![Finding::ok("configuration", "none: `banyan up` uses what it finds in the files of your clients")]);
    };
    let subject = "configuration";
    match gateway::config::load(&path, &SystemSources) {
        Ok(config) => {
            let fine = Finding::ok(subject, format!("{} is fine", path.display()));
            Ok([vec![fine], examine::configuration(&config)].concat())
        }
        Err(error) => {
            Ok(vec![Finding::problem(subject, error.to_string(), format!("correct {}; `banyan check` tries again", path.display()))])
        }
    }
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
