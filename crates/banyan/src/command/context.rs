//! `banyan context`: the history of a shared context. Changes nothing.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{gate, threads};

/// Show versions of a shared context, with their authors
#[derive(Args)]
pub(crate) struct Context {
    #[command(subcommand)]
    command: ContextCommand,
}

#[derive(Subcommand)]
enum ContextCommand {
    /// Show the context as it was at a version
    At {
        /// Name of the context in the configuration
        name: String,
        version: u64,
    },
    /// Show the changes between two versions
    Diff {
        /// Name of the context in the configuration
        name: String,
        from: u64,
        /// Default: the newest version
        to: Option<u64>,
    },
    /// Show the versions that are kept, with time and author
    Log {
        /// Name of the context in the configuration
        name: String,
    },
}

impl Context {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let (name, query) = match &self.command {
            ContextCommand::At { name, version } => (name, vec![("show", "at".to_owned()), ("version", version.to_string())]),
            ContextCommand::Diff { name, from, to } => {
                let to = to.map(|to| ("to", to.to_string()));
                (name, [("show", "diff".to_owned()), ("from", from.to_string())].into_iter().chain(to).collect())
            }
            ContextCommand::Log { name } => (name, vec![("show", "log".to_owned())]),
        };
        let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let path = format!("/-/context/{name}");
        let shown: Value = threads::wait(gate::needed(place)?.get(&path, &query))?.map_err(Failure::from)?;
        if output.wants_json() {
            return output.json(&shown);
        }
        if !shown["value"].is_null() {
            return output.line(&printable(&shown["value"].to_string()));
        }
        let versions = shown["versions"].as_array().or(shown["changes"].as_array());
        versions.into_iter().flatten().try_for_each(|version| output.line(&printable(&line(version))))
    }
}

fn line(version: &Value) -> String {
    let word = |member: &str| version[member].as_str().unwrap_or_default().to_owned();
    let value = if version["value"].is_null() { String::new() } else { format!(" {}", version["value"]) };
    let merged = version["merged"].as_u64().map(|merged| format!(", merged with {merged}")).unwrap_or_default();
    format!("{} {} {} {}{value} ({}{merged})", version["version"], version["time"], word("op"), word("path"), word("author"))
}
