//! State of a switch for readers: interfaces with counters and VLANs in the names of OpenConfig, and tables for people. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::column::ColumnValue;
use super::config::{SwitchConfig, SwitchPort};
use super::rows::SwitchRows;

/// Names of counters: those of the switch, and those of OpenConfig.
const COUNTERS: [(&str, &str); 9] = [
    ("rx_bytes", "in-octets"),
    ("rx_packets", "in-pkts"),
    ("rx_dropped", "in-discards"),
    ("rx_errors", "in-errors"),
    ("rx_crc_err", "in-fcs-errors"),
    ("tx_bytes", "out-octets"),
    ("tx_packets", "out-pkts"),
    ("tx_dropped", "out-discards"),
    ("tx_errors", "out-errors"),
];

/// Interface of a switch at one moment.
#[derive(Clone, Debug)]
pub struct SwitchInterface {
    pub name: String,
    pub data: Value,
    /// Address of the hardware.
    pub hardware: Option<String>,
}

impl SwitchRows {
    /// All interfaces, by name.
    pub fn interfaces(&self) -> Vec<SwitchInterface> {
        let config = self.config();
        let ports = config.users();
        let all = self.interfaces.iter().map(|(name, row)| interface(name, row, ports.get(name.as_str()).copied()));
        all.collect()
    }

    /// Table of interfaces for people.
    pub fn interface_table(&self) -> String {
        let mut text = format!(
            "{:<16} {:<6} {:<6} {:<16} {:<10} {:>15} {:>15}\n",
            "Interface", "Admin", "Link", "Bridge", "VLAN", "Bytes in", "Bytes out"
        );
        for SwitchInterface { name, data, .. } in self.interfaces() {
            let (state, vlan) = (&data["state"], &data["openconfig-vlan:switched-vlan"]);
            let word = |value: &Value| {
                value.as_str().map_or_else(|| value.as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string()), str::to_owned)
            };
            let tag = if vlan["access-vlan"].is_null() { word(&vlan["interface-mode"]).to_lowercase() } else { word(&vlan["access-vlan"]) };
            let counter = |counter: &str| word(&state["counters"][counter]);
            text.push_str(&format!(
                "{name:<16} {:<6} {:<6} {:<16} {tag:<10} {:>15} {:>15}\n",
                word(&state["admin-status"]).to_lowercase(),
                word(&state["oper-status"]).to_lowercase(),
                word(&data["bridge"]),
                counter("in-octets"),
                counter("out-octets"),
            ));
        }
        text
    }

    /// Table of bridges for people.
    pub fn bridge_table(&self) -> String {
        let config = self.config();
        let mut text = String::new();
        for (bridge, ports) in config.members() {
            text.push_str(&format!("{bridge}: {}\n", ports.into_iter().collect::<Vec<_>>().join(", ")));
        }
        text
    }
}

/// Table of VLANs for people: number, name, ports that carry the VLAN by name.
pub fn vlans(config: &SwitchConfig) -> String {
    let mut carriers: BTreeMap<u16, BTreeSet<&str>> = config.vlans.keys().map(|vlan| (*vlan, BTreeSet::new())).collect();
    for (name, port) in &config.ports {
        let (tag, trunks) = vlans_of(port);
        for vlan in tag.into_iter().chain(trunks.into_iter().flatten().copied()) {
            carriers.entry(vlan).or_default().insert(name);
        }
    }
    let mut text = format!("{:<5} {:<24} Ports\n", "VLAN", "Name");
    for (vlan, ports) in carriers {
        let name = config.vlans.get(&vlan).map_or("-", String::as_str);
        text.push_str(&format!("{vlan:<5} {name:<24} {}\n", ports.into_iter().collect::<Vec<_>>().join(", ")));
    }
    text
}

fn vlans_of(port: &SwitchPort) -> (Option<u16>, Option<&BTreeSet<u16>>) {
    let tag = if let Some(ColumnValue::Word(tag)) = port.columns.get("tag") { tag.parse().ok() } else { None };
    let trunks = if let Some(ColumnValue::Vlans(trunks)) = port.columns.get("trunks") { Some(trunks) } else { None };
    (tag, trunks)
}

fn interface(name: &str, row: &Value, port: Option<&SwitchPort>) -> SwitchInterface {
    let status = |column: &str| row[column].as_str().map_or_else(|| "UNKNOWN".to_owned(), str::to_uppercase);
    let told = row["statistics"].get(1).and_then(Value::as_array).into_iter().flatten();
    let told: BTreeMap<&str, &Value> = told.filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?))).collect();
    let counters: Map<String, Value> =
        COUNTERS.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), (*told.get(theirs)?).clone()))).collect();
    let mut data = json!({
        "name": name,
        "type": row["type"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("system"),
        "state": {
            "admin-status": status("admin_state"),
            "oper-status": status("link_state"),
            "ifindex": row["ifindex"].as_u64(),
            "mtu": row["mtu"].as_u64(),
            "counters": counters,
        },
    });
    if let Some(error) = row["error"].as_str() {
        data["state"]["error"] = error.into();
    }
    if let Some(port) = port {
        data["bridge"] = port.bridge.clone().into();
        let (tag, trunks) = vlans_of(port);
        let mode = if let Some(ColumnValue::Word(mode)) = port.columns.get("vlan_mode") { mode.as_str() } else { "" };
        let is_access = mode == "access" || (mode.is_empty() && tag.is_some());
        let mut vlan = json!({ "interface-mode": if is_access { "ACCESS" } else { "TRUNK" } });
        match tag {
            Some(tag) if is_access => vlan["access-vlan"] = tag.into(),
            Some(tag) => vlan["native-vlan"] = tag.into(),
            None => {}
        }
        if let Some(trunks) = trunks {
            vlan["trunk-vlans"] = json!(trunks);
        }
        data["openconfig-vlan:switched-vlan"] = vlan;
    }
    SwitchInterface { name: name.to_owned(), data, hardware: row["mac_in_use"].as_str().map(str::to_owned) }
}
