//! `banyan import`: the servers that other clients' files name, shown or written into a configuration. Changes no client's file.

use std::path::{Path, PathBuf};

use clap::Args;
use config::secret::SecretStore;
use import::{self, Found, Note};
use serde::Serialize;
use toml_edit::{Item, TableLike};

use crate::arguments::Place;
use crate::consent::AnswerLifetime;
use crate::document::{self, Document};
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
    /// Write them: into --config, else the configuration in use, else a new banyan.toml here; servers that are there already stay as they are
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
    /// Servers whose names were in the configuration already.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    kept: &'a [String],
}

/// Servers that went into a configuration.
struct WrittenServers {
    path: PathBuf,
    count: usize,
    /// Names that were there already.
    kept: Vec<String>,
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
            let advice = "`banyan add NAME -- COMMAND` adds a server, or write a banyan.toml by hand: a section [mount.NAME] with a `command` or a `url` is enough";
            return Err(Failure::NotFound(format!("no client's file names a server that can be taken{notes}\n  {advice}")));
        }
        let rows: Vec<Row> = rows(&found);
        let written = if self.write { Some(self.write(&mut found, place, output)?) } else { None };
        if output.wants_json() {
            let (path, kept) = (written.as_ref().map(|written| &*written.path), written.as_ref().map_or(&[][..], |written| &written.kept));
            return output.json(&Report { servers: rows, notes: &found.notes, written: path, kept });
        }
        let Some(written) = written else { return print(&found, output) };
        if !written.kept.is_empty() {
            let all = written.kept.join("`, `");
            output.remark(&format!("`{all}` stands in {} already and is left as it is", written.path.display()));
        }
        output.line(&format!("{} written to {}; `banyan up` serves them", counted(written.count, "server"), written.path.display()))
    }

    fn write(&self, found: &mut Found, place: &Place, output: &Output) -> Result<WrittenServers, Failure> {
        let path = places::config_file(place.config.as_deref())?.unwrap_or_else(|| PathBuf::from(places::CONFIG_NAME));
        let mut document = path.exists().then(|| Document::at(path.clone())).transpose()?;
        let mut kept = Vec::new();
        if let Some(document) = &document {
            document.check()?;
            let known: Vec<&str> = names(document).collect();
            found.servers.retain(|server| {
                let is_new = !known.contains(&server.mount.name.as_str());
                if !is_new {
                    kept.push(server.mount.name.to_string());
                }
                is_new
            });
        }
        if !output.wants_json() {
            consent::show(found, output);
        }
        consent::answer_questions(found, AnswerLifetime::ForGood, output)?;
        self.keep_secrets(found, output)?;
        let count = found.servers.len();
        if let Some(document) = &mut document {
            merge(document, &import::to_toml(found))?;
            document.write()?;
            return Ok(WrittenServers { path, count, kept });
        }
        let failed = |e: std::io::Error| Failure::Failed(format!("{} can't be written: {e}", path.display()));
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        crate::private::write_new(&path, &import::to_toml(found)).map_err(failed)?;
        Ok(WrittenServers { path, count, kept })
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

/// Names of the servers of a configuration.
fn names(document: &Document) -> impl Iterator<Item = &str> {
    let mounts = document.toml.get("mount").and_then(Item::as_table_like);
    mounts.into_iter().flat_map(TableLike::iter).map(|(name, _)| name)
}

/// Puts the sections `[mount.NAME]` of a text, with their comments, behind those of a configuration.
fn merge(document: &mut Document, text: &str) -> Result<(), Failure> {
    let mut new = document::parsed(text, &document.path)?;
    let Some(Item::Table(mut added)) = new.remove("mount") else { return Ok(()) };
    let mounts = document.section("mount")?;
    mounts.set_implicit(true);
    for (name, mut section) in std::mem::take(&mut added) {
        // Without a place of its own, a section stands behind all others.
        if let Some(table) = section.as_table_mut() {
            table.set_position(None);
        }
        mounts.insert(&name, section);
    }
    document.check()
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
