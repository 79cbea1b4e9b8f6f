//! `banyan token`: callers, as `[[token]]` entries of `banyan.toml`. The token is printed once and kept nowhere; the file gets its hash.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use config::secret::SystemSources;
use gateway::admin::client::AdminError;
use sha2::{Digest, Sha256};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::unserved;
use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::similar::did_you_mean;
use crate::turn::Turn;
use crate::{document, gate, places, private, threads};

/// Makes, lists and removes bearer tokens of callers, kept as hashes.
#[derive(Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Make a token and print it, once
    Add {
        /// Name of the holder in logs and records
        name: String,
        /// The profile its holder always gets
        #[arg(long)]
        profile: Option<String>,
    },
    /// List the names of the tokens
    List,
    /// Remove a token: its holder is refused from the next request on
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the token
        name: String,
    },
}

impl Token {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let listing = Action::List;
        let action = self.action.as_ref().unwrap_or(&listing);
        let path = places::config_file(place.config.as_deref())?;
        let none = || Failure::NotFound(format!("there is no banyan.toml to keep tokens in\n  {}", places::MAKE_ONE));
        if let (None, Action::Add { name, profile }) = (&path, action) {
            let path = places::config_dir()?.join(places::CONFIG_NAME);
            let turn = Turn::to_edit(&path)?;
            add(&mut File { path: path.clone(), document: DocumentMut::new(), _turn: turn }, name, profile.as_deref(), output)?;
            tell_fileless(&path, output)?;
            return unserved::remark(&path, output);
        }
        let mut file = File::read(path.ok_or_else(none)?)?;
        match action {
            Action::Add { name, profile } => add(&mut file, name, profile.as_deref(), output),
            Action::List => list(&file, output),
            Action::Rm { name } => remove(&mut file, name, output),
        }
    }
}

/// Says that gates without a file know nothing of the first token: they were started before there was one.
fn tell_fileless(path: &Path, output: &Output) -> Result<(), Failure> {
    for gate in gate::without_file()? {
        let look = output.paint_remark(Look::Warn, "warning:");
        output.remark(&format!(
            "{look} the gate at {} serves {} and asks for no token: stop it with `banyan stop --gate {}`, and `banyan up` serves {}",
            gate.url,
            gate.serves,
            gate.pid,
            path.display()
        ));
    }
    Ok(())
}

fn add(file: &mut File, name: &str, profile: Option<&str>, output: &Output) -> Result<(), Failure> {
    if file.names().any(|n| n == name) {
        return Err(Failure::Refused(format!("there is a token `{name}` already\n  remove it first with `banyan token rm {name}`")));
    }
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(|e| Failure::Failed(format!("the system gives no random numbers: {e}")))?;
    let token = format!("banyan_{}", hex(&random));
    let mut entry = Table::new();
    entry["name"] = value(name);
    entry["sha256"] = value(hex(&Sha256::digest(token.as_bytes())));
    if let Some(profile) = profile {
        entry["profile"] = value(profile);
    }
    let was_taken = file.check().is_ok();
    file.tokens()?.push(entry);
    // A file with an older flaw is not this command's to judge.
    if was_taken {
        file.check()?;
    }
    file.write()?;
    let taken = file.taken();
    if output.wants_json() {
        output.json(&serde_json::json!({ "name": name, "token": token, "file": file.path }))?;
        return taken;
    }
    output.remark(&format!("added to {}; this is the only time the token is shown:", file.path.display()));
    output.line(&token)?;
    output.remark(&output.paint_remark(Look::Dim, "clients send it as  Authorization: Bearer TOKEN"));
    taken
}

fn list(file: &File, output: &Output) -> Result<(), Failure> {
    let names: Vec<&str> = file.names().collect();
    if output.wants_json() {
        return output.json(&serde_json::json!({ "tokens": names }));
    }
    if names.is_empty() {
        output.remark("there is no token; `banyan token add NAME` makes one");
    }
    names.iter().try_for_each(|n| output.line(n))
}

fn remove(file: &mut File, name: &str, output: &Output) -> Result<(), Failure> {
    if !file.names().any(|n| n == name) {
        let hint = did_you_mean(name, file.names());
        return Err(Failure::NotFound(format!("there is no token `{name}`{hint}\n  `banyan token list` shows them")));
    }
    file.tokens()?.retain(|t| t.get("name").and_then(Item::as_str) != Some(name));
    file.stays_shut(name)?;
    file.write()?;
    file.taken()?;
    if output.wants_json() {
        return output.json(&serde_json::json!({ "removed": name }));
    }
    if file.names().next().is_none() {
        output.remark(
            "no token is left: every program on this machine may call the gate, unless it asks for a certificate or for the token of an \
             issuer",
        );
    }
    output.line("removed")
}

/// `banyan.toml` with its comments and order.
struct File {
    path: PathBuf,
    document: DocumentMut,
    /// Held until the file is written.
    _turn: Option<Turn>,
}

impl File {
    fn read(path: PathBuf) -> Result<Self, Failure> {
        let turn = Turn::to_edit(&path)?;
        let text = std::fs::read_to_string(&path).map_err(|e| failed(&path, "read", &e))?;
        let document = document::parsed(&text, &path)?;
        Ok(Self { path, document, _turn: turn })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let tokens = self.document.get("token").and_then(Item::as_array_of_tables);
        tokens.into_iter().flat_map(ArrayOfTables::iter).filter_map(|t| t.get("name").and_then(Item::as_str))
    }

    fn tokens(&mut self) -> Result<&mut ArrayOfTables, Failure> {
        let tokens = self.document.entry("token").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        tokens.as_array_of_tables_mut().ok_or_else(|| {
            Failure::Failed(format!(
                "`token` in {} is not written as [[token]]\n  write each token so, then try again",
                self.path.display()
            ))
        })
    }

    /// Refuses to remove the last credential from a gate open to other machines, which would then let nobody in.
    fn stays_shut(&self, name: &str) -> Result<(), Failure> {
        let has = |section: &str, key: &str| self.document.get(section).is_some_and(|s| s.get(key).is_some_and(|item| !item.is_none()));
        let issuers = self.document.get("issuer").and_then(Item::as_table_like).is_some_and(|issuers| !issuers.is_empty());
        if self.names().next().is_some() || issuers || has("tls", "client_ca") {
            return Ok(());
        }
        let written = self.document.get("listen").and_then(Item::as_str).and_then(|listen| listen.parse::<SocketAddr>().ok());
        let written = written.filter(|address| !address.ip().is_loopback());
        let Some(address) = gate::network_address(&self.path)?.or(written) else { return Ok(()) };
        Err(Failure::Refused(format!(
            "`{name}` is the last token of a gate that listens on {address}, where other machines reach it\n  \
             make another token first with `banyan token add NAME`, then remove this one; nothing is changed"
        )))
    }

    /// Checks that a gate would take the file as it stands here.
    fn check(&self) -> Result<(), Failure> {
        gateway::parts::sections().parse(&self.document.to_string(), &self.path, &SystemSources)?;
        Ok(())
    }

    fn write(&self) -> Result<(), Failure> {
        let text = self.document.to_string();
        // A gate takes an empty file for one that is not written yet.
        let text = if text.trim().is_empty() { "# no token is left\n".to_owned() } else { text };
        if self.path.exists() {
            return private::replace(&self.path, &text).map_err(|e| failed(&self.path, "written", &e));
        }
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|e| failed(directory, "made", &e))?;
        }
        private::write_new(&self.path, &text).map_err(|e| failed(&self.path, "written", &e))
    }

    /// Waits until all running gates of the file have taken the change, which they would otherwise see a moment later.
    fn taken(&self) -> Result<(), Failure> {
        let gates = gate::all_of(&self.path)?;
        let asked = async {
            let mut refused = Ok(());
            for gate in &gates {
                // Each is asked, also where one before it refuses the file: all of them take away what is gone.
                refused = gate.post("/-/reload", &()).await.map(drop).and(refused);
            }
            refused
        };
        let goes_on = |error: AdminError| {
            let file = self.path.display();
            Failure::Failed(format!(
                "{file} is changed, but a gate that runs with it goes on with what it had but for credentials that are gone: {error}\n  \
                 mend that, then `banyan reload`"
            ))
        };
        threads::wait(asked)?.map_err(goes_on)
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Failure::NotFound(format!("there is no {}\n  {}", path.display(), places::MAKE_ONE));
    }
    document::failed(path, what, error)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        _ = write!(text, "{b:02x}");
        text
    })
}
