//! Tables of a device as the draft's resources have them: interfaces, processors, memory; and objects with their names. Asks no device.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::mib::{ADMIN, KEY, LIST, MibObject, OPER, Syntax, object_of};
use super::pdu::hexadecimal;
use super::{Oid, SnmpValue};
use crate::redact::MARK;

/// Values of a column, by whole identifiers.
type Column = BTreeMap<Oid, SnmpValue>;

/// Columns of the interfaces (IF-MIB), of their addresses (IP-MIB) by the present table and by the old one, and of their counters: those of
/// 64 bits first, and those of 32 bits for devices without them.
const INTERFACES: [&[u32]; 20] = [
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 4],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 6],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 7],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 8],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18],
    &[1, 3, 6, 1, 2, 1, 4, 34, 1, 5],
    &[1, 3, 6, 1, 2, 1, 4, 34, 1, 3],
    &[1, 3, 6, 1, 2, 1, 4, 20, 1, 2],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7],
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 16],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 20],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19],
];
/// Counters with the names of OpenConfig: the column, and the one that stands in where a device has no such column.
const COUNTERS: [(usize, Option<usize>, &str); 8] = [
    (10, Some(14), "in-octets"),
    (11, Some(15), "out-octets"),
    (12, None, "in-unicast-pkts"),
    (13, None, "out-unicast-pkts"),
    (16, None, "in-errors"),
    (17, None, "out-errors"),
    (18, None, "in-discards"),
    (19, None, "out-discards"),
];
/// Load of each processor (HOST-RESOURCES-MIB).
const LOAD: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2];
/// Kind, name, unit, size and use of each storage.
const STORAGE: [&[u32]; 5] = [
    &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 2],
    &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 3],
    &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 4],
    &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 5],
    &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 6],
];
/// Kind of main memory.
const RAM: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 2];

/// Objects that hold communities (SNMP-COMMUNITY-MIB, also in notifications that a proxy hands on), keys of users (SNMP-USER-BASED-SM-MIB), and
/// passwords for copies of files (CISCO-CONFIG-COPY-MIB).
const SECRETS: [&[u32]; 4] = [
    &[1, 3, 6, 1, 6, 3, 18, 1, 1],
    &[1, 3, 6, 1, 6, 3, 18, 1, 4],
    &[1, 3, 6, 1, 6, 3, 15, 1, 2, 2],
    &[1, 3, 6, 1, 4, 1, 9, 9, 96, 1, 1, 1, 1, 8],
];

fn oids<const N: usize>(columns: [&[u32]; N]) -> Vec<Oid> {
    columns.iter().map(|numbers| Oid::new(numbers)).collect()
}

/// Columns to walk for [`interfaces`].
pub fn interface_columns() -> Vec<Oid> {
    oids(INTERFACES)
}

/// Columns to walk for [`processors`].
pub fn processor_columns() -> Vec<Oid> {
    vec![Oid::new(LOAD)]
}

/// Columns to walk for [`memory`].
pub fn memory_columns() -> Vec<Oid> {
    oids(STORAGE)
}

/// The interfaces, each with `name`, `state`, `addresses`, `hardware-address`, and `counter-bits` where octets are counted.
pub fn interfaces(columns: &[Column]) -> Vec<Value> {
    let cell = |column: usize, index: &[u32]| columns.get(column).and_then(|values| values.get(&Oid::new(INTERFACES[column]).with(index)));
    let mut addresses = addresses(columns);
    let indexes = columns.first().into_iter().flatten().filter_map(|(oid, _)| oid.below(&Oid::new(INTERFACES[0])));
    let facts = |index: &[u32]| {
        let text = |column| cell(column, index).map(SnmpValue::to_string).filter(|text| !text.is_empty());
        let number = |column| cell(column, index).and_then(SnmpValue::number);
        let status = |column, names: &[(&str, i64)]| {
            let name = number(column).and_then(|number| names.iter().find(|(_, known)| *known == number));
            name.map_or_else(|| "UNKNOWN".to_owned(), |(name, _)| openconfig(name))
        };
        let counter = |(column, narrow, name): &(usize, Option<usize>, &str)| {
            let counted = cell(*column, index)
                .or_else(|| cell((*narrow)?, index))
                .filter(|value| matches!(value, SnmpValue::Counter(_) | SnmpValue::Counter64(_)));
            counted.map(|counted| ((*name).to_owned(), of_any(counted)))
        };
        let counters: Map<String, Value> = COUNTERS.iter().filter_map(counter).collect();
        let bits = if cell(10, index).is_some() { 64 } else { 32 };
        let bits = counters.contains_key("in-octets").then_some(bits);
        let hardware = match cell(2, index) {
            Some(SnmpValue::Octets(bytes)) if !bytes.is_empty() => Some(hexadecimal(bytes)),
            _ => None,
        };
        let index = index.first().copied().unwrap_or_default();
        json!({
            "name": text(5).or_else(|| text(0)).unwrap_or_else(|| index.to_string()),
            "state": {
                "admin-status": status(3, ADMIN),
                "oper-status": status(4, OPER),
                "ifindex": index,
                "mtu": number(1),
                "description": text(6),
                "counters": (!counters.is_empty()).then_some(counters),
            },
            "addresses": addresses.remove(&index).unwrap_or_default(),
            "hardware-address": hardware,
            "counter-bits": bits,
        })
    };
    indexes.map(facts).collect()
}

/// Name of a status as OpenConfig has it: `LOWER_LAYER_DOWN`.
fn openconfig(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

/// Addresses of each interface.
fn addresses(columns: &[Column]) -> BTreeMap<u32, Vec<Value>> {
    let mut all: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    let values = |column: usize| columns.get(column).into_iter().flatten();
    let index = |value: &SnmpValue| value.number().and_then(|number| u32::try_from(number).ok());
    for (oid, value) in values(8) {
        let Some((behind, interface)) = oid.below(&Oid::new(INTERFACES[8])).zip(index(value)) else { continue };
        let Some(ip) = address(behind) else { continue };
        // The prefix is named by its row, whose last number is its length.
        let row = columns.get(7).and_then(|prefixes| prefixes.get(&Oid::new(INTERFACES[7]).with(behind)));
        let length = if let Some(SnmpValue::Object(row)) = row { row.numbers().last().copied() } else { None };
        all.entry(interface).or_default().push(json!({ "ip": ip, "prefix-length": length.filter(|length| *length <= 128) }));
    }
    if all.is_empty() {
        for (oid, value) in values(9) {
            let Some((behind, interface)) = oid.below(&Oid::new(INTERFACES[9])).zip(index(value)) else { continue };
            let Some(ip) = address(&[&[1, 4], behind].concat()) else { continue };
            all.entry(interface).or_default().push(json!({ "ip": ip, "prefix-length": null }));
        }
    }
    all
}

/// Address in the index of a row: kind, length and bytes.
fn address(behind: &[u32]) -> Option<String> {
    let [kind, length, rest @ ..] = behind else { return None };
    let bytes = rest.iter().map(|number| u8::try_from(*number).ok()).collect::<Option<Vec<u8>>>()?;
    match (kind, length, bytes.len()) {
        (1, 4, 4) => Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string()),
        (2, 16, 16) => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string()),
        // With a zone behind.
        (4, 20, 20) => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..16]).ok()?).to_string()),
        _ => None,
    }
}

/// Load of all processors together in percent, and their number; `None`: the device tells none.
pub fn processors(columns: &[Column]) -> Option<(f64, usize)> {
    let loads: Vec<i64> = columns.first()?.values().filter_map(SnmpValue::number).filter(|load| (0..=100).contains(load)).collect();
    let sum: i64 = loads.iter().sum();
    (!loads.is_empty()).then(|| ((10.0 * sum as f64 / loads.len() as f64).round() / 10.0, loads.len()))
}

/// Main memory in bytes; `None`: the device tells none.
pub fn memory(columns: &[Column]) -> Option<Value> {
    let root = |column: usize| Oid::new(STORAGE[column]);
    let row = |oid: &Oid| oid.below(&root(0)).map(<[u32]>::to_vec);
    let rows: Vec<(Vec<u32>, bool)> =
        columns.first()?.iter().filter_map(|(oid, kind)| Some((row(oid)?, *kind == SnmpValue::Object(Oid::new(RAM))))).collect();
    let cell = |column: usize, row: &[u32]| columns.get(column).and_then(|values| values.get(&root(column).with(row)));
    let bytes = |column: usize, row: &[u32]| cell(column, row)?.number()?.checked_mul(cell(2, row)?.number()?);
    let (ram, _) = rows.iter().find(|(_, is_ram)| *is_ram)?;
    let (total, used) = (bytes(3, ram)?, bytes(4, ram)?);
    let available = rows.iter().find(|(row, _)| cell(1, row).is_some_and(|name| name.to_string() == "Available memory"));
    let available = available.and_then(|(row, _)| bytes(3, row));
    Some(json!({ "total": total, "available": available, "free": total.saturating_sub(used) }))
}

/// Objects with their values, by the names of RFC 6643; what has no name here is named by its numbers.
pub fn named(values: &Column) -> Value {
    let mut all = Map::new();
    let mut entries: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
    for (oid, value) in values {
        match object_of(oid) {
            Some((object, [index])) if object.is_column() => {
                let entry = entries.entry(*index).or_default();
                entry.insert(KEY.to_owned(), (*index).into());
                entry.insert(object.name().to_owned(), of_object(object, value));
            }
            Some((object, [0])) => {
                let module = all.entry(format!("{0}:{0}", object.module)).or_insert_with(|| json!({}));
                module[object.nodes[0]][object.name()] = of_object(object, value);
            }
            // The number of a row may spell its community.
            _ => match SECRETS.iter().find(|secret| oid.numbers().starts_with(secret)) {
                Some(secret) => drop(all.insert(Oid::new(secret).to_string(), MARK.into())),
                None => drop(all.insert(oid.to_string(), of_any(value))),
            },
        }
    }
    if !entries.is_empty() {
        let module = all.entry("IF-MIB:IF-MIB").or_insert_with(|| json!({}));
        module["ifTable"][LIST] = entries.into_values().map(Value::Object).collect();
    }
    Value::Object(all)
}

fn of_object(object: &MibObject, value: &SnmpValue) -> Value {
    match (object.syntax, value) {
        (Syntax::Names(names), SnmpValue::Integer(number)) => {
            names.iter().find(|(_, known)| known == number).map_or_else(|| (*number).into(), |(name, _)| Value::from(*name))
        }
        (Syntax::Hardware, SnmpValue::Octets(bytes)) => hexadecimal(bytes).into(),
        (_, value) => of_any(value),
    }
}

pub(super) fn of_any(value: &SnmpValue) -> Value {
    if let SnmpValue::Counter64(number) = value {
        return (*number).into();
    }
    value.number().map_or_else(|| value.to_string().into(), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(text: &str) -> SnmpValue {
        SnmpValue::Octets(text.as_bytes().to_vec())
    }

    fn column(root: &[u32], rows: &[(&[u32], SnmpValue)]) -> Column {
        rows.iter().map(|(row, value)| (Oid::new(root).with(row), value.clone())).collect()
    }

    #[test]
    fn nm_12_communities_and_keys_are_no_values() {
        let community = &[1, 3, 6, 1, 6, 3, 18, 1, 1, 1, 2, 6, 99, 97, 110, 97, 114, 121];
        let handed_on = &[1, 3, 6, 1, 6, 3, 18, 1, 4, 0];
        let shown = named(&Column::from([(Oid::new(community), octets("canary")), (Oid::new(handed_on), octets("canary"))]));
        assert_eq!(shown, json!({ "1.3.6.1.6.3.18.1.1": MARK, "1.3.6.1.6.3.18.1.4": MARK }));
    }

    #[test]
    fn nm_03_interfaces_have_names_states_and_addresses() {
        let mut columns = vec![Column::new(); INTERFACES.len()];
        columns[0] = column(INTERFACES[0], &[(&[2], octets("Device 1d0f:ec20"))]);
        columns[2] = column(INTERFACES[2], &[(&[2], SnmpValue::Octets(vec![0x52, 0x54, 0, 0, 0, 1]))]);
        columns[3] = column(INTERFACES[3], &[(&[2], SnmpValue::Integer(1))]);
        columns[4] = column(INTERFACES[4], &[(&[2], SnmpValue::Integer(7))]);
        columns[5] = column(INTERFACES[5], &[(&[2], octets("eth0"))]);
        let row = Oid::new(&[1, 3, 6, 1, 2, 1, 4, 32, 1, 5, 2, 1, 4, 10, 0, 0, 0, 24]);
        columns[7] = column(INTERFACES[7], &[(&[1, 4, 10, 0, 0, 5], SnmpValue::Object(row))]);
        columns[8] = column(INTERFACES[8], &[(&[1, 4, 10, 0, 0, 5], SnmpValue::Integer(2))]);
        let found = interfaces(&columns);
        assert_eq!(found[0]["name"], "eth0");
        assert_eq!(found[0]["state"]["oper-status"], "LOWER_LAYER_DOWN");
        assert_eq!(found[0]["hardware-address"], "52:54:00:00:00:01");
        assert_eq!(found[0]["addresses"], json!([{ "ip": "10.0.0.5", "prefix-length": 24 }]));
        columns[8].clear();
        columns[9] = column(INTERFACES[9], &[(&[10, 0, 0, 6], SnmpValue::Integer(2))]);
        assert_eq!(interfaces(&columns)[0]["addresses"][0]["ip"], "10.0.0.6");
    }

    #[test]
    fn nm_03_octets_are_those_of_64_bits_where_counted() {
        let mut columns = vec![Column::new(); INTERFACES.len()];
        columns[0] = column(INTERFACES[0], &[(&[1], octets("new")), (&[2], octets("old")), (&[3], octets("mute"))]);
        columns[10] = column(INTERFACES[10], &[(&[1], SnmpValue::Counter64(u64::MAX))]);
        columns[14] = column(INTERFACES[14], &[(&[1], SnmpValue::Counter(7)), (&[2], SnmpValue::Counter(8))]);
        columns[17] = column(INTERFACES[17], &[(&[1], SnmpValue::Counter(9)), (&[2], SnmpValue::Integer(10))]);
        let found = interfaces(&columns);
        assert_eq!(found[0]["state"]["counters"], json!({ "in-octets": u64::MAX, "out-errors": 9 }));
        assert_eq!(found[1]["state"]["counters"], json!({ "in-octets": 8 }));
        assert!(found[2]["state"]["counters"].is_null() && found[2]["counter-bits"].is_null());
        assert_eq!((&found[0]["counter-bits"], &found[1]["counter-bits"]), (&json!(64), &json!(32)));
    }

    #[test]
    fn nm_03_load_and_memory_are_summed_up() {
        assert_eq!(processors(&[column(LOAD, &[(&[1], SnmpValue::Integer(10)), (&[2], SnmpValue::Integer(15))])]), Some((12.5, 2)));
        assert_eq!(processors(&[Column::new()]), None);
        let storage = [
            column(STORAGE[0], &[(&[1], SnmpValue::Object(Oid::new(RAM)))]),
            column(STORAGE[1], &[(&[1], octets("Physical memory"))]),
            column(STORAGE[2], &[(&[1], SnmpValue::Integer(1024))]),
            column(STORAGE[3], &[(&[1], SnmpValue::Integer(1000))]),
            column(STORAGE[4], &[(&[1], SnmpValue::Integer(400))]),
        ];
        assert_eq!(memory(&storage), Some(json!({ "total": 1_024_000, "available": null, "free": 614_400 })));
    }

    #[test]
    fn nm_02_objects_have_the_names_of_their_modules() {
        let oid = |text: &str| text.parse::<Oid>().unwrap();
        let values = Column::from([
            (oid("1.3.6.1.2.1.1.5.0"), octets("r1")),
            (oid("1.3.6.1.2.1.2.2.1.7.2"), SnmpValue::Integer(2)),
            (oid("1.3.6.1.4.1.9.1.0"), SnmpValue::Counter64(u64::MAX)),
        ]);
        let wanted = json!({
            "SNMPv2-MIB:SNMPv2-MIB": { "system": { "sysName": "r1" } },
            "IF-MIB:IF-MIB": { "ifTable": { "ifEntry": [{ "ifIndex": 2, "ifAdminStatus": "down" }] } },
            "1.3.6.1.4.1.9.1.0": u64::MAX,
        });
        assert_eq!(named(&values), wanted);
    }
}
