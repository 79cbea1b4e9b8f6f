//! The interfaces of a device as one table, whatever told of them: entries by name, pages that stay right while interfaces come and go, and counters
//! with the names of OpenConfig. Asks no device.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::fault::{Code, Fault};
use crate::ovsdb::SwitchRows;
use crate::snmp;
use crate::snmp::{Oid, SnmpValue};

/// Interfaces on a page.
pub const PAGE: usize = 500;
/// Models of interfaces, the better known first.
const MODELS: [&str; 2] = [IETF, "openconfig-interfaces"];
const IETF: &str = "ietf-interfaces";
/// Revision of the first model from which the list of the configuration has the states too; earlier ones have a list of their own for states.
const STATES_WITHIN: &str = "2018-02-20";

/// YANG model that a device describes its interfaces by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceModel {
    module: &'static str,
    container: &'static str,
}

/// Interface of a device at one moment.
#[derive(Clone, Debug)]
struct InterfaceEntry {
    data: Value,
    /// Attributes of the hardware.
    meta: Value,
}

/// Place of an interface in the order: name and number.
type InterfaceKey = (String, u64);

/// All interfaces of a device at one moment.
#[derive(Clone, Debug)]
pub struct InterfaceTable {
    model: InterfaceModel,
    entries: BTreeMap<InterfaceKey, InterfaceEntry>,
}

/// Texts that differ when a table does: of everything but counters, and of counters alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceMarks {
    pub states: String,
    pub counters: String,
}

const OPENCONFIG: InterfaceModel = InterfaceModel { module: "openconfig-interfaces", container: "interfaces" };

impl InterfaceModel {
    /// The model of a device, out of its modules with their revisions; `None`: it has no model of interfaces that is known here.
    pub fn among(modules: &[(String, Option<String>)]) -> Option<Self> {
        MODELS.into_iter().find_map(|module| {
            let (_, revision) = modules.iter().find(|(name, _)| name == module)?;
            let is_older = module == IETF && revision.as_deref().is_none_or(|revision| revision < STATES_WITHIN);
            Some(Self { module, container: if is_older { "interfaces-state" } else { "interfaces" } })
        })
    }

    /// YANG path of the interfaces with their states, or of the one with a name; `None`: no path can hold the name.
    pub fn path(self, name: Option<&str>) -> Option<String> {
        let whole = format!("/{}:{}", self.module, self.container);
        match name {
            None => Some(whole),
            Some(name) if !name.contains('\'') => Some(format!("{whole}/interface[name='{name}']")),
            Some(name) if !name.contains('"') => Some(format!("{whole}/interface[name=\"{name}\"]")),
            Some(_) => None,
        }
    }
}

impl InterfaceTable {
    fn new(model: InterfaceModel, entries: impl IntoIterator<Item = (Value, Value)>) -> Self {
        let keyed = entries.into_iter().map(|(data, meta)| {
            let name = data["name"].as_str().unwrap_or_default().to_owned();
            let number = data["state"]["ifindex"].as_u64().unwrap_or_default();
            ((name, number), InterfaceEntry { data, meta })
        });
        Self { model, entries: keyed.collect() }
    }

    /// Interfaces that FRR shows as JSON, with counters of the kernel below FRR by name.
    pub fn of_frr(shown: &Value, counters: &BTreeMap<&str, Value>) -> Self {
        let entry = |(name, facts): (&String, &Value)| {
            let mut data = frr_interface(name, facts);
            if let Some(counters) = counters.get(name.as_str()) {
                data["state"]["counters"] = counters.clone();
            }
            let meta = facts.get("hardwareAddress").map(|address| json!({ "hardware-address": address, "hardware-type": facts["type"] }));
            (data, meta.unwrap_or_else(|| json!({})))
        };
        Self::new(OPENCONFIG, shown.as_object().into_iter().flatten().map(entry))
    }

    /// Interfaces of a walk over [`snmp::interface_columns`].
    pub fn of_snmp(columns: &[BTreeMap<Oid, SnmpValue>]) -> Self {
        let entry = |mut data: Value| {
            let mut meta = json!({});
            for (member, shown) in [("hardware-address", "hardware-address"), ("counter-bits", "counter-bits")] {
                let told = data.as_object_mut().and_then(|data| data.remove(member));
                if let Some(told) = told.filter(|told| !told.is_null()) {
                    meta[shown] = told;
                }
            }
            (data, meta)
        };
        Self::new(OPENCONFIG, snmp::interfaces(columns).into_iter().map(entry))
    }

    /// Interfaces of an Open vSwitch.
    pub fn of_switch(rows: &SwitchRows) -> Self {
        let meta = |hardware: Option<String>| hardware.map_or_else(|| json!({}), |address| json!({ "hardware-address": address }));
        Self::new(OPENCONFIG, rows.interfaces().into_iter().map(|one| (one.data, meta(one.hardware))))
    }

    /// Interfaces in the data of a YANG server, as the model names them.
    pub fn of_yang(model: InterfaceModel, mut data: Value) -> Self {
        let list = data[format!("{}:{}", model.module, model.container)]["interface"].take();
        let all = match list {
            Value::Array(all) => all,
            // A single entry of a list is no array.
            Value::Object(one) => vec![Value::Object(one)],
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        let entry = |data: Value| {
            let address = data.get("phys-address").or_else(|| data["openconfig-if-ethernet:ethernet"]["state"].get("mac-address"));
            let meta = address.map_or_else(|| json!({}), |address| json!({ "hardware-address": address }));
            (data, meta)
        };
        Self::new(model, all.into_iter().map(entry))
    }

    /// Interfaces behind `cursor`, units, and the cursor of the next page.
    ///
    /// # Errors
    /// -32602: this is no cursor of interfaces.
    pub fn page(&self, cursor: Option<&str>) -> Result<(Value, Value, Option<String>), Fault> {
        let after = cursor.map(place).transpose()?;
        let mut rest = self.entries.iter().filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after)).peekable();
        let (mut page, mut last) = (Vec::new(), None);
        while page.len() < PAGE
            && let Some((key, entry)) = rest.next()
        {
            page.push(&entry.data);
            last = Some(key);
        }
        let next = last.filter(|_| rest.peek().is_some()).map(|(name, number)| {
            let cursor = json!({ "sort-key": name, "ifindex": number });
            URL_SAFE_NO_PAD.encode(cursor.to_string())
        });
        let data = json!({ format!("{}:{}", self.model.module, self.model.container): { "interface": page } });
        Ok((data, self.units(), next))
    }

    /// The interface with this name, with units and attributes of its hardware.
    pub fn find(&self, name: &str) -> Option<(Value, Value)> {
        let (_, entry) = self.entries.range((name.to_owned(), 0)..).next().filter(|((found, _), _)| found == name)?;
        let mut meta = self.units();
        meta.as_object_mut().into_iter().for_each(|meta| meta.extend(entry.meta.as_object().cloned().unwrap_or_default()));
        Some((json!({ format!("{}:interface", self.model.module): entry.data }), meta))
    }

    /// Marks of the whole table, or of one interface.
    pub fn marks(&self, name: Option<&str>) -> InterfaceMarks {
        let mut marks = InterfaceMarks { states: String::new(), counters: String::new() };
        for ((found, _), entry) in &self.entries {
            if name.is_some_and(|name| name != found) {
                continue;
            }
            let mut state = entry.data.clone();
            let of_state = state.get_mut("state").and_then(Value::as_object_mut).and_then(|state| state.remove("counters"));
            let of_entry = state.as_object_mut().and_then(|state| state.remove("statistics"));
            marks.states.push_str(&format!("{state}\n"));
            marks.counters.push_str(&format!("{:?}\n", (of_state, of_entry)));
        }
        marks
    }

    /// Units of the members that every device has here.
    fn units(&self) -> Value {
        if self.model != OPENCONFIG || self.entries.values().all(|entry| entry.data["state"]["counters"].is_null()) {
            return json!({ "unit": { "mtu": "bytes" } });
        }
        json!({ "unit": { "mtu": "bytes", "in-octets": "bytes", "out-octets": "bytes", "in-pkts": "packets", "out-pkts": "packets" }, "precision": 1 })
    }
}

/// Interface of a cursor.
fn place(cursor: &str) -> Result<InterfaceKey, Fault> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).ok();
    let value: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let key = value.and_then(|value| Some((value["sort-key"].as_str()?.to_owned(), value["ifindex"].as_u64()?)));
    key.ok_or_else(|| Fault::new(Code::InvalidParams, "this is no cursor of the interfaces"))
}

fn frr_interface(name: &str, facts: &Value) -> Value {
    let status = |key: &str| facts[key].as_str().map(str::to_uppercase);
    let admin = status("administrativeStatus");
    // FRR says nothing of the link of an interface that is shut down.
    let oper = status("operationalStatus").or_else(|| admin.clone().filter(|admin| admin == "DOWN"));
    let addresses = facts["ipAddresses"].as_array().into_iter().flatten().filter_map(|one| one["address"].as_str()).map(|address| {
        let (ip, length) = address.split_once('/').unwrap_or((address, ""));
        json!({ "ip": ip, "prefix-length": length.parse::<u8>().ok() })
    });
    json!({
        "name": name,
        "state": {
            "admin-status": admin.as_deref().unwrap_or("UNKNOWN"),
            "oper-status": oper.as_deref().unwrap_or("UNKNOWN"),
            "ifindex": facts["index"],
            "mtu": facts["mtu"],
            "description": facts.get("description"),
        },
        "addresses": addresses.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: impl IntoIterator<Item = String>) -> Value {
        let facts = |(number, name): (usize, String)| (name, json!({ "administrativeStatus": "up", "index": number }));
        Value::Object(names.into_iter().enumerate().map(facts).collect())
    }

    fn names(page: &Value) -> Vec<&str> {
        let all = page["openconfig-interfaces:interfaces"]["interface"].as_array().unwrap();
        all.iter().map(|one| one["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn nm_04_interfaces_that_stay_are_on_one_page_each() {
        let all: Vec<String> = (0..1200).map(|number| format!("eth{number:04}")).collect();
        let (mut seen, mut cursor, mut gone) = (Vec::new(), None, Vec::new());
        loop {
            // The interface that the cursor names goes away, and one before it comes.
            let left = all.iter().filter(|name| !gone.contains(*name)).cloned();
            let table = InterfaceTable::of_frr(&shown(left.chain(["aaa".to_owned()])), &BTreeMap::new());
            let (page, _, next) = table.page(cursor.as_deref()).unwrap();
            seen.extend(names(&page).into_iter().filter(|name| *name != "aaa").map(str::to_owned));
            gone.extend(seen.last().cloned());
            let Some(next) = next else { break };
            cursor = Some(next);
        }
        assert_eq!(seen, all);
        let table = InterfaceTable::of_frr(&shown(all), &BTreeMap::new());
        assert_eq!(table.page(Some("nonsense")).unwrap_err().code, Code::InvalidParams);
    }

    #[test]
    fn nm_03_counters_stand_in_the_state_and_apart_in_marks() {
        let table = |octets: u64| {
            let counters = BTreeMap::from([("eth0", json!({ "in-octets": octets }))]);
            InterfaceTable::of_frr(&shown(["eth0".to_owned(), "eth1".to_owned()]), &counters)
        };
        let (one, meta) = table(7).find("eth0").unwrap();
        assert_eq!(one["openconfig-interfaces:interface"]["state"]["counters"], json!({ "in-octets": 7 }));
        assert_eq!(meta["unit"]["in-octets"], "bytes");
        let (before, after) = (table(7).marks(None), table(8).marks(None));
        assert!(before.states == after.states && before.counters != after.counters);
        assert_eq!(table(7).marks(Some("eth1")), table(8).marks(Some("eth1")));
        assert!(table(7).find("eth").is_none());
    }

    #[test]
    fn nm_03_a_yang_server_names_interfaces_by_its_model() {
        let modules = |revision: &str| [("ietf-interfaces".to_owned(), Some(revision.to_owned()))];
        let older = InterfaceModel::among(&modules("2014-05-08")).unwrap();
        assert_eq!(older.path(None).as_deref(), Some("/ietf-interfaces:interfaces-state"));
        let newer = InterfaceModel::among(&modules("2018-02-20")).unwrap();
        assert_eq!(newer.path(Some("a'b")).as_deref(), Some("/ietf-interfaces:interfaces/interface[name=\"a'b\"]"));
        assert_eq!(InterfaceModel::among(&[("ietf-system".to_owned(), None)]), None);
        let held = json!({ "ietf-interfaces:interfaces-state": { "interface": { "name": "eth0", "phys-address": "a" } } });
        let (one, meta) = InterfaceTable::of_yang(older, held).find("eth0").unwrap();
        assert_eq!((&one["ietf-interfaces:interface"]["name"], &meta["hardware-address"]), (&json!("eth0"), &json!("a")));
    }
}
