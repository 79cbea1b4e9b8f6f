//! `banyan check`: whether a configuration can be used, and where it can't. Starts nothing and fetches no secret.

use std::path::{Path, PathBuf};

use clap::Args;
use config::resolved::{Config, FamilySettings, RemoteAgent, Transport};
use config::secret::SystemSources;
use config::{ConfigError, Problem};
use serde::Serialize;

use crate::arguments::Place;
use crate::command::doctor;
use crate::examine::{self, Finding};
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::places;
use crate::printable::printable;
use crate::table::counted;

/// Checks a configuration without starting anything.
#[derive(Args)]
pub(crate) struct Check {
    /// The file [default: the configuration that `banyan up` would use]
    file: Option<PathBuf>,
    /// End with code 1 also where only a program, a directory or a variable is missing
    #[arg(long)]
    strict: bool,
}

/// `banyan check --json`.
#[derive(Serialize)]
struct Report<'a> {
    file: &'a Path,
    ok: bool,
    problems: &'a [Problem],
    /// Mistakes behind the last of these.
    more: usize,
    /// Mistakes left out because they may only follow from these.
    #[serde(skip_serializing_if = "is_zero")]
    following: usize,
    mounts: Vec<String>,
    /// Notices about claims taken on trust.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// Missing programs, directories and variables: the server in question would not start here.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [Finding],
}

impl Check {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let file = places::config_file(self.file.as_deref().or(place.config.as_deref()))?;
        let none = || {
            let advice = places::MAKE_ONE;
            Failure::NotFound(format!(
                "there is no banyan.toml here, nor in the user's configuration directory\n  {advice}; `banyan up` starts without one"
            ))
        };
        let file = file.ok_or_else(none)?;
        match gateway::parts::sections().load(&file, &SystemSources) {
            Ok(config) => {
                gateway::trust::check(&config).map_err(|error| Failure::Failed(error.to_string()))?;
                let warnings = examine::programs(config.mounts.values().map(|mount| &**mount));
                fine(&file, &config, &warnings, output)?;
                let count = counted(warnings.len(), "warning");
                if self.strict && !warnings.is_empty() { Err(Failure::Failed(format!("{count} in {}", file.display()))) } else { Ok(()) }
            }
            Err(ConfigError::Invalid { problems, more, following, .. }) if output.wants_json() => {
                output.json(&Report {
                    file: &file,
                    ok: false,
                    problems: &problems,
                    more,
                    following,
                    mounts: Vec::new(),
                    notices: Vec::new(),
                    warnings: &[],
                })?;
                Err(Failure::Failed(summary(&file, problems.len() + more)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn fine(file: &Path, config: &Config, warnings: &[Finding], output: &Output) -> Result<(), Failure> {
    let mounts: Vec<String> = config.mounts.keys().map(ToString::to_string).collect();
    if output.wants_json() {
        return output.json(&Report {
            file,
            ok: true,
            problems: &[],
            more: 0,
            following: 0,
            mounts,
            notices: config::notices(config),
            warnings,
        });
    }
    let count = |is_kind: fn(&Transport) -> bool| config.servers().filter(|mount| is_kind(&mount.transport)).count();
    let started = count(|transport| matches!(transport, Transport::Stdio(_)));
    let reached = count(|transport| matches!(transport, Transport::Http(_) | Transport::Sse(_)));
    let is_agent = |transport: &Transport| matches!(transport, Transport::Family(family) if family.family() == RemoteAgent::FAMILY);
    let agents = count(is_agent);
    let others = count(|transport| matches!(transport, Transport::Family(_))) - agents;
    let agents = if agents > 0 { format!(", {}", counted(agents, "agent")) } else { String::new() };
    let others = if others > 0 { format!(", {others} of other kinds") } else { String::new() };
    output.line(&format!(
        "{} is fine: {} to start, {reached} to reach over HTTP{agents}{others}, listens on {}",
        file.display(),
        counted(started, "server"),
        config.listen
    ))?;
    if started + reached > 0 {
        output
            .remark(&output.paint_remark(Look::Dim, "no server was tried: `banyan doctor` looks whether programs and addresses are there"));
    }
    warnings.iter().try_for_each(|warning| doctor::print(warning, output))?;
    for notice in config::notices(config) {
        output.remark(&format!("{} {}", output.paint_remark(Look::Warn, "warning:"), printable(&notice)));
    }
    Ok(())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn summary(file: &Path, problems: usize) -> String {
    format!("{} in {}", counted(problems, "problem"), file.display())
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match &error {
            ConfigError::Invalid { path, problems, more, .. } => {
                Self::Failed(format!("{}\n\n{error}", summary(path, problems.len() + more)))
            }
            ConfigError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Self::NotFound(error.to_string()),
            ConfigError::Empty { .. } | ConfigError::Read { .. } => Self::Failed(error.to_string()),
        }
    }
}
