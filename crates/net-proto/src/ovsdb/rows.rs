//! Rows of a switch as its database has them, read in one go, and the configuration in them. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::DATABASE;
use super::column::{BRIDGE, ColumnType, Columns, INTERFACE, PORT, atoms};
use super::config::{SwitchConfig, SwitchPort};
use crate::change::{ConfigForm, TriedEdits};
use crate::fault::{Code, Fault};

const TABLES: [&str; 5] = ["Open_vSwitch", "Bridge", "Port", "Interface", "Mirror"];
/// Begin of the keys under which names of VLANs are kept.
pub(super) const VLAN_NAME: &str = "vlan-name-";
/// Columns with rows of other tables, lost with a bridge or a port.
pub(super) const OF_BRIDGE: [&str; 7] = ["controller", "mirrors", "netflow", "sflow", "ipfix", "auto_attach", "flow_tables"];
pub(super) const OF_PORT: [&str; 1] = ["qos"];
/// Columns of a mirror with ports.
pub(super) const OF_MIRROR: [&str; 3] = ["select_src_port", "select_dst_port", "output_port"];

/// Candidate of lines on these rows, in the only form of such lines.
///
/// # Errors
/// -32084 for lines of no switch, and for removals beyond a rollback.
pub fn tried(rows: &SwitchRows, edits: Vec<String>, text: &str) -> Result<TriedEdits, Fault> {
    let running = rows.config();
    let candidate = SwitchConfig::read(text, &running)?;
    rows.check_removals(&running, &candidate)?;
    Ok(TriedEdits { form: ConfigForm::Rows, edits, running: running.write(), candidate: candidate.write() })
}

/// Rows of a switch at one moment.
#[derive(Clone, Debug, Default)]
pub struct SwitchRows {
    pub(super) root: Value,
    pub(super) bridges: BTreeMap<String, Value>,
    pub(super) ports: BTreeMap<String, Value>,
    pub(super) interfaces: BTreeMap<String, Value>,
    pub(super) mirrors: Vec<Value>,
}

/// Parameters of `transact` for a read of all rows of a switch at the same moment, with no more columns than are used.
pub fn read_rows() -> Value {
    let tables: [(&str, &[&str], Vec<&str>); 5] = [
        ("Open_vSwitch", &["bridges", "external_ids", "ovs_version", "cur_cfg", "next_cfg"], Vec::new()),
        ("Bridge", &["name", "ports"], names(BRIDGE).chain(OF_BRIDGE).collect()),
        ("Port", &["name", "interfaces"], names(PORT).chain(OF_PORT).collect()),
        (
            "Interface",
            &["name", "error", "admin_state", "link_state", "ifindex", "mtu", "statistics", "mac_in_use"],
            names(INTERFACE).collect(),
        ),
        ("Mirror", &OF_MIRROR, Vec::new()),
    ];
    let reads = tables.iter().map(|(table, own, known)| {
        let columns: Vec<&str> = std::iter::once("_uuid").chain(own.iter().copied()).chain(known.iter().copied()).collect();
        json!({ "op": "select", "table": table, "where": [], "columns": columns })
    });
    std::iter::once(json!(DATABASE)).chain(reads).collect()
}

/// The same read with all columns, for an older database, which lacks some of those that are used.
pub fn read_whole_rows() -> Value {
    let reads = TABLES.iter().map(|table| json!({ "op": "select", "table": table, "where": [] }));
    std::iter::once(json!(DATABASE)).chain(reads).collect()
}

/// Recognizes the answer of a database without one of the named columns.
pub fn lacks_column(fault: &Fault) -> bool {
    fault.native.as_ref().is_some_and(|native| native.tag == "syntax error") && fault.detail.contains("is not a valid column name")
}

/// Results of the operations of a transaction.
///
/// # Errors
/// The first failure of an operation.
pub fn answers(result: &Value) -> Result<&[Value], Fault> {
    let all = result.as_array().ok_or_else(|| Fault::new(Code::Unreachable, "the database of the switch did not answer the operations"))?;
    let failed = all.iter().find(|one| one.get("error").is_some_and(|error| !error.is_null()));
    let Some(failed) = failed else { return Ok(all) };
    let word = |name: &str| failed[name].as_str().unwrap_or_default();
    let (error, details) = (word("error"), word("details"));
    let code = match error {
        "permission error" | "not owner" => Code::AccessDenied,
        "I/O error" | "resources exhausted" => Code::HardwareFailure,
        _ => Code::ConfigIncompatible,
    };
    if error == "timed out" {
        let detail = "somebody has changed the switch meanwhile, so nothing was applied";
        return Err(Fault::new(code, detail).at("running").from_native("ovsdb", error).retryable());
    }
    Err(Fault::new(code, format!("the switch refuses this: {error}: {details}")).from_native("ovsdb", error))
}

impl SwitchRows {
    /// Reads the result of [`read_rows`].
    ///
    /// # Errors
    /// -32082: a table is missing.
    pub fn from_result(mut result: Value) -> Result<Self, Fault> {
        answers(&result)?;
        let absent = || Fault::new(Code::Unreachable, "the database is none of Open vSwitch: a table is missing");
        let mut tables = result.as_array_mut().into_iter().flatten().filter_map(|one| match one.get_mut("rows").map(Value::take) {
            Some(Value::Array(rows)) => Some(rows),
            Some(_) | None => None,
        });
        let mut table = || tables.next().ok_or_else(absent);
        let (roots, bridges, ports, interfaces, mirrors) = (table()?, table()?, table()?, table()?, table()?);
        let named = |rows: Vec<Value>| rows.into_iter().filter_map(|row| Some((row["name"].as_str()?.to_owned(), row))).collect();
        Ok(Self {
            root: roots.into_iter().next().ok_or_else(absent)?,
            bridges: named(bridges),
            ports: named(ports),
            interfaces: named(interfaces),
            mirrors,
        })
    }

    /// The configuration of these rows.
    pub fn config(&self) -> SwitchConfig {
        let by_id = |rows: &BTreeMap<String, Value>| -> BTreeMap<String, String> {
            rows.iter().filter_map(|(name, row)| Some((id(row)?.to_owned(), name.clone()))).collect()
        };
        let (port_names, interface_names) = (by_id(&self.ports), by_id(&self.interfaces));
        let mut config = SwitchConfig::default();
        for (bridge, row) in &self.bridges {
            config.bridges.insert(bridge.clone(), columns(BRIDGE, row));
            for name in references(&row["ports"]).into_iter().filter_map(|id| port_names.get(id)) {
                let row = &self.ports[name];
                let interfaces = references(&row["interfaces"]).into_iter().filter_map(|id| interface_names.get(id).cloned()).collect();
                config.ports.insert(name.clone(), SwitchPort { bridge: bridge.clone(), interfaces, columns: columns(PORT, row) });
            }
        }
        let used: BTreeSet<&String> = config.ports.values().flat_map(|port| &port.interfaces).collect();
        let found = used.into_iter().map(|name| (name.clone(), columns(INTERFACE, &self.interfaces[name])));
        config.interfaces = found.collect();
        let ids = self.root["external_ids"].get(1).and_then(Value::as_array).into_iter().flatten();
        let names =
            ids.filter_map(|pair| Some((pair.get(0)?.as_str()?.strip_prefix(VLAN_NAME)?.parse().ok()?, pair.get(1)?.as_str()?.to_owned())));
        config.vlans = names.collect();
        config
    }

    /// Version of the switch, as far as the switch tells.
    pub fn version(&self) -> &str {
        self.root["ovs_version"].as_str().unwrap_or("of no known version: the switch itself does not run")
    }

    /// Has the switch taken over the rows of the database?
    pub fn is_taken(&self) -> bool {
        self.root["cur_cfg"].as_i64() >= self.root["next_cfg"].as_i64()
    }

    /// Words of the switch about an unusable interface, among those with a difference between two configurations.
    pub fn flaw(&self, from: &SwitchConfig, to: &SwitchConfig) -> Option<String> {
        let (old, new) = (from.users(), to.users());
        let is_changed = |name: &String| {
            new.contains_key(name.as_str())
                && (from.interfaces.get(name) != to.interfaces.get(name) || old.get(name.as_str()) != new.get(name.as_str()))
        };
        let told = self.interfaces.iter().filter(|(name, _)| is_changed(name));
        told.filter_map(|(name, row)| Some(format!("interface {name}: {}", row["error"].as_str()?))).next()
    }

    /// Checks for a way back of all bridges and ports without a place in `to`.
    ///
    /// # Errors
    /// -32084, with the port or bridge.
    pub fn check_removals(&self, from: &SwitchConfig, to: &SwitchConfig) -> Result<(), Fault> {
        let refuse = |kind: &str, name: &str, what: &str| {
            let detail = format!("{kind} {name} has {what}, which would not come back in a rollback: remove that by hand first");
            Err(Fault::new(Code::ConfigIncompatible, detail).at(format!("{kind} {name}")))
        };
        for name in from.ports.keys().filter(|name| !to.ports.contains_key(*name)) {
            let Some(row) = self.ports.get(name) else { continue };
            if let Some(column) = OF_PORT.iter().find(|column| !references(&row[**column]).is_empty()) {
                return refuse("port", name, column);
            }
            let is_seen =
                |mirror: &Value| OF_MIRROR.iter().any(|column| references(&mirror[*column]).into_iter().any(|one| Some(one) == id(row)));
            if self.mirrors.iter().any(is_seen) {
                return refuse("port", name, "a mirror");
            }
        }
        for name in from.bridges.keys().filter(|name| !to.bridges.contains_key(*name)) {
            let Some(row) = self.bridges.get(name) else { continue };
            let has = |column: &&&str| {
                !references(&row[**column]).is_empty() || row[**column].get(1).and_then(Value::as_array).is_some_and(|all| !all.is_empty())
            };
            if let Some(column) = OF_BRIDGE.iter().find(has) {
                return refuse("bridge", name, column);
            }
        }
        Ok(())
    }
}

/// Names of columns.
pub(super) fn names(known: &[(&'static str, ColumnType)]) -> impl Iterator<Item = &'static str> {
    known.iter().map(|(name, _)| *name)
}

pub(super) fn columns(known: &[(&'static str, ColumnType)], row: &Value) -> Columns {
    known.iter().filter_map(|(name, kind)| Some((*name, kind.read(&row[*name])?))).collect()
}

pub(super) fn id(row: &Value) -> Option<&str> {
    row["_uuid"].get(1)?.as_str()
}

pub(super) fn by_id(row: &Value) -> Value {
    json!([["_uuid", "==", row["_uuid"]]])
}

/// Identifiers of the rows in a cell.
pub(super) fn references(cell: &Value) -> Vec<&str> {
    if cell.get(0).is_some_and(|kind| kind == "uuid") {
        return cell.get(1).and_then(Value::as_str).into_iter().collect();
    }
    atoms(cell).into_iter().filter_map(|atom| atom.get(1)?.as_str()).collect()
}
