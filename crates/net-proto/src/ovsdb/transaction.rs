//! Rows of a switch, and the operations that lead from one configuration to another: all of them or none, and none where somebody has changed a
//! row meanwhile. Sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::DATABASE;
use super::column::{BRIDGE, ColumnType, Columns, INTERFACE, PORT, atoms};
use super::config::{SwitchConfig, SwitchPort};
use crate::change::{ConfigForm, TriedEdits};
use crate::fault::{Code, Fault};

const TABLES: [&str; 5] = ["Open_vSwitch", "Bridge", "Port", "Interface", "Mirror"];
/// Begin of the keys under which names of VLANs are kept.
const VLAN_NAME: &str = "vlan-name-";
/// Columns with rows of other tables, lost with a bridge or a port.
const OF_BRIDGE: [&str; 7] = ["controller", "mirrors", "netflow", "sflow", "ipfix", "auto_attach", "flow_tables"];
const OF_PORT: [&str; 1] = ["qos"];

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
    root: Value,
    bridges: BTreeMap<String, Value>,
    pub(super) ports: BTreeMap<String, Value>,
    pub(super) interfaces: BTreeMap<String, Value>,
    mirrors: Vec<Value>,
}

/// Parameters of `transact` for a read of all rows of a switch at the same moment.
pub fn read_rows() -> Value {
    let reads = TABLES.iter().map(|table| json!({ "op": "select", "table": table, "where": [] }));
    std::iter::once(json!(DATABASE)).chain(reads).collect()
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
    pub fn from_result(result: &Value) -> Result<Self, Fault> {
        let absent = || Fault::new(Code::Unreachable, "the database is none of Open vSwitch: a table is missing");
        let tables: Vec<&Vec<Value>> = answers(result)?.iter().filter_map(|one| one["rows"].as_array()).collect();
        let [roots, bridges, ports, interfaces, mirrors] = tables[..] else { return Err(absent()) };
        let named = |rows: &[Value]| rows.iter().filter_map(|row| Some((row["name"].as_str()?.to_owned(), row.clone()))).collect();
        Ok(Self {
            root: roots.first().cloned().ok_or_else(absent)?,
            bridges: named(bridges),
            ports: named(ports),
            interfaces: named(interfaces),
            mirrors: mirrors.clone(),
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
    fn check_removals(&self, from: &SwitchConfig, to: &SwitchConfig) -> Result<(), Fault> {
        let refuse = |kind: &str, name: &str, what: &str| {
            let detail = format!("{kind} {name} has {what}, which would not come back in a rollback: remove that by hand first");
            Err(Fault::new(Code::ConfigIncompatible, detail).at(format!("{kind} {name}")))
        };
        for name in from.ports.keys().filter(|name| !to.ports.contains_key(*name)) {
            let Some(row) = self.ports.get(name) else { continue };
            if let Some(column) = OF_PORT.iter().find(|column| !references(&row[**column]).is_empty()) {
                return refuse("port", name, column);
            }
            let is_seen = |mirror: &Value| {
                let columns = ["select_src_port", "select_dst_port", "output_port"];
                columns.iter().any(|column| references(&mirror[*column]).into_iter().any(|one| Some(one) == id(row)))
            };
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

/// Parameters of `transact` that lead a switch with these rows from `from` to `to`: only what differs between the two is touched, and only while
/// the touched rows are as seen. `None` where nothing is left to do.
pub fn settle(rows: &SwitchRows, from: &SwitchConfig, to: &SwitchConfig) -> Option<Value> {
    let mut work = Operations { rows, waits: Vec::new(), changes: Vec::new(), made: BTreeMap::new() };
    for name in differing(&from.interfaces, &to.interfaces) {
        // An interface goes with its port.
        let Some(wanted) = to.interfaces.get(name) else { continue };
        work.row("Interface", INTERFACE, name, (from.interfaces.get(name), wanted), Map::new());
    }
    for name in differing(&from.ports, &to.ports) {
        work.port(name, from.ports.get(name), to.ports.get(name));
    }
    for name in differing(&from.bridges, &to.bridges) {
        let Some(wanted) = to.bridges.get(name) else { continue };
        work.row("Bridge", BRIDGE, name, (from.bridges.get(name), wanted), Map::new());
    }
    work.members(from, to);
    work.vlan_names(from, to);
    (!work.changes.is_empty()).then(|| work.params())
}

struct Operations<'a> {
    rows: &'a SwitchRows,
    waits: Vec<Value>,
    changes: Vec<Value>,
    /// References to new rows.
    made: BTreeMap<(&'static str, String), Value>,
}

impl Operations<'_> {
    fn present(&self, table: &str, name: &str) -> Option<&Value> {
        match table {
            "Bridge" => self.rows.bridges.get(name),
            "Port" => self.rows.ports.get(name),
            _ => self.rows.interfaces.get(name),
        }
    }

    fn reference(&self, table: &'static str, name: &str) -> Option<Value> {
        let made = self.made.get(&(table, name.to_owned())).cloned();
        made.or_else(|| Some(json!(["uuid", id(self.present(table, name)?)?])))
    }

    /// Inserts a row or changes the columns that differ. A row removed by somebody else stays removed.
    fn row(
        &mut self,
        table: &'static str,
        known: &[(&'static str, ColumnType)],
        name: &str,
        (had, wanted): (Option<&Columns>, &Columns),
        mut more: Map<String, Value>,
    ) {
        let Some(present) = self.present(table, name).cloned() else {
            if had.is_some() {
                return;
            }
            let cells = known.iter().filter_map(|(column, kind)| Some(((*column).to_owned(), kind.cell(Some(wanted.get(column)?)))));
            more.extend(cells);
            more.insert("name".to_owned(), json!(name));
            let uuid_name = format!("row{}", self.made.len());
            self.waits.push(json!({ "op": "wait", "table": table, "where": [["name", "==", name]], "columns": ["name"], "until": "==", "rows": [], "timeout": 0 }));
            self.changes.push(json!({ "op": "insert", "table": table, "uuid-name": uuid_name, "row": more }));
            self.made.insert((table, name.to_owned()), json!(["named-uuid", uuid_name]));
            return;
        };
        let now = columns(known, &present);
        let is_touched = |column: &str| had.unwrap_or(&now).get(column) != wanted.get(column);
        for (column, kind) in known.iter().filter(|(column, _)| is_touched(column)) {
            more.insert((*column).to_owned(), kind.cell(wanted.get(column)));
        }
        if !more.is_empty() {
            self.seen(table, &present, more.keys());
            self.changes.push(json!({ "op": "update", "table": table, "where": by_id(&present), "row": more }));
        }
    }

    fn port(&mut self, name: &str, had: Option<&SwitchPort>, wanted: Option<&SwitchPort>) {
        let Some(wanted) = wanted else { return };
        let mut more = Map::new();
        if had.is_none_or(|had| had.interfaces != wanted.interfaces) {
            let all: Vec<Value> = wanted.interfaces.iter().filter_map(|name| self.reference("Interface", name)).collect();
            more.insert("interfaces".to_owned(), json!(["set", all]));
        }
        self.row("Port", PORT, name, (had.map(|had| &had.columns), &wanted.columns), more);
    }

    /// Puts ports into bridges and bridges into the switch, and takes them out.
    fn members(&mut self, from: &SwitchConfig, to: &SwitchConfig) {
        let (none, had, wanted) = (BTreeSet::new(), from.members(), to.members());
        let bridges: BTreeSet<&String> = from.bridges.keys().chain(to.bridges.keys()).collect();
        for bridge in bridges.into_iter().filter(|bridge| to.bridges.contains_key(*bridge)) {
            let (had, wanted) = (had.get(bridge.as_str()).unwrap_or(&none), wanted.get(bridge.as_str()).unwrap_or(&none));
            let present =
                self.rows.bridges.get(bridge).map(|row| references(&row["ports"]).into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
            let present = present.unwrap_or_default();
            let refers = |reference: &Value| reference[1].as_str().is_some_and(|id| present.contains(id));
            let into: Vec<Value> =
                wanted.difference(had).filter_map(|name| self.reference("Port", name)).filter(|one| !refers(one)).collect();
            let out: Vec<Value> = had.difference(wanted).filter_map(|name| self.reference("Port", name)).filter(refers).collect();
            self.mutate("Bridge", Some(bridge), "ports", &into, &out);
        }
        let into = to.bridges.keys().filter(|name| !from.bridges.contains_key(*name)).filter_map(|name| self.reference("Bridge", name));
        let into: Vec<Value> = into.collect();
        let out = from.bridges.keys().filter(|name| !to.bridges.contains_key(*name)).filter_map(|name| self.reference("Bridge", name));
        let out: Vec<Value> = out.collect();
        self.mutate("Open_vSwitch", None, "bridges", &into, &out);
    }

    fn mutate(&mut self, table: &'static str, name: Option<&str>, column: &str, into: &[Value], out: &[Value]) {
        if into.is_empty() && out.is_empty() {
            return;
        }
        let place = match name {
            None => by_id(&self.rows.root),
            Some(name) => match self.reference(table, name) {
                Some(reference) => json!([["_uuid", "==", reference]]),
                None => return,
            },
        };
        if let Some(present) = name.and_then(|name| self.present(table, name)).cloned() {
            self.seen(table, &present, [&column.to_owned()]);
        }
        let mutations = json!([[column, "delete", ["set", out]], [column, "insert", ["set", into]]]);
        self.changes.push(json!({ "op": "mutate", "table": table, "where": place, "mutations": mutations }));
    }

    fn vlan_names(&mut self, from: &SwitchConfig, to: &SwitchConfig) {
        let changed: Vec<u16> = differing(&from.vlans, &to.vlans).into_iter().copied().collect();
        if changed.is_empty() {
            return;
        }
        let gone: Vec<String> = changed.iter().map(|vlan| format!("{VLAN_NAME}{vlan}")).collect();
        let made: Vec<(String, &String)> =
            changed.iter().filter_map(|vlan| Some((format!("{VLAN_NAME}{vlan}"), to.vlans.get(vlan)?))).collect();
        let mutations = json!([["external_ids", "delete", ["set", gone]], ["external_ids", "insert", ["map", made]]]);
        let place = by_id(&self.rows.root);
        self.changes.push(json!({ "op": "mutate", "table": "Open_vSwitch", "where": place, "mutations": mutations }));
    }

    /// Makes the transaction fail where these columns of a row are not as seen any more.
    fn seen<'a>(&mut self, table: &str, row: &Value, columns: impl IntoIterator<Item = &'a String>) {
        let columns: Vec<&String> = columns.into_iter().collect();
        let cells: Map<String, Value> = columns.iter().map(|column| ((*column).clone(), row[column.as_str()].clone())).collect();
        self.waits.push(
            json!({ "op": "wait", "table": table, "where": by_id(row), "columns": columns, "until": "==", "rows": [cells], "timeout": 0 }),
        );
    }

    fn params(self) -> Value {
        // The switch counts up `cur_cfg` to this number once it has taken the change over.
        let next =
            json!({ "op": "mutate", "table": "Open_vSwitch", "where": by_id(&self.rows.root), "mutations": [["next_cfg", "+=", 1]] });
        let all = self.waits.into_iter().chain(self.changes).chain([next, json!({ "op": "commit", "durable": true })]);
        std::iter::once(json!(DATABASE)).chain(all).collect()
    }
}

/// Keys with different values in the two.
fn differing<'a, K: Ord, V: PartialEq>(one: &'a BTreeMap<K, V>, other: &'a BTreeMap<K, V>) -> Vec<&'a K> {
    let all: BTreeSet<&K> = one.keys().chain(other.keys()).collect();
    all.into_iter().filter(|key| one.get(key) != other.get(key)).collect()
}

fn columns(known: &[(&'static str, ColumnType)], row: &Value) -> Columns {
    known.iter().filter_map(|(name, kind)| Some((*name, kind.read(&row[*name])?))).collect()
}

fn id(row: &Value) -> Option<&str> {
    row["_uuid"].get(1)?.as_str()
}

fn by_id(row: &Value) -> Value {
    json!([["_uuid", "==", row["_uuid"]]])
}

/// Identifiers of the rows in a cell.
pub(super) fn references(cell: &Value) -> Vec<&str> {
    if cell.get(0).is_some_and(|kind| kind == "uuid") {
        return cell.get(1).and_then(Value::as_str).into_iter().collect();
    }
    atoms(cell).into_iter().filter_map(|atom| atom.get(1)?.as_str()).collect()
}
