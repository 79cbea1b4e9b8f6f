//! `banyan policy`: making, checking and trying rules for calls. The rules in force are named in banyan.toml, not here.

mod fixtures;
mod replay;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use config::resolved::Config;
use config::rules::{self, BadRules};
use config::secret::SystemSources;
use config::{ConfigError, Problem};
use policy::decide::{Mode, Policies};
use serde::Serialize;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::table::counted;
use crate::{document, places};

use fixtures::Test;
use replay::Replay;

/// Makes, checks and tries the rules about calls.
#[derive(Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Check rules without putting them in force
    Check(Check),
    /// Write a file of rules to begin with
    Init(Init),
    /// Ask rules about recorded calls: would they be refused now?
    Replay(Replay),
    /// Try rules on calls that are written in a file
    Test(Test),
}

#[derive(Args)]
struct Check {
    /// The rules [default: the file that banyan.toml names]
    file: Option<PathBuf>,
}

#[derive(Args)]
struct Init {
    /// Where to write them
    #[arg(default_value = "policy.cedar")]
    file: PathBuf,
}

/// `banyan policy check --json`.
#[derive(Serialize)]
struct Report<'a> {
    file: &'a Path,
    ok: bool,
    problems: &'a [Problem],
    /// Mistakes behind the last of these.
    more: usize,
    rules: Vec<RuleRow>,
    arguments: Vec<String>,
}

#[derive(Serialize)]
struct RuleRow {
    id: String,
    line: usize,
    mode: &'static str,
}

impl Policy {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.what {
            What::Check(check) => check.run(place, output),
            What::Init(init) => init.run(output),
            What::Replay(replay) => replay.run(place, output),
            What::Test(test) => test.run(place, output),
        }
    }
}

impl Check {
    fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let (file, checked) = match &self.file {
            Some(file) => (file.clone(), read(file, &text(file)?)),
            None => match gateway::parts::sections().load(&configuration(place)?, &SystemSources) {
                Ok(config) => {
                    let rules = config.policy.ok_or_else(|| Failure::NotFound(NO_SECTION.into()))?;
                    let again = read(&rules.file, &text(&rules.file)?);
                    (rules.file, again)
                }
                Err(ConfigError::Invalid { path, problems, more, following }) => {
                    (path.clone(), Err(ConfigError::Invalid { path, problems, more, following }))
                }
                Err(error) => return Err(error.into()),
            },
        };
        match checked {
            Ok(policies) => fine(&file, &policies, output),
            Err(ConfigError::Invalid { problems, more, .. }) if output.wants_json() => {
                let report = Report { file: &file, ok: false, problems: &problems, more, rules: Vec::new(), arguments: Vec::new() };
                output.json(&report)?;
                Err(Failure::Failed(format!("{} in {}", counted(problems.len() + more, "problem"), file.display())))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn fine(file: &Path, policies: &Policies, output: &Output) -> Result<(), Failure> {
    let word = |mode| if mode == Mode::Shadow { "shadow" } else { "enforce" };
    let rows = policies.rules().map(|rule| RuleRow { id: rule.id.to_string(), line: rule.line, mode: word(rule.mode) });
    let report = Report { file, ok: true, problems: &[], more: 0, rules: rows.collect(), arguments: policies.wanted() };
    if output.wants_json() {
        return output.json(&report);
    }
    let shadows = report.rules.iter().filter(|rule| rule.mode == "shadow").count();
    let mut text = format!("{} is fine: {}", file.display(), counted(report.rules.len(), "rule"));
    if shadows > 0 {
        text.push_str(&format!(", {shadows} of them in shadow mode"));
    }
    if !report.arguments.is_empty() {
        text.push_str(&format!("; arguments that are read: {}", report.arguments.join(", ")));
    }
    output.line(&text)
}

impl Init {
    fn run(&self, output: &Output) -> Result<(), Failure> {
        use std::io::Write;
        let file = &self.file;
        let made = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
        made.and_then(|mut made| made.write_all(rules::STARTER.as_bytes())).map_err(|error| {
            let there = error.kind() == std::io::ErrorKind::AlreadyExists;
            if there {
                let advice = "name another file, or check this one with `banyan policy check FILE`";
                return Failure::Failed(format!("{} can't be written: {error}\n  {advice}", file.display()));
            }
            document::failed(file, "written", &error)
        })?;
        if output.wants_json() {
            return output.json(&serde_json::json!({ "file": file }));
        }
        output.line(&format!("{} {}: everybody may do everything, as before", output.paint(Look::Good, "wrote"), file.display()))?;
        output.line("change it, look at it with `banyan policy check FILE`, and put it in force in banyan.toml:")?;
        output.line(&format!("\n[policy]\nfile = \"{}\"", file.display()))
    }
}

const NO_SECTION: &str = "banyan.toml names no rules: everybody may call whatever is shown\n  `banyan policy init` writes rules to begin with, \
     and [policy] file = \"policy.cedar\" puts them in force";

/// Finds the configuration file for `banyan up`.
fn configuration(place: &Place) -> Result<PathBuf, Failure> {
    let file = places::config_file(place.config.as_deref())?;
    file.ok_or_else(|| Failure::NotFound(format!("there is no banyan.toml here\n  {}", places::MAKE_ONE)))
}

/// Loads the configuration for `banyan up`.
fn configured(place: &Place) -> Result<Config, Failure> {
    Ok(gateway::parts::sections().load(&configuration(place)?, &SystemSources)?)
}

/// Reads a file of rules.
fn text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            return Failure::NotFound(format!("there is no {0}\n  `banyan policy init {0}` writes rules to begin with", file.display()));
        }
        document::unread(file, &error)
    })
}

fn read(file: &Path, text: &str) -> Result<Policies, ConfigError> {
    rules::parse(file, text).map_err(|BadRules(error)| error)
}
