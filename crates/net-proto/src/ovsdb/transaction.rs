//! The operations that lead a switch from one configuration to another: all of them or none, and none where somebody has changed a row
//! meanwhile. Sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::DATABASE;
use super::column::{BRIDGE, ColumnType, Columns, INTERFACE, PORT};
use super::config::{SwitchConfig, SwitchPort};
use super::rows::{OF_BRIDGE, OF_MIRROR, OF_PORT, SwitchRows, VLAN_NAME, by_id, columns, id, names, references};

/// Way of a switch from one configuration to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settlement {
    /// Parameters of `transact`; `None` where nothing is left to do.
    pub params: Option<Value>,
    /// Sentences on what somebody else has removed, so that the way does not lead there any more.
    pub lost: Vec<String>,
}

/// Leads a switch with these rows from `from` to `to`: only what differs between the two is touched, a key or a value at a time, and only while the
/// touched rows are as seen.
pub fn settle(rows: &SwitchRows, from: &SwitchConfig, to: &SwitchConfig) -> Settlement {
    let mut work =
        Operations { rows, waits: Vec::new(), changes: Vec::new(), made: BTreeMap::new(), orphans: BTreeSet::new(), lost: Vec::new() };
    work.orphans(from, to);
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
    work.removed(from, to);
    work.vlan_names(from, to);
    let lost = std::mem::take(&mut work.lost);
    Settlement { params: (!work.changes.is_empty()).then(|| work.params()), lost }
}

struct Operations<'a> {
    rows: &'a SwitchRows,
    waits: Vec<Value>,
    changes: Vec<Value>,
    /// References to new rows.
    made: BTreeMap<(&'static str, String), Value>,
    /// Ports without a bridge to go to, and their interfaces.
    orphans: BTreeSet<(&'static str, String)>,
    lost: Vec<String>,
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
                self.lost.push(format!("{} {name} is not there any more: somebody else has removed it", table.to_lowercase()));
                return;
            }
            if self.orphans.contains(&(table, name.to_owned())) {
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
        let had = had.unwrap_or(&now);
        let mut mutations = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for (column, kind) in known.iter().filter(|(column, _)| had.get(column) != wanted.get(column)) {
            seen.push(column);
            match kind.mutations(column, had.get(column), wanted.get(column)) {
                Some(both) => mutations.extend(both),
                None => drop(more.insert((*column).to_owned(), kind.cell(wanted.get(column)))),
            }
        }
        self.seen(table, &present, &seen);
        if !more.is_empty() {
            self.changes.push(json!({ "op": "update", "table": table, "where": by_id(&present), "row": more }));
        }
        if !mutations.is_empty() {
            self.changes.push(json!({ "op": "mutate", "table": table, "where": by_id(&present), "mutations": mutations }));
        }
    }

    /// Finds the ports that have no bridge to go to, since somebody else has removed the bridge.
    fn orphans(&mut self, from: &SwitchConfig, to: &SwitchConfig) {
        for name in differing(&from.ports, &to.ports) {
            let Some(port) = to.ports.get(name) else { continue };
            let bridge = &port.bridge;
            if self.rows.bridges.contains_key(bridge) || !from.bridges.contains_key(bridge) || self.rows.ports.contains_key(name) {
                continue;
            }
            if !from.ports.contains_key(name) {
                self.lost.push(format!("port {name} can't come back: somebody else has removed its bridge {bridge}"));
            }
            self.orphans.insert(("Port", name.clone()));
            self.orphans.extend(port.interfaces.iter().map(|interface| ("Interface", interface.clone())));
        }
    }

    fn port(&mut self, name: &str, had: Option<&SwitchPort>, wanted: Option<&SwitchPort>) {
        let Some(wanted) = wanted else { return };
        let mut more = Map::new();
        let all = |work: &Self, names: &mut dyn Iterator<Item = &String>| -> Vec<Value> {
            names.filter_map(|name| work.reference("Interface", name)).collect()
        };
        match had.filter(|_| self.rows.ports.contains_key(name)) {
            Some(had) => {
                let into = all(self, &mut wanted.interfaces.difference(&had.interfaces));
                let out = all(self, &mut had.interfaces.difference(&wanted.interfaces));
                self.mutate("Port", Some(name), "interfaces", &into, &out);
            }
            None => drop(more.insert("interfaces".to_owned(), json!(["set", all(self, &mut wanted.interfaces.iter())]))),
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
            self.seen(table, &present, &[column]);
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

    /// Makes the transaction fail where a row that goes is not as seen any more: what came to it meanwhile would not come back in a rollback.
    fn removed(&mut self, from: &SwitchConfig, to: &SwitchConfig) {
        let rows = self.rows;
        let mut is_port_gone = false;
        for (name, port) in from.ports.iter().filter(|(name, _)| !to.ports.contains_key(*name)) {
            let Some(row) = rows.ports.get(name) else { continue };
            is_port_gone = true;
            let columns: Vec<&str> = names(PORT).chain(OF_PORT).chain(["interfaces"]).filter(|column| !row[*column].is_null()).collect();
            self.seen("Port", row, &columns);
            for row in port.interfaces.iter().filter_map(|interface| rows.interfaces.get(interface)) {
                let columns: Vec<&str> = names(INTERFACE).filter(|column| !row[*column].is_null()).collect();
                self.seen("Interface", row, &columns);
            }
        }
        for row in from.bridges.keys().filter(|name| !to.bridges.contains_key(*name)).filter_map(|name| rows.bridges.get(name)) {
            let columns: Vec<&str> = names(BRIDGE).chain(OF_BRIDGE).chain(["ports"]).filter(|column| !row[*column].is_null()).collect();
            self.seen("Bridge", row, &columns);
        }
        if is_port_gone {
            let cells: Vec<Value> = rows
                .mirrors
                .iter()
                .map(|mirror| OF_MIRROR.iter().map(|column| ((*column).to_owned(), mirror[*column].clone())).collect())
                .collect();
            self.waits.push(
                json!({ "op": "wait", "table": "Mirror", "where": [], "columns": OF_MIRROR, "until": "==", "rows": cells, "timeout": 0 }),
            );
        }
    }

    /// Makes the transaction fail where these columns of a row are not as seen any more.
    fn seen(&mut self, table: &str, row: &Value, columns: &[&str]) {
        if columns.is_empty() {
            return;
        }
        let cells: Map<String, Value> = columns.iter().map(|column| ((*column).to_owned(), row[*column].clone())).collect();
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
