//! Inventories of Nornir: `hosts.yaml`, with what it inherits from `groups.yaml` and `defaults.yaml`. Transform functions are not run.

use serde_json::{Map, Value};

use super::{
    Inventory, InventoryAccess, InventoryDevice, InventoryError, InventoryFile, InventoryKind, dialect_of, note_passwords, port, text,
};

const MEMBERS: [&str; 7] = ["hostname", "port", "username", "password", "platform", "groups", "data"];
/// Groups above a host, at most.
const MOST_GROUPS: usize = 64;

/// Checks that each top member is a host, and one of them says something.
pub(super) fn is_inventory(tree: &Map<String, Value>) -> bool {
    let is_host = |value: &Value| match value {
        Value::Object(host) => host.keys().all(|key| MEMBERS.contains(&key.as_str()) || key == "connection_options"),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    let says_something = |value: &Value| value.as_object().is_some_and(|host| host.contains_key("hostname") || host.contains_key("groups"));
    !tree.is_empty() && tree.values().all(is_host) && tree.values().any(says_something)
}

pub(super) fn read(hosts: &Map<String, Value>, beside: &[InventoryFile<'_>]) -> Result<Inventory, InventoryError> {
    let groups = tree_of(beside, "groups")?;
    let defaults = tree_of(beside, "defaults")?;
    let mut passwords = 0;
    let devices = hosts.iter().map(|(name, host)| {
        let host = host.as_object().cloned().unwrap_or_default();
        let (chain, names) = chain(&host, &groups);
        let layers = || std::iter::once(&host).chain(chain.iter().copied()).chain([&defaults]);
        let found = |member: &str| layers().find_map(|layer| text(layer, member));
        passwords += usize::from(found("password").is_some());
        let platform = found("platform");
        let options = |layer: &Map<String, Value>| layer.get("connection_options").and_then(Value::as_object).cloned();
        let is_netconf = layers().filter_map(options).any(|options| options.contains_key("netconf"));
        InventoryDevice {
            address: found("hostname").unwrap_or_else(|| name.clone()),
            port: layers().find_map(|layer| port(layer, "port")),
            user: found("username"),
            dialect: platform.as_deref().and_then(dialect_of),
            platform,
            access: if is_netconf { InventoryAccess::Netconf } else { InventoryAccess::CommandLine },
            groups: names,
            name: name.clone(),
        }
    });
    let devices = devices.collect();
    let mut notes = Vec::new();
    note_passwords(passwords, &mut notes);
    Ok(Inventory { kind: InventoryKind::Nornir, devices, notes })
}

/// Tree of the file `NAME.yaml`; empty where there is none.
fn tree_of(beside: &[InventoryFile<'_>], name: &str) -> Result<Map<String, Value>, InventoryError> {
    let file = beside.iter().find(|file| file.name.split('.').next() == Some(name));
    let tree = file.map(InventoryFile::tree).transpose()?.flatten();
    Ok(tree.and_then(|tree| tree.as_object().cloned()).unwrap_or_default())
}

/// Groups of a host, the nearest first, and their names in order.
fn chain<'a>(host: &Map<String, Value>, groups: &'a Map<String, Value>) -> (Vec<&'a Map<String, Value>>, Vec<String>) {
    let named = |of: &Map<String, Value>| -> Vec<String> {
        of.get("groups").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (mut chain, mut names) = (Vec::new(), Vec::new());
    let mut waiting: Vec<String> = named(host).into_iter().rev().collect();
    while let Some(name) = waiting.pop().filter(|_| names.len() < MOST_GROUPS) {
        if names.contains(&name) {
            continue;
        }
        if let Some(group) = groups.get(&name).and_then(Value::as_object) {
            waiting.extend(named(group).into_iter().rev());
            chain.push(group);
        }
        names.push(name);
    }
    names.sort();
    (chain, names)
}
