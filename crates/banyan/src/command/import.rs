//! `banyan import`: the servers that other clients' files name, shown or written into a configuration. Changes no client's file.

use std::path::{Path, PathBuf};

use clap::Args;
use config::secret::SecretStore;
use import::{self, Found, Note};
use serde::Serialize;

use crate::arguments::Place;
use crate::consent::AnswerLifetime;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::plan::{self, Wish};
use crate::table::counted;
use crate::{consent, listing, places, terminal};

/// Shows the servers that other clients' files name, or writes them into a configuration.
#[derive(Args)]
pub(crate) struct Import {
    /// Read this file in place of those of the clients
    file: Option<PathBuf>,
    /// Write a configuration: to --config, else to banyan.toml here
    #[arg(short, long)]
    write: bool,
    /// Move secrets that stand in those files as plain text into the system's keyring; asked for on a terminal
    #[arg(long, requires = "write")]
    keyring: bool,
}

/// `banyan import --json`.
#[derive(Serialize)]
struct Report<'a> {
    servers: Vec<Row>,
    notes: &'a [Note],
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<&'a Path>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    enabled: bool,
    command: String,
    origins: Vec<String>,
    plain_secrets: Vec<String>,
}

impl Import {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let clients = plan::clients(&Wish { from: None, listen: None, yes: false })?;
        let mut found = match &self.file {
            Some(file) => import::from_file(file, &clients)?,
            None => import::discover(&clients),
        };
        if found.servers.is_empty() {
            let notes: String = listing::notes(&found, true).iter().map(|n| format!("\n  {n}")).collect();
            let advice = "write a banyan.toml by hand: a section [mount.NAME] with a `command` or a `url` is enough";
            return Err(Failure::NotFound(format!("no client's file names a server that can be taken{notes}\n  {advice}")));
        }
        let rows: Vec<Row> = rows(&found);
        let written = if self.write { Some(self.write(&mut found, place, output)?) } else { None };
        if output.wants_json() {
            return output.json(&Report { servers: rows, notes: &found.notes, written: written.as_deref() });
        }
        match written {
            Some(path) => output.line(&format!("{} written to {}; `banyan up` serves them", counted(rows.len(), "server"), path.display())),
            None => print(&found, output),
        }
    }

    fn write(&self, found: &mut Found, place: &Place, output: &Output) -> Result<PathBuf, Failure> {
        let path = place.config.clone().unwrap_or_else(|| PathBuf::from(places::CONFIG_NAME));
        if path.exists() {
            let text = format!("{} is there already\n  name another file with --config, or move it away", path.display());
            return Err(Failure::Refused(text));
        }
        if !output.wants_json() {
            consent::show(found, output);
        }
        consent::answer_questions(found, AnswerLifetime::ForGood, output)?;
        self.keep_secrets(found, output)?;
        let failed = |e: std::io::Error| Failure::Failed(format!("{} can't be written: {e}", path.display()));
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        crate::private::write_new(&path, &import::to_toml(found)).map_err(failed)?;
        Ok(path)
    }

    /// Puts references in place of plain secrets, where somebody wants that and the keyring takes them.
    fn keep_secrets(&self, found: &mut Found, output: &Output) -> Result<(), Failure> {
        let secrets = found.plain_secrets();
        if secrets.is_empty() {
            return Ok(());
        }
        let places: Vec<String> = secrets.iter().map(|s| format!("  {s}")).collect();
        let warning = output.paint_remark(Look::Warn, "secrets as plain text:");
        output.remark(&format!("{warning}\n{}", places.join("\n")));
        let wanted = self.keyring || (terminal::somebody_is_there() && terminal::agrees("Move them into the system's keyring?")?);
        if !wanted {
            output.remark("they are written into the configuration as they are; `--keyring` moves them into the system's keyring");
            return Ok(());
        }
        let store = SecretStore::in_dir(&places::state_dir()?);
        for secret in &secrets {
            store.set(&secret.name, &secret.value)?;
            found.refer(secret);
        }
        Ok(())
    }
}

fn rows(found: &Found) -> Vec<Row> {
    let secrets = found.plain_secrets();
    let row = |server: &import::Server| Row {
        name: server.mount.name.to_string(),
        enabled: server.enabled,
        command: listing::command(server, &secrets),
        origins: server.origins.iter().map(ToString::to_string).collect(),
        plain_secrets: secrets.iter().filter(|s| s.mount == server.mount.name).map(ToString::to_string).collect(),
    };
    found.servers.iter().map(row).collect()
}

fn print(found: &Found, output: &Output) -> Result<(), Failure> {
    listing::servers(found, output).iter().try_for_each(|line| output.line(line))?;
    for note in listing::notes(found, true) {
        output.remark(&format!("{} {note}", output.paint_remark(Look::Dim, "note:")));
    }
    output.remark("nothing is written; `banyan import --write` makes a configuration of them");
    Ok(())
}
