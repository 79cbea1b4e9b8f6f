//! `banyan add` and `banyan rm`: servers, as sections `[mount.NAME]` of `banyan.toml`. Starts no server; a running gate follows the file.

use std::path::{Path, PathBuf};

use clap::Args;
use config::resolved::Mount;
use toml_edit::{Array, InlineTable, Item, Table, TableLike, Value, value};

use super::unserved;
use crate::arguments::Place;
use crate::document::{self, Document};
use crate::examine::{self, Level};
use crate::failure::Failure;
use crate::gate;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::similar::did_you_mean;

/// Sections beside `[mount]` whose names stand in front of tools.
const OTHERS: [(&str, &str); 3] = [("device", "device"), ("agent", "agent"), ("stub", "part")];

/// Adds a server: a program to start, or an address to reach.
#[derive(Args)]
#[command(after_help = "Examples:\n  banyan add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n  \
    banyan add github --url https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${keyring:github}'\n  \
    banyan add db --env 'PGPASSWORD=${keyring:db}' -- uvx postgres-mcp")]
pub(crate) struct Add {
    /// The name in front of its tools
    name: String,
    /// Address of a server that is reached over HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A header for its address, as NAME=VALUE; the value may be a reference like `${keyring:NAME}`
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    headers: Vec<(String, String)>,
    /// A variable for its program, as NAME=VALUE; the value may be a reference like `${keyring:NAME}`
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "command")]
    env: Vec<(String, String)>,
    /// Working directory of its program
    #[arg(long, requires = "command")]
    cwd: Option<PathBuf>,
    /// The program and its arguments, behind `--`
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    command: Vec<String>,
}

/// Removes a server.
#[derive(Args)]
pub(crate) struct Remove {
    /// The name in front of its tools
    name: String,
}

impl Add {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut document = Document::open(place)?;
        document.check()?;
        let taken = named(&document).find(|(name, _)| *name == self.name).map(|(_, what)| what);
        if let Some(what) = taken {
            let name = printable(&self.name);
            let advice = if what == "server" { format!("\n  `banyan rm {name}` removes it") } else { String::new() };
            return Err(Failure::Refused(format!("there is a {what} `{name}` already{advice}")));
        }
        let mounts = document.section("mount")?;
        mounts.set_implicit(true);
        mounts.insert(&self.name, Item::Table(self.section()?));
        let parsed = document.parsed()?;
        let mount = parsed.mounts.values().find(|mount| mount.name.as_str() == self.name);
        let flaws = mount.map(|mount| flaws(mount)).unwrap_or_default();
        let was_there = document.is_there();
        document.write()?;
        let follows = !gate::serving(&document.path)?.is_empty();
        if output.wants_json() {
            let flaws: Vec<String> = flaws.iter().map(|(flaw, _)| flaw.clone()).collect();
            return output.json(&serde_json::json!({ "name": self.name, "file": document.path, "flaws": flaws, "running": follows }));
        }
        output.line(&format!("added to {}", document.path.display()))?;
        for (flaw, fix) in &flaws {
            output.remark(&format!("{} {}\n  {}", output.paint_remark(Look::Warn, "but:"), printable(flaw), printable(fix)));
        }
        output.remark(if follows { "the running gate takes it in by itself: see `banyan status`" } else { "`banyan up` serves it" });
        for gate in gate::without_file()?.iter().filter(|_| !follows) {
            let note = output.paint_remark(Look::Dim, "note:");
            output.remark(&format!(
                "{note} the gate at {} serves {}, and does not read the file\n  `banyan stop --gate {}` ends it, then `banyan up` serves the file",
                gate.url, printable(&gate.serves), gate.pid
            ));
        }
        if !was_there {
            unserved::remark(&document.path, output)?;
        }
        Ok(())
    }

    fn section(&self) -> Result<Table, Failure> {
        let mut section = Table::new();
        if let Some(url) = &self.url {
            section["url"] = value(url);
        }
        if let [program, arguments @ ..] = self.command.as_slice() {
            section["command"] = value(found(program)?);
            if !arguments.is_empty() {
                section["args"] = value(arguments.iter().collect::<Array>());
            }
        }
        if let Some(cwd) = &self.cwd {
            section["cwd"] = value(absolute(cwd)?);
        }
        for (key, pairs) in [("env", &self.env), ("headers", &self.headers)] {
            if !pairs.is_empty() {
                section[key] = value(pairs.iter().map(|(name, text)| (name, Value::from(text))).collect::<InlineTable>());
            }
        }
        Ok(section)
    }
}

impl Remove {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut document = Document::open(place)?;
        let file = document.path.display().to_string();
        let name = printable(&self.name);
        match named(&document).find(|(known, _)| *known == self.name) {
            Some((_, "server")) => {}
            Some((_, what)) => {
                return Err(Failure::Refused(format!("`{name}` is a {what}: remove its section from {file}, and what names it there")));
            }
            None => {
                let hint = did_you_mean(&self.name, named(&document).filter(|(_, what)| *what == "server").map(|(known, _)| known));
                return Err(Failure::NotFound(format!("there is no server `{name}` in {file}{hint}\n  `banyan status` shows the servers")));
            }
        }
        let was_taken = document.check().is_ok();
        document.remove("mount", &self.name)?;
        // Where others name it, the file would be refused; an older flaw is not this command's to judge.
        if was_taken {
            document.check()?;
        }
        document.write()?;
        if output.wants_json() {
            return output.json(&serde_json::json!({ "removed": self.name, "file": document.path }));
        }
        output.line(&format!("removed from {file}"))
    }
}

/// Names in front of tools, each with the word for what it stands for.
fn named(document: &Document) -> impl Iterator<Item = (&str, &'static str)> {
    [("mount", "server")].into_iter().chain(OTHERS).flat_map(|(section, what)| {
        let section = document.toml.get(section).and_then(Item::as_table_like);
        section.into_iter().flat_map(TableLike::iter).map(move |(name, _)| (name, what))
    })
}

/// Flaws that would keep the server from its work, each with the remedy. Starts nothing.
fn flaws(mount: &Mount) -> Vec<(String, String)> {
    let findings = examine::servers(std::iter::once(mount)).into_iter().filter(|finding| finding.level != Level::Ok);
    findings.map(|finding| (finding.message, finding.fix.unwrap_or_default())).collect()
}

/// A program with a place of its own, from wherever the gate will start it; others are looked for in the path.
fn found(program: &str) -> Result<String, Failure> {
    if program.contains('/') { absolute(Path::new(program)) } else { Ok(program.to_owned()) }
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| document::failed(path, "found", &error))?;
    let text = absolute.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Usage(format!("{} is no UTF-8 text, as a configuration needs it", absolute.display())))
}

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.ok_or_else(|| "write it as NAME=VALUE".to_owned())?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}
