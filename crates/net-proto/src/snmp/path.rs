//! Paths of objects: by the names of RFC 6643 (`/IF-MIB:IF-MIB/ifTable/ifEntry[ifIndex='2']/ifAlias`) or by numbers (`/1.3.6.1.2.1.1`). And
//! the objects that may be set, a line each, as the configuration of a device. Asks no device.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::mib::{KEY, LIST, MibObject, OBJECTS, Syntax, object_of};
use super::{Oid, SnmpValue};
use crate::fault::{Code, Fault};
use crate::netconf::{pieces, step};

/// Objects below a path.
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectPath {
    objects: Vec<&'static MibObject>,
    index: Option<u32>,
    numbers: Option<Oid>,
}

impl ObjectPath {
    /// Reads a path; `/` is all objects with names here.
    ///
    /// # Errors
    /// The path is no plain path, or no object has this name.
    pub fn read(path: &str) -> Result<Self, Fault> {
        let odd = || {
            Fault::new(Code::InvalidParams, "the path is neither of the form /SNMPv2-MIB:SNMPv2-MIB/system/sysName nor /1.3.6.1.2.1.1")
                .at(path)
        };
        if path.starts_with("/1.") {
            let oid: Oid = path[1..].parse().map_err(|_| odd())?;
            return Ok(Self { objects: Vec::new(), index: None, numbers: Some(oid) });
        }
        let mut index = None;
        let mut nodes = Vec::new();
        for piece in pieces(path.trim()).ok_or_else(odd)? {
            let (node, keys) = step(piece).ok_or_else(odd)?;
            match keys.as_slice() {
                [] => {}
                [(key, given)] if key == KEY && node == LIST => index = Some(given.parse().map_err(|_| odd())?),
                _ => return Err(odd()),
            }
            nodes.push(node.to_owned());
        }
        let module = match nodes.first().map(|first| first.split_once(':').map(|(module, node)| (module.to_owned(), node.to_owned()))) {
            None => None,
            Some(None) => {
                return Err(Fault::new(Code::InvalidParams, "the first node of a path names its module: /SNMPv2-MIB:SNMPv2-MIB").at(path));
            }
            Some(Some((module, node))) => {
                // The container of the module may be left out.
                if node == module {
                    drop(nodes.remove(0))
                } else {
                    nodes[0] = node
                }
                Some(module)
            }
        };
        let begins = |object: &&MibObject| {
            module.as_ref().is_none_or(|module| module == object.module)
                && nodes.len() <= object.nodes.len()
                && nodes.iter().zip(object.nodes).all(|(a, b)| a == b)
        };
        let objects: Vec<&'static MibObject> = OBJECTS.iter().filter(begins).collect();
        if objects.is_empty() {
            let detail = "no object has this name here: names are known of SNMPv2-MIB (system) and IF-MIB; others are read by numbers, /1.3.6.1.2.1.1";
            return Err(Fault::new(Code::ConfigIncompatible, detail).at(path));
        }
        Ok(Self { objects, index, numbers: None })
    }

    /// Instances to be asked for by name, where the path leaves no other.
    pub fn exact(&self) -> Option<Vec<Oid>> {
        if let Some(oid) = &self.numbers {
            return Some(vec![oid.clone()]);
        }
        self.objects.iter().map(|object| instance(object, self.index)).collect()
    }

    /// Identifiers below which everything belongs to the path.
    pub fn roots(&self) -> Vec<Oid> {
        let named = self.objects.iter().map(|object| Oid::new(object.oid));
        named.chain(self.numbers.clone()).collect()
    }

    /// Index of the interface that the path names.
    pub fn index(&self) -> Option<u32> {
        self.index
    }

    /// The one object that an edit sets.
    fn settable(&self) -> Option<(&'static MibObject, Oid)> {
        let [object] = self.objects.as_slice() else { return None };
        instance(object, self.index).filter(|_| object.is_settable).map(|oid| (*object, oid))
    }
}

/// A path with the container of its module, which paths may leave out: one name of each node, for rules.
pub fn whole_path(path: &str) -> Cow<'_, str> {
    let rest = path.trim().trim_start_matches('/');
    let first = rest.split(['/', '[']).next().unwrap_or_default();
    let name = first.split_once(':').map_or(first, |(_, name)| name);
    let known = OBJECTS.iter().find(|object| object.nodes.first().is_some_and(|node| node.eq_ignore_ascii_case(name)));
    known.map_or(Cow::Borrowed(path), |object| format!("/{}/{}{}", object.module, name, &rest[first.len()..]).into())
}

/// Instance of an object of the whole device, or of the interface with this index.
fn instance(object: &MibObject, index: Option<u32>) -> Option<Oid> {
    let last = if object.is_column() { index? } else { 0 };
    Some(Oid::new(object.oid).with(&[last]))
}

/// A value for an object of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpSetting {
    pub path: String,
    pub oid: Oid,
    pub value: SnmpValue,
}

/// Identifiers of all objects that may be set.
pub fn settable() -> Vec<Oid> {
    OBJECTS.iter().filter(|object| object.is_settable).map(|object| Oid::new(object.oid)).collect()
}

/// Objects that may be set, a line each: path and value as JSON.
pub fn settings_text(values: &BTreeMap<Oid, SnmpValue>) -> String {
    let mut text = String::new();
    for (oid, value) in values {
        let Some((object, behind)) = object_of(oid).filter(|(object, _)| object.is_settable) else { continue };
        let given = match (object.syntax, value) {
            (Syntax::Names(names), SnmpValue::Integer(number)) => {
                names.iter().find(|(_, known)| known == number).map_or_else(|| (*number).into(), |(name, _)| Value::from(*name))
            }
            (_, SnmpValue::Octets(bytes)) => plain(bytes),
            (_, value) => value.number().map_or(Value::Null, Value::from),
        };
        text.push_str(&format!("{} {given}\n", path_of(object, behind)));
    }
    text
}

/// Octets as a text, or as numbers where a text would not give them back.
fn plain(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.into(),
        _ => bytes.to_vec().into(),
    }
}

pub(super) fn path_of(object: &MibObject, behind: &[u32]) -> String {
    let index = behind.first().copied().unwrap_or_default();
    let mut path = format!("/{0}:{0}", object.module);
    for node in object.nodes {
        path.push('/');
        path.push_str(node);
        if *node == LIST {
            path.push_str(&format!("[{KEY}='{index}']"));
        }
    }
    path
}

/// The settings after edits, each a path and a value.
///
/// # Errors
/// An edit names no object that may be set, or one that the device does not have.
pub fn edited(running: &str, edits: &[(&str, Option<&Value>)]) -> Result<String, Fault> {
    let mut lines: BTreeMap<Oid, (String, String)> = read(running)?;
    for (path, given) in edits {
        let no_setting = || {
            let names: Vec<&str> = OBJECTS.iter().filter(|object| object.is_settable).map(MibObject::name).collect();
            Fault::new(Code::ConfigIncompatible, format!("over SNMP one object at a time is set, of {}", names.join(", "))).at(*path)
        };
        let (object, oid) = ObjectPath::read(path)?.settable().ok_or_else(no_setting)?;
        let given = given.ok_or_else(|| Fault::new(Code::InvalidParams, "an edit over SNMP has a value").at(*path))?;
        let given = normal(object, given).map_err(|fault| fault.at(*path))?;
        let line = lines.get_mut(&oid).ok_or_else(|| Fault::new(Code::ConfigIncompatible, "the device has no such object").at(*path))?;
        line.1 = given.to_string();
    }
    Ok(lines.into_values().map(|(path, given)| format!("{path} {given}\n")).collect())
}

/// A value as `settings_text` writes it. Numbers are left to the judgement of the device.
fn normal(object: &MibObject, given: &Value) -> Result<Value, Fault> {
    let odd = |detail: String| Err(Fault::new(Code::YangSyntaxError, detail));
    match (object.syntax, given) {
        (Syntax::Names(names), Value::String(name)) if names.iter().any(|(known, _)| known == name) => Ok(given.clone()),
        (Syntax::Names(names), Value::String(name)) => {
            let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            odd(format!("`{name}` is none of {}", known.join(", ")))
        }
        (Syntax::Names(names), Value::Number(number)) => {
            let name = names.iter().find(|(_, known)| number.as_i64() == Some(*known));
            Ok(name.map_or_else(|| given.clone(), |(name, _)| Value::from(*name)))
        }
        (Syntax::Text | Syntax::Hardware | Syntax::Number, Value::String(text)) if text.chars().any(char::is_control) => {
            odd("the text holds control characters".to_owned())
        }
        (_, Value::String(_) | Value::Number(_)) => Ok(given.clone()),
        (_, Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
            odd("the value of an object is a text or a number".to_owned())
        }
    }
}

/// Settings in which one text differs from another: those to send, so that a device with `old` comes to `new`.
///
/// # Errors
/// A text holds no settings.
pub fn settings_of(old: &str, new: &str) -> Result<Vec<SnmpSetting>, Fault> {
    let (old, new) = (read(old)?, read(new)?);
    let mut settings = Vec::new();
    for (oid, (path, given)) in new {
        if old.get(&oid).is_some_and(|(_, before)| *before != given) {
            let value = value_of(&oid, &given).ok_or_else(|| unreadable(&path))?;
            settings.push(SnmpSetting { path, oid, value });
        }
    }
    Ok(settings)
}

/// The same settings as edits: paths and values.
///
/// # Errors
/// A text holds no settings.
pub fn values_of(old: &str, new: &str) -> Result<Vec<(String, Value)>, Fault> {
    let (old, new) = (read(old)?, read(new)?);
    let changed = new.into_iter().filter(|(oid, (_, given))| old.get(oid).is_some_and(|(_, before)| before != given));
    changed
        .map(|(_, (path, given))| serde_json::from_str(&given).map(|value| (path.clone(), value)).map_err(|_| unreadable(&path)))
        .collect()
}

fn value_of(oid: &Oid, given: &str) -> Option<SnmpValue> {
    let (object, _) = object_of(oid)?;
    match (object.syntax, serde_json::from_str(given).ok()?) {
        (Syntax::Names(names), Value::String(name)) => {
            names.iter().find(|(known, _)| *known == name).map(|(_, number)| SnmpValue::Integer(*number))
        }
        (_, Value::String(text)) => Some(SnmpValue::Octets(text.into_bytes())),
        (_, Value::Number(number)) => number.as_i64().map(SnmpValue::Integer),
        (_, Value::Array(bytes)) => {
            let bytes = bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()));
            bytes.collect::<Option<Vec<u8>>>().map(SnmpValue::Octets)
        }
        (_, Value::Null | Value::Bool(_) | Value::Object(_)) => None,
    }
}

/// Lines of settings by their objects: path and value.
fn read(text: &str) -> Result<BTreeMap<Oid, (String, String)>, Fault> {
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        let (path, given) = line.split_once(' ').ok_or_else(|| unreadable(line))?;
        let (_, oid) = ObjectPath::read(path)?.settable().ok_or_else(|| unreadable(path))?;
        lines.insert(oid, (path.to_owned(), given.to_owned()));
    }
    Ok(lines)
}

fn unreadable(line: &str) -> Fault {
    Fault::new(Code::RollbackFailed, "the record of the change holds a line that is no setting").at(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NAME: &str = "/SNMPv2-MIB:SNMPv2-MIB/system/sysName";
    const ADMIN: &str = "/IF-MIB:IF-MIB/ifTable/ifEntry[ifIndex='2']/ifAdminStatus";

    fn running() -> String {
        let text = |text: &str| SnmpValue::Octets(text.as_bytes().to_vec());
        let oid = |text: &str| text.parse::<Oid>().unwrap();
        settings_text(&BTreeMap::from([
            (oid("1.3.6.1.2.1.1.1.0"), text("no setting")),
            (oid("1.3.6.1.2.1.1.5.0"), text("r1")),
            (oid("1.3.6.1.2.1.1.6.0"), SnmpValue::Octets(vec![0xff, 0])),
            (oid("1.3.6.1.2.1.2.2.1.7.2"), SnmpValue::Integer(1)),
        ]))
    }

    #[test]
    fn nm_12_a_path_has_one_name_for_rules() {
        for path in [NAME, "/SNMPv2-MIB:system/sysName", "/system/sysName"] {
            assert!(whole_path(path).ends_with("MIB/system/sysName"), "{path}");
        }
        assert_eq!(whole_path("/IF-MIB:ifTable/ifEntry[ifIndex='2']"), "/IF-MIB/ifTable/ifEntry[ifIndex='2']");
        assert_eq!((whole_path("/"), whole_path("/1.3.6.1")), ("/".into(), "/1.3.6.1".into()));
    }

    #[test]
    fn nm_02_paths_are_read_by_name_and_by_number() {
        let exact = |path: &str| ObjectPath::read(path).unwrap().exact().map(|all| all.iter().map(Oid::to_string).collect::<Vec<_>>());
        assert_eq!(exact(NAME).unwrap(), ["1.3.6.1.2.1.1.5.0"]);
        assert_eq!(exact("/SNMPv2-MIB:system/sysName").unwrap(), ["1.3.6.1.2.1.1.5.0"], "the module's container may be left out");
        assert_eq!(exact(ADMIN).unwrap(), ["1.3.6.1.2.1.2.2.1.7.2"]);
        assert_eq!(exact("/1.3.6.1.4.1.9.2.1").unwrap(), ["1.3.6.1.4.1.9.2.1"]);
        assert_eq!(exact("/IF-MIB:IF-MIB/ifTable"), None);
        assert_eq!(ObjectPath::read("/").unwrap().roots().len(), OBJECTS.len());
        for odd in ["", "system", "/system/sysName", "/SNMPv2-MIB:system/sysName[x='1']", "/1.3.x", "/IF-MIB:ifTable/ifEntry[ifIndex='a']"]
        {
            assert_eq!(ObjectPath::read(odd).unwrap_err().code, Code::InvalidParams, "{odd}");
        }
        assert_eq!(ObjectPath::read("/SNMPv2-MIB:system/sysNam").unwrap_err().code, Code::ConfigIncompatible);
    }

    #[test]
    fn nm_09_settings_are_what_differs() {
        let old = running();
        assert_eq!(old.lines().count(), 3, "{old}");
        let new =
            edited(&old, &[(NAME, Some(&json!("r9"))), ("/IF-MIB:ifTable/ifEntry[ifIndex='2']/ifAdminStatus", Some(&json!(2)))]).unwrap();
        let sent = settings_of(&old, &new).unwrap();
        let values: Vec<_> = sent.iter().map(|setting| (setting.path.as_str(), setting.value.clone())).collect();
        assert_eq!(values, [(NAME, SnmpValue::Octets(b"r9".to_vec())), (ADMIN, SnmpValue::Integer(2))]);
        let back = settings_of(&new, &old).unwrap();
        assert_eq!(back.len(), 2);
        let location = "/SNMPv2-MIB:system/sysLocation";
        let moved = edited(&old, &[(location, Some(&json!("attic")))]).unwrap();
        assert_eq!(settings_of(&moved, &old).unwrap()[0].value, SnmpValue::Octets(vec![0xff, 0]), "octets come back as they were");
    }

    #[test]
    fn nm_08_what_can_not_be_set_is_refused() {
        let code = |path: &str, given: Option<Value>| edited(&running(), &[(path, given.as_ref())]).unwrap_err().code;
        assert_eq!(code("/SNMPv2-MIB:system/sysDescr", Some(json!("x"))), Code::ConfigIncompatible);
        assert_eq!(code("/SNMPv2-MIB:system", Some(json!("x"))), Code::ConfigIncompatible);
        assert_eq!(code("/IF-MIB:ifTable/ifEntry[ifIndex='9']/ifAlias", Some(json!("x"))), Code::ConfigIncompatible);
        assert_eq!(code(ADMIN, Some(json!("sideways"))), Code::YangSyntaxError);
        assert_eq!(code(NAME, Some(json!("a\nb"))), Code::YangSyntaxError);
        assert_eq!(code(NAME, Some(json!({}))), Code::YangSyntaxError);
        assert_eq!(code(NAME, None), Code::InvalidParams);
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_its_line(text in "[^\\p{Cc}]{0,40}") {
            let new = edited(&running(), &[(NAME, Some(&json!(text)))]).unwrap();
            let sent = settings_of(&running(), &new).unwrap();
            prop_assert!(text == "r1" || sent[0].value == SnmpValue::Octets(text.into_bytes()));
        }
    }
}
