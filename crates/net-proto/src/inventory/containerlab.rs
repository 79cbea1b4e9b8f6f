//! Topologies of containerlab: its nodes, under the names that its containers have. Links and startup configurations are not read.

use serde_json::{Map, Value};

use super::{Inventory, InventoryDevice, InventoryKind, dialect_of, text};

/// Kinds without a command line to manage.
const NO_DEVICES: [&str; 5] = ["bridge", "ovs-bridge", "host", "ext-container", "k8s-kind"];

pub(super) fn read(tree: &Map<String, Value>) -> Inventory {
    let lab = text(tree, "name").unwrap_or_default();
    // An empty prefix leaves the names alone, and `__lab-name` leaves `clab` out.
    let prefix = match tree.get("prefix").and_then(Value::as_str) {
        None => format!("clab-{lab}-"),
        Some("") => String::new(),
        Some("__lab-name") => format!("{lab}-"),
        Some(prefix) => format!("{prefix}-{lab}-"),
    };
    let topology = tree.get("topology").and_then(Value::as_object).cloned().unwrap_or_default();
    let part = |name: &str, below: &str| topology.get(name).and_then(|part| part.get(below)).and_then(Value::as_object).cloned();
    let defaults = topology.get("defaults").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut left_out = 0;
    let mut devices = Vec::new();
    for (name, node) in topology.get("nodes").and_then(Value::as_object).into_iter().flatten() {
        let node = node.as_object().cloned().unwrap_or_default();
        let group = text(&node, "group").and_then(|group| part("groups", &group)).unwrap_or_default();
        let kind = [&node, &group, &defaults].into_iter().find_map(|layer| text(layer, "kind")).unwrap_or_default();
        if NO_DEVICES.contains(&kind.as_str()) {
            left_out += 1;
            continue;
        }
        let of_kind = part("kinds", &kind).unwrap_or_default();
        let found = |member: &str| [&node, &group, &of_kind, &defaults].into_iter().find_map(|layer| text(layer, member));
        let image = found("image").unwrap_or_default();
        devices.push(InventoryDevice {
            name: name.clone(),
            address: text(&node, "mgmt-ipv4").or_else(|| text(&node, "mgmt-ipv6")).unwrap_or_else(|| format!("{prefix}{name}")),
            // A Linux node is what its image is.
            dialect: dialect_of(&kind).or_else(|| dialect_of(&image)),
            platform: Some(if kind == "linux" { image } else { kind }).filter(|platform| !platform.is_empty()),
            groups: text(&node, "group").into_iter().collect(),
            ..InventoryDevice::default()
        });
    }
    let note = (left_out > 0).then(|| format!("{left_out} bridges and hosts were left out."));
    Inventory { kind: InventoryKind::Containerlab, devices, notes: note.into_iter().collect() }
}
