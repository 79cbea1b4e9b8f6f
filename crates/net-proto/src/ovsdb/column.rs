//! Columns of the switch that people configure, their values as words of a line, and both in the form of RFC 7047. Columns that the switch
//! writes itself are none of these.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// VLANs of a list.
const MOST_VLANS: usize = 4096;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    /// A text, empty by default.
    Text,
    /// A number, zero by default.
    Number,
    /// True or false, false by default.
    Flag,
    /// A text or nothing.
    OneText,
    /// A number between two others, or nothing.
    OneNumber(u64, u64),
    Texts,
    /// Numbers of VLANs.
    Vlans,
    Map,
}

/// Value of a column beside the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnValue {
    Word(String),
    Words(BTreeSet<String>),
    Vlans(BTreeSet<u16>),
    Map(BTreeMap<String, String>),
}

/// Columns of a row beside their defaults.
pub(super) type Columns = BTreeMap<&'static str, ColumnValue>;

type ColumnTable = [(&'static str, ColumnType)];

pub(super) const BRIDGE: &ColumnTable = &[
    ("datapath_type", ColumnType::Text),
    ("fail_mode", ColumnType::OneText),
    ("flood_vlans", ColumnType::Vlans),
    ("mcast_snooping_enable", ColumnType::Flag),
    ("protocols", ColumnType::Texts),
    ("rstp_enable", ColumnType::Flag),
    ("stp_enable", ColumnType::Flag),
    ("external_ids", ColumnType::Map),
    ("other_config", ColumnType::Map),
];
pub(super) const PORT: &ColumnTable = &[
    ("tag", ColumnType::OneNumber(0, 4095)),
    ("trunks", ColumnType::Vlans),
    ("vlan_mode", ColumnType::OneText),
    ("cvlans", ColumnType::Vlans),
    ("mac", ColumnType::OneText),
    ("lacp", ColumnType::OneText),
    ("bond_mode", ColumnType::OneText),
    ("bond_updelay", ColumnType::Number),
    ("bond_downdelay", ColumnType::Number),
    ("bond_fake_iface", ColumnType::Flag),
    ("fake_bridge", ColumnType::Flag),
    ("protected", ColumnType::Flag),
    ("external_ids", ColumnType::Map),
    ("other_config", ColumnType::Map),
];
pub(super) const INTERFACE: &ColumnTable = &[
    ("type", ColumnType::Text),
    ("options", ColumnType::Map),
    ("mac", ColumnType::OneText),
    ("mtu_request", ColumnType::OneNumber(1, 65_535)),
    ("ofport_request", ColumnType::OneNumber(1, 65_279)),
    ("ingress_policing_rate", ColumnType::Number),
    ("ingress_policing_burst", ColumnType::Number),
    ("ingress_policing_kpkts_rate", ColumnType::Number),
    ("ingress_policing_kpkts_burst", ColumnType::Number),
    ("cfm_mpid", ColumnType::OneNumber(0, 8191)),
    ("bfd", ColumnType::Map),
    ("lldp", ColumnType::Map),
    ("external_ids", ColumnType::Map),
    ("other_config", ColumnType::Map),
];

impl ColumnType {
    /// Value out of a row; `None` for the default.
    pub(super) fn read(self, cell: &Value) -> Option<ColumnValue> {
        let atoms = atoms(cell);
        let word = |atom: &Value| atom.as_str().map_or_else(|| atom.to_string(), str::to_owned);
        match self {
            Self::Map => {
                let pairs = cell.get(1).and_then(Value::as_array).into_iter().flatten();
                let map: BTreeMap<String, String> = pairs.filter_map(|pair| Some((word(pair.get(0)?), word(pair.get(1)?)))).collect();
                (!map.is_empty()).then_some(ColumnValue::Map(map))
            }
            Self::Texts => {
                let words: BTreeSet<String> = atoms.iter().map(|atom| word(atom)).collect();
                (!words.is_empty()).then_some(ColumnValue::Words(words))
            }
            Self::Vlans => {
                let vlans: BTreeSet<u16> = atoms.iter().filter_map(|atom| u16::try_from(atom.as_u64()?).ok()).collect();
                (!vlans.is_empty()).then_some(ColumnValue::Vlans(vlans))
            }
            Self::Text | Self::Number | Self::Flag | Self::OneText | Self::OneNumber(..) => {
                let word = word(atoms.first()?);
                (word != self.default_word()).then_some(ColumnValue::Word(word))
            }
        }
    }

    /// The value in a row, `None` standing for the default.
    pub(super) fn cell(self, value: Option<&ColumnValue>) -> Value {
        match (self, value) {
            (Self::Map, Some(ColumnValue::Map(map))) => json!(["map", map.iter().collect::<Vec<_>>()]),
            (Self::Map, _) => json!(["map", []]),
            (_, Some(ColumnValue::Words(words))) => json!(["set", words]),
            (_, Some(ColumnValue::Vlans(vlans))) => json!(["set", vlans]),
            (Self::Number | Self::OneNumber(..), Some(ColumnValue::Word(word))) => json!(word.parse::<u64>().unwrap_or_default()),
            (Self::Flag, Some(ColumnValue::Word(word))) => json!(word == "true"),
            (_, Some(ColumnValue::Word(word))) => json!(word),
            (Self::Text, _) => json!(""),
            (Self::Number, _) => json!(0),
            (Self::Flag, _) => json!(false),
            (_, _) => json!(["set", []]),
        }
    }

    /// Mutations of a column with several values from `had` to `wanted`, for no more than the values that differ; `None` for a column with one.
    pub(super) fn mutations(self, name: &str, had: Option<&ColumnValue>, wanted: Option<&ColumnValue>) -> Option<[Value; 2]> {
        let (out, into) = match self {
            Self::Map => {
                let none = BTreeMap::new();
                let map = |value: Option<&'_ ColumnValue>| if let Some(ColumnValue::Map(map)) = value { map.clone() } else { none.clone() };
                let (had, wanted) = (map(had), map(wanted));
                let differing: BTreeSet<&String> =
                    had.keys().chain(wanted.keys()).filter(|key| had.get(*key) != wanted.get(*key)).collect();
                let made: Vec<(&String, &String)> = wanted.iter().filter(|(key, _)| differing.contains(key)).collect();
                // An insert leaves a key with another value alone.
                (json!(["set", differing]), json!(["map", made]))
            }
            Self::Texts | Self::Vlans => {
                let (had, wanted) = (elements(had), elements(wanted));
                let only =
                    |one: &[Value], other: &[Value]| json!(["set", one.iter().filter(|value| !other.contains(value)).collect::<Vec<_>>()]);
                (only(&had, &wanted), only(&wanted, &had))
            }
            Self::Text | Self::Number | Self::Flag | Self::OneText | Self::OneNumber(..) => return None,
        };
        Some([json!([name, "delete", out]), json!([name, "insert", into])])
    }

    fn default_word(self) -> &'static str {
        match self {
            Self::Number => "0",
            Self::Flag => "false",
            Self::Text | Self::OneText | Self::OneNumber(..) | Self::Texts | Self::Vlans | Self::Map => "",
        }
    }

    /// Puts the words of a line into `columns`.
    ///
    /// # Errors
    /// The reason why the words are no value of the column.
    pub(super) fn set(self, name: &'static str, words: &[String], columns: &mut Columns) -> Result<(), String> {
        let value = match (self, words) {
            (Self::Map, [key, value]) => {
                let map = columns.entry(name).or_insert_with(|| ColumnValue::Map(BTreeMap::new()));
                if let ColumnValue::Map(map) = map {
                    map.insert(key.clone(), value.clone());
                }
                return Ok(());
            }
            (Self::Map, _) => return Err(format!("`{name}` has a key and a value")),
            (Self::Texts, [list]) => ColumnValue::Words(list.split(',').map(str::to_owned).collect()),
            (Self::Vlans, [list]) => ColumnValue::Vlans(ranges(list)?),
            (Self::Flag, [word]) if word == "true" || word == "false" => ColumnValue::Word(word.clone()),
            (Self::Flag, _) => return Err(format!("`{name}` is true or false")),
            (Self::Number, [word]) => ColumnValue::Word(number(word, 0, u32::MAX.into())?),
            (Self::OneNumber(least, most), [word]) => ColumnValue::Word(number(word, least, most)?),
            (Self::Text | Self::OneText, [word]) => ColumnValue::Word(word.clone()),
            (_, _) => return Err(format!("`{name}` has one value")),
        };
        if matches!(&value, ColumnValue::Word(word) if *word == self.default_word()) {
            columns.remove(name);
        } else {
            columns.insert(name, value);
        }
        Ok(())
    }
}

impl ColumnValue {
    /// Lines of the column.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        match self {
            Self::Word(word) => vec![format!("{name} {}", quoted(word))],
            Self::Words(words) => {
                let list: Vec<&str> = words.iter().map(String::as_str).collect();
                vec![format!("{name} {}", quoted(&list.join(",")))]
            }
            Self::Vlans(vlans) => vec![format!("{name} {}", range_list(vlans))],
            Self::Map(map) => map.iter().map(|(key, value)| format!("{name} {} {}", quoted(key), quoted(value))).collect(),
        }
    }
}

/// Elements of a value that is a set.
fn elements(value: Option<&ColumnValue>) -> Vec<Value> {
    match value {
        Some(ColumnValue::Words(words)) => words.iter().map(|word| json!(word)).collect(),
        Some(ColumnValue::Vlans(vlans)) => vlans.iter().map(|vlan| json!(vlan)).collect(),
        Some(ColumnValue::Word(_) | ColumnValue::Map(_)) | None => Vec::new(),
    }
}

/// Elements of a set: a single one stands for itself.
pub(super) fn atoms(cell: &Value) -> Vec<&Value> {
    match cell.as_array().map(Vec::as_slice) {
        Some([kind, Value::Array(all)]) if kind == "set" => all.iter().collect(),
        Some([kind, Value::Array(_)]) if kind == "map" => Vec::new(),
        Some(_) | None if cell.is_null() => Vec::new(),
        Some(_) | None => vec![cell],
    }
}

fn number(word: &str, least: u64, most: u64) -> Result<String, String> {
    // A number has one form: rules on lines are judged by the text.
    let number = word.parse::<u64>().ok().filter(|number| (least..=most).contains(number) && number.to_string() == word);
    number.map(|number| number.to_string()).ok_or_else(|| format!("`{word}` is no number from {least} to {most}"))
}

/// Numbers of VLANs: `10,20-22`.
fn ranges(list: &str) -> Result<BTreeSet<u16>, String> {
    let (mut vlans, mut count) = (BTreeSet::new(), 0);
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let vlan = |word: &str| number(word, 0, 4095).map(|number| number.parse::<u16>().unwrap_or_default());
        let (first, last) = (vlan(first)?, vlan(last)?);
        if first > last {
            return Err(format!("`{part}` ends before it begins"));
        }
        count += usize::from(last - first) + 1;
        if count > MOST_VLANS {
            return Err("names more VLANs than there are".to_owned());
        }
        vlans.extend(first..=last);
    }
    Ok(vlans)
}

/// The same as a list, with three numbers and more in a row as a range.
fn range_list(vlans: &BTreeSet<u16>) -> String {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for vlan in vlans {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *vlan => *last = *vlan,
            _ => runs.push((*vlan, *vlan)),
        }
    }
    let text = runs.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    text.collect::<Vec<_>>().join(",")
}

/// A word as part of a line: in quotes of JSON, unless all letters are plain.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:/,@+-=".contains(&byte));
    if is_plain { word.to_owned() } else { json!(word).to_string() }
}

/// Words of a line.
///
/// # Errors
/// A quote is not closed.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        if rest.starts_with('"') {
            let mut parsed = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let word = parsed.next().and_then(Result::ok).ok_or("a quote is not closed, or a `\\` stands before no letter of JSON")?;
            let end = parsed.byte_offset();
            words.push(word);
            rest = rest[end..].trim_start();
        } else {
            let end = rest.find(' ').unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
    }
    Ok(words)
}
