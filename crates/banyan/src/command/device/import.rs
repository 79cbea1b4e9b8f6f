//! `banyan device import`: devices of an inventory that another tool keeps, shown or added to `banyan.toml`. What stands there already stays as
//! it is, and no password is taken over. Does not reach the devices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use config::resolved::Config;
use config::suggest;
use netdev::inventory::{Inventory, InventoryAccess, InventoryDevice, InventoryFile};
use serde::Serialize;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::arguments::Place;
use crate::document::{Document, unread};
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::similar::did_you_mean;
use crate::table::counted;

/// Lines about secrets that are shown; all stand in `--json`.
const SHOWN_SECRETS: usize = 5;

/// An inventory, and what its devices have in common.
#[derive(Args)]
pub(super) struct InventoryImport {
    /// Inventory of Ansible, Nornir (hosts.yaml), NetBox (JSON or CSV) or containerlab (.clab.yml)
    file: PathBuf,
    /// Write the devices into the configuration; without it they are shown only
    #[arg(short, long)]
    write: bool,
    /// Template of the configuration for all devices; credentials in the template are not asked for
    #[arg(long)]
    template: Option<String>,
    /// Name for the login where the inventory has none
    #[arg(long)]
    user: Option<String>,
    /// File of the private key for all logins; without one each device gets a reference to a password in the keyring
    #[arg(long)]
    key: Option<String>,
    /// Dialect of command lines of unknown platforms
    #[arg(long, value_parser = ["frr", "ios", "junos", "vrp"])]
    dialect: Option<String>,
}

/// `banyan device import --json`.
#[derive(Serialize)]
struct ImportReport<'a> {
    file: &'a Path,
    kind: String,
    devices: Vec<ImportedDevice>,
    /// New groups.
    groups: Vec<String>,
    notes: Vec<String>,
    /// Names of secrets for the keyring.
    secrets: Vec<String>,
    written: Option<PathBuf>,
}

#[derive(Serialize)]
struct ImportedDevice {
    name: String,
    /// Name in the inventory.
    given: String,
    status: ImportStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    groups: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ImportStatus {
    New,
    Kept,
    LeftOut,
}

/// New sections, by name.
#[derive(Default)]
struct NewSections {
    /// Names of all devices of the inventory.
    names: BTreeSet<String>,
    devices: BTreeMap<String, Table>,
    groups: BTreeSet<String>,
    secrets: Vec<String>,
}

impl InventoryImport {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let inventory = self.inventory()?;
        let mut document = Document::open(place)?;
        let config = document.parsed()?;
        let template = self.template_keys(&mut document)?;
        let names = inventory.devices.iter().map(|device| suggest::segment(&device.name).to_string());
        let mut new = NewSections { names: names.collect(), ..NewSections::default() };
        let devices: Vec<ImportedDevice> =
            inventory.devices.iter().map(|device| self.imported(device, &config, &template, &mut new)).collect();
        let preview = new.text();
        new.enter(&mut document)?;
        document.check()?;
        let is_written = self.write && !new.devices.is_empty();
        if is_written {
            document.write()?;
        }
        let report = ImportReport {
            file: &self.file,
            kind: format!("{:?}", inventory.kind).to_lowercase(),
            devices,
            groups: new.groups.into_iter().collect(),
            notes: inventory.notes,
            secrets: new.secrets,
            written: is_written.then(|| document.path.clone()),
        };
        if output.wants_json() { output.json(&report) } else { print(&report, &preview, output) }
    }

    /// Reads the file, and those of Nornir beside it.
    fn inventory(&self) -> Result<Inventory, Failure> {
        let text = |path: &Path| std::fs::read_to_string(path).map_err(|error| unread(path, &error));
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = vec![(name(&self.file), text(&self.file)?)];
        for beside in ["groups.yaml", "groups.yml", "defaults.yaml", "defaults.yml"] {
            let path = self.file.with_file_name(beside);
            if path.is_file() && path != self.file {
                files.push((name(&path), text(&path)?));
            }
        }
        let files: Vec<InventoryFile<'_>> = files.iter().map(|(name, text)| InventoryFile { name, text }).collect();
        Inventory::read(&files).map_err(|error| Failure::Refused(printable(&error.to_string())))
    }

    /// Keys that the template sets, with the values that are texts.
    fn template_keys(&self, document: &mut Document) -> Result<BTreeMap<String, String>, Failure> {
        let Some(name) = &self.template else { return Ok(BTreeMap::new()) };
        let section = document.section("device_template")?;
        section.set_implicit(true);
        let known: Vec<String> = section.iter().map(|(name, _)| name.to_owned()).collect();
        let template = section.get(name).and_then(Item::as_table_like).ok_or_else(|| {
            let near = did_you_mean(name, known.iter().map(String::as_str));
            Failure::NotFound(format!("there is no template `{}`{near}\n  a section [device_template.NAME] makes one", printable(name)))
        })?;
        Ok(template.iter().map(|(key, item)| (key.to_owned(), item.as_str().unwrap_or_default().to_owned())).collect())
    }

    fn imported(
        &self,
        device: &InventoryDevice,
        config: &Config,
        template: &BTreeMap<String, String>,
        new: &mut NewSections,
    ) -> ImportedDevice {
        let segment = suggest::segment(&device.name);
        let name = segment.to_string();
        let groups: Vec<String> = device.groups.iter().map(|group| group_name(group, config, &new.names)).collect();
        let line = |status, reason: Option<String>| ImportedDevice {
            name: name.clone(),
            given: device.name.clone(),
            status,
            reason,
            address: Some(address(device)),
            groups: groups.clone(),
        };
        if new.devices.contains_key(&name) {
            let reason = format!("another device of the inventory is named `{name}` here too");
            return line(ImportStatus::LeftOut, Some(reason));
        }
        if config.mounts.contains_key(&segment) {
            return line(ImportStatus::Kept, Some("the configuration has a section of this name".to_owned()));
        }
        match self.section((&name, device), template, &groups) {
            Ok((table, wants_secret)) => {
                new.secrets.extend(wants_secret.then(|| name.clone()));
                let line = line(ImportStatus::New, None);
                new.groups.extend(line.groups.iter().filter(|group| !is_group(group, config)).cloned());
                new.devices.insert(name, table);
                line
            }
            Err(reason) => line(ImportStatus::LeftOut, Some(reason)),
        }
    }

    /// The section of a device, and if the section refers to a password in the keyring; or the reason why there can be none.
    fn section(
        &self,
        (name, device): (&str, &InventoryDevice),
        template: &BTreeMap<String, String>,
        groups: &[String],
    ) -> Result<(Table, bool), String> {
        let mut table = Table::new();
        let has = |key: &str| template.contains_key(key);
        if let Some(template) = &self.template {
            table["template"] = value(template);
        }
        let groups: Array = groups.iter().collect();
        if !groups.is_empty() {
            table["groups"] = value(groups);
        }
        let found = if device.access == InventoryAccess::Netconf { "netconf" } else { "ssh" };
        let backend = template.get("backend").map_or(found, String::as_str);
        if !has("backend") {
            table["backend"] = value(backend);
        }
        table["address"] = value(address(device));
        match device.user.as_ref().or(self.user.as_ref()) {
            Some(user) => table["user"] = value(user),
            None if has("user") => {}
            None => return Err("the inventory has no user for its login: name one with --user, or in a template".to_owned()),
        }
        match device.dialect.or(self.dialect.as_deref()) {
            _ if backend != "ssh" => {}
            Some(dialect) => table["dialect"] = value(dialect),
            None if has("dialect") => {}
            None => {
                let platform = device.platform.as_deref().unwrap_or("");
                return Err(format!("no dialect is known for the platform `{platform}`: name one with --dialect, or in a template"));
            }
        }
        let mut wants_secret = false;
        if let Some(key) = &self.key {
            table["key"] = value(key);
        } else if !has("key") && !has("password") {
            table["password"] = value(format!("${{keyring:{name}}}"));
            wants_secret = true;
        }
        Ok((table, wants_secret))
    }
}

/// Name of a group here: a group is a server in the tree as well, so a name that another server has gets an ending.
fn group_name(given: &str, config: &Config, devices: &BTreeSet<String>) -> String {
    let segment = suggest::segment(given);
    let is_free = !devices.contains(segment.as_str()) && !config.mounts.contains_key(&segment);
    if is_free || is_group(segment.as_str(), config) {
        segment.to_string()
    } else {
        suggest::segment(&format!("{segment}-group")).to_string()
    }
}

fn is_group(name: &str, config: &Config) -> bool {
    super::devices(config).groups.contains_key(name)
}

/// Host with a port where the inventory names one.
fn address(device: &InventoryDevice) -> String {
    let host = &device.address;
    match device.port {
        None => host.clone(),
        Some(port) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
    }
}

impl NewSections {
    /// The sections as they are written.
    fn text(&self) -> String {
        let mut document = DocumentMut::new();
        for (section, names) in [("device_group", self.group_tables()), ("device", self.devices.clone())] {
            let mut table = Table::new();
            table.set_implicit(true);
            table.extend(names.into_iter().map(|(name, table)| (name, Item::Table(table))));
            document[section] = Item::Table(table);
        }
        document.to_string()
    }

    fn enter(&self, document: &mut Document) -> Result<(), Failure> {
        for (section, names) in [("device_group", self.group_tables()), ("device", self.devices.clone())] {
            if names.is_empty() {
                continue;
            }
            let table = document.section(section)?;
            table.set_implicit(true);
            table.extend(names.into_iter().map(|(name, table)| (name, Item::Table(table))));
        }
        Ok(())
    }

    fn group_tables(&self) -> BTreeMap<String, Table> {
        self.groups.iter().map(|group| (group.clone(), Table::new())).collect()
    }
}

fn print(report: &ImportReport<'_>, preview: &str, output: &Output) -> Result<(), Failure> {
    let count = |status| report.devices.iter().filter(|device| device.status == status).count();
    if report.written.is_none() {
        preview.trim().lines().try_for_each(|line| output.line(&printable(line)))?;
    }
    for device in report.devices.iter().filter(|device| device.status != ImportStatus::New) {
        let how = if device.status == ImportStatus::Kept { "stays as it is" } else { "is left out" };
        output.remark(&printable(&format!("{} {how}: {}", device.given, device.reason.as_deref().unwrap_or_default())));
    }
    report.notes.iter().for_each(|note| output.remark(&printable(note)));
    for secret in report.secrets.iter().take(SHOWN_SECRETS) {
        output.remark(&format!("its password: `banyan secret set {secret}`"));
    }
    if report.secrets.len() > SHOWN_SECRETS {
        output.remark(&format!(
            "and {} more; `--json` names all, and `--template` lets devices share one",
            report.secrets.len() - SHOWN_SECRETS
        ));
    }
    let new = counted(count(ImportStatus::New), "device");
    match &report.written {
        Some(path) => {
            output.line(&format!("{new} added to {}; each host key is named at the first try, and accepted by `host_key`", path.display()))
        }
        None => {
            output.remark(&format!("{new} would be added; nothing is written without `--write`"));
            Ok(())
        }
    }
}
