//! Inventories of network engineers (Ansible, Nornir, NetBox, containerlab) as lists of devices. Passwords stay where they are: they are
//! neither taken nor shown. Reads texts, no files.

mod ansible;
mod containerlab;
mod netbox;
mod nornir;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Bytes of a file.
const LONGEST: usize = 8 << 20;
/// Devices of an inventory.
const MOST_DEVICES: usize = 10_000;

/// Origin of an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InventoryKind {
    Ansible,
    Nornir,
    NetBox,
    Containerlab,
}

/// Way to a device that an inventory names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InventoryAccess {
    #[default]
    CommandLine,
    Netconf,
}

/// A device of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryDevice {
    pub name: String,
    /// Address or name in DNS; the device's own name where the inventory has none.
    pub address: String,
    pub port: Option<u16>,
    pub user: Option<String>,
    /// Dialect built in; `None` for a platform that has none here.
    pub dialect: Option<&'static str>,
    /// The platform in the inventory's own word.
    pub platform: Option<String>,
    pub access: InventoryAccess,
    /// Groups, in the order of their names.
    pub groups: Vec<String>,
}

/// Devices of an inventory, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    pub kind: InventoryKind,
    pub devices: Vec<InventoryDevice>,
    /// Sentences for people about what was left out.
    pub notes: Vec<String>,
}

/// A file of an inventory.
#[derive(Clone, Copy, Debug)]
pub struct InventoryFile<'a> {
    /// Name without directories.
    pub name: &'a str,
    pub text: &'a str,
}

/// Reason for which an inventory is refused. The texts go to people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    #[error("{0} is longer than {LONGEST} bytes")]
    TooLong(String),
    #[error("the inventory has more than {MOST_DEVICES} devices: import it in parts")]
    TooMany,
    #[error("{file} can't be read: {reason}")]
    Syntax { file: String, reason: String },
    #[error(
        "{0} is no inventory that is known here: Ansible (INI or YAML), Nornir (hosts.yaml), NetBox (JSON or CSV of devices) and containerlab (.clab.yml) are"
    )]
    Unknown(String),
}

impl Inventory {
    /// Reads an inventory: its main file first, then those beside it (Nornir's `groups.yaml` and `defaults.yaml`).
    ///
    /// # Errors
    /// See [`InventoryError`].
    pub fn read(files: &[InventoryFile<'_>]) -> Result<Self, InventoryError> {
        let Some((main, beside)) = files.split_first() else { return Err(InventoryError::Unknown("an empty list of files".into())) };
        if let Some(long) = files.iter().find(|file| file.text.len() > LONGEST) {
            return Err(InventoryError::TooLong(long.name.into()));
        }
        let mut inventory = match main.tree()? {
            Some(tree) => Self::from_tree(*main, tree, beside)?,
            None if main.name.ends_with(".csv") || netbox::is_csv(main.text) => netbox::read_csv(*main)?,
            None => ansible::read_ini(*main)?,
        };
        if inventory.devices.len() > MOST_DEVICES {
            return Err(InventoryError::TooMany);
        }
        inventory.devices.sort_by(|one, other| one.name.cmp(&other.name));
        inventory.note_platforms();
        Ok(inventory)
    }

    fn from_tree(main: InventoryFile<'_>, tree: Value, beside: &[InventoryFile<'_>]) -> Result<Self, InventoryError> {
        let unknown = || InventoryError::Unknown(main.name.into());
        match tree {
            Value::Array(devices) => netbox::read_json(&devices).ok_or_else(unknown),
            Value::Object(tree) => match tree.get("results").and_then(Value::as_array) {
                Some(devices) => netbox::read_json(devices).ok_or_else(unknown),
                None if tree.get("topology").is_some_and(|topology| topology.get("nodes").is_some()) => Ok(containerlab::read(&tree)),
                None if ansible::is_inventory(&tree) => ansible::read_yaml(&tree),
                None if nornir::is_inventory(&tree) => nornir::read(&tree, beside),
                None => Err(unknown()),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(unknown()),
        }
    }

    /// Names platforms without a dialect, each once.
    fn note_platforms(&mut self) {
        let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
        for platform in self.devices.iter().filter(|device| device.dialect.is_none()).filter_map(|device| device.platform.as_deref()) {
            *unknown.entry(platform).or_default() += 1;
        }
        let note =
            |(platform, count)| format!("No dialect is known for the platform `{platform}` ({count} devices): set `dialect` yourself.");
        let notes: Vec<String> = unknown.into_iter().map(note).collect();
        self.notes.extend(notes);
    }
}

impl InventoryFile<'_> {
    /// The file as a tree, where it is YAML or JSON; `None` for a file of another form.
    fn tree(&self) -> Result<Option<Value>, InventoryError> {
        let begins_as_json = self.text.trim_start().starts_with(['{', '[']) && !ansible::begins_with_group(self.text);
        let is_named_so = [".yml", ".yaml", ".json"].iter().any(|end| self.name.ends_with(end));
        let is_yaml = is_named_so || begins_as_json || self.text.lines().any(|line| line == "---" || line.ends_with(':'));
        if !is_yaml {
            return Ok(None);
        }
        let syntax = |reason: String| InventoryError::Syntax { file: self.name.to_owned(), reason };
        serde_saphyr::from_str(self.text).map(Some).map_err(|error| syntax(error.to_string()))
    }
}

/// Dialect for the name of a platform, as any of the inventories spells it.
fn dialect_of(platform: &str) -> Option<&'static str> {
    let platform = platform.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| platform.contains(word));
    let is_word = |word: &str| platform.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word);
    if has(&["junos", "juniper", "crpd"]) || is_word("vmx") {
        Some("junos")
    } else if has(&["huawei", "vrp"]) || is_word("ce") {
        Some("vrp")
    } else if has(&["frr"]) {
        Some("frr")
    } else if has(&["cisco", "csr1000v", "xrv", "iosxe", "iosxr"]) || is_word("ios") || is_word("iol") {
        Some("ios")
    } else {
        None
    }
}

/// A member that is a text or a number, as text.
fn text(map: &Map<String, Value>, name: &str) -> Option<String> {
    let value = map.get(name)?;
    let number = value.as_number().map(ToString::to_string);
    number.or_else(|| Some(value.as_str()?.trim().to_owned()).filter(|text| !text.is_empty()))
}

fn port(map: &Map<String, Value>, name: &str) -> Option<u16> {
    text(map, name)?.parse().ok().filter(|port| *port > 0)
}

fn note_passwords(count: usize, notes: &mut Vec<String>) {
    if count > 0 {
        notes.push(format!("Passwords were left out ({count} devices): give Banyan credentials of its own for each."));
    }
}

#[cfg(test)]
mod tests;
