//! Configuration of a switch as lines and contexts: bridges, ports, interfaces, and names of VLANs. Knows no row.

use std::collections::{BTreeMap, BTreeSet};

use super::column::{BRIDGE, ColumnType, ColumnValue, Columns, INTERFACE, PORT, quoted, words};
use super::refused;
use crate::fault::Fault;

/// Configuration of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Names of VLANs, without use for the switch itself.
    pub(super) vlans: BTreeMap<u16, String>,
    pub(super) bridges: BTreeMap<String, Columns>,
    pub(super) ports: BTreeMap<String, SwitchPort>,
    pub(super) interfaces: BTreeMap<String, Columns>,
}

/// Port of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SwitchPort {
    pub(super) bridge: String,
    pub(super) interfaces: BTreeSet<String>,
    pub(super) columns: Columns,
}

/// Context of a line.
enum Context {
    Vlan(u16),
    Bridge(String),
    Port(String),
    Interface(String),
}

impl Context {
    /// Checks that a line of this context may begin with `word`.
    ///
    /// # Errors
    /// The words that it may begin with, and the nearest of them.
    fn check_word(&self, word: &str) -> Result<(), String> {
        let (own, known): (&[&str], &[(&'static str, ColumnType)]) = match self {
            Self::Vlan(_) => (&["name"], &[]),
            Self::Bridge(_) => (&[], BRIDGE),
            Self::Port(_) => (&["in-bridge", "interfaces"], PORT),
            Self::Interface(_) => (&[], INTERFACE),
        };
        let all: Vec<&str> = own.iter().copied().chain(known.iter().map(|(name, _)| *name)).collect();
        if all.contains(&word) { Ok(()) } else { Err(format!("is none of {}{}", all.join(", "), nearest(word, &all))) }
    }
}

/// Question for the nearest known word, where one is near.
fn nearest(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::osa_distance(word, known), known)).min();
    near.filter(|(distance, known)| *distance <= known.len() / 3).map(|(_, known)| format!(": is it `{known}`?")).unwrap_or_default()
}

/// Words that open a context.
const KINDS: [&str; 4] = ["bridge", "port", "interface", "vlan"];

impl SwitchConfig {
    /// Reads lines and contexts for a switch with the configuration `running`: with a bridge go its ports, with a port its interfaces.
    ///
    /// # Errors
    /// -32084 for a line of no switch, with the line.
    pub fn read(text: &str, running: &Self) -> Result<Self, Fault> {
        let mut config = Self::default();
        let mut context = None;
        for raw in text.lines() {
            let line = raw.trim();
            if line.is_empty() || line.starts_with('!') || line == "exit" || line == "end" {
                continue;
            }
            let words = words(line).map_err(|why| refused(line, why))?;
            if raw.starts_with([' ', '\t']) {
                let context = context.as_ref().ok_or_else(|| refused(line, "stands below no bridge, port, interface or vlan"))?;
                config.add(context, &words).map_err(|why| refused(line, why))?;
            } else {
                context = Some(config.open(&words).map_err(|why| refused(line, why))?);
            }
        }
        config.complete(running)?;
        Ok(config)
    }

    /// The text in its only form.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for (name, columns) in &self.bridges {
            text.push_str(&format!("bridge {}\n", quoted(name)));
            push_lines(&mut text, columns);
        }
        for (vlan, name) in &self.vlans {
            text.push_str(&format!("vlan {vlan}\n name {}\n", quoted(name)));
        }
        for (name, port) in self.ports.iter().filter(|(name, port)| !self.is_plain_local(name, port)) {
            text.push_str(&format!("port {}\n in-bridge {}\n", quoted(name), quoted(&port.bridge)));
            if port.interfaces.len() != 1 || !port.interfaces.contains(name) {
                let all: Vec<&str> = port.interfaces.iter().map(String::as_str).collect();
                text.push_str(&format!(" interfaces {}\n", quoted(&all.join(","))));
            }
            push_lines(&mut text, &port.columns);
        }
        for (name, columns) in self.interfaces.iter().filter(|(name, columns)| !columns.is_empty() && !self.is_plain_own(name, columns)) {
            text.push_str(&format!("interface {}\n", quoted(name)));
            push_lines(&mut text, columns);
        }
        text
    }

    /// Names of the ports of each bridge.
    pub(super) fn members(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut members: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, port) in &self.ports {
            members.entry(&port.bridge).or_default().insert(name);
        }
        members
    }

    /// The port of each interface.
    pub(super) fn users(&self) -> BTreeMap<&str, &SwitchPort> {
        let all = self.ports.values().flat_map(|port| port.interfaces.iter().map(move |interface| (interface.as_str(), port)));
        all.collect()
    }

    /// Checks for the own port of a bridge, without settings.
    fn is_plain_local(&self, name: &str, port: &SwitchPort) -> bool {
        port.bridge == name && port.columns.is_empty() && port.interfaces.len() == 1 && port.interfaces.contains(name)
    }

    fn is_plain_own(&self, name: &str, columns: &Columns) -> bool {
        self.bridges.contains_key(name) && *columns == internal()
    }

    fn open(&mut self, words: &[String]) -> Result<Context, String> {
        if let [no, rest @ ..] = words
            && no == "no"
        {
            let kind = rest.first().map_or("", String::as_str);
            let near = if KINDS.contains(&kind) { String::new() } else { nearest(kind, &KINDS) };
            return Err(format!("the switch has none of this{near}"));
        }
        let [kind, name] = words else { return Err("begins no context: write bridge, port, interface or vlan, and a name".to_owned()) };
        if name.is_empty() {
            return Err("has no name".to_owned());
        }
        match kind.as_str() {
            "vlan" => match name.parse::<u16>() {
                Ok(vlan @ 1..=4094) if vlan.to_string() == *name => Ok(Context::Vlan(vlan)),
                Ok(_) | Err(_) => Err("a VLAN is 1 to 4094".to_owned()),
            },
            "bridge" => {
                self.bridges.entry(name.clone()).or_default();
                Ok(Context::Bridge(name.clone()))
            }
            "port" => {
                self.ports.entry(name.clone()).or_default();
                Ok(Context::Port(name.clone()))
            }
            "interface" => {
                self.interfaces.entry(name.clone()).or_default();
                Ok(Context::Interface(name.clone()))
            }
            _ => Err(format!("begins no context: write bridge, port, interface or vlan, and a name{}", nearest(kind, &KINDS))),
        }
    }

    fn add(&mut self, context: &Context, words: &[String]) -> Result<(), String> {
        let [word, values @ ..] = words else { return Ok(()) };
        if word == "no" {
            // A known line that the switch does not have is gone already.
            return context.check_word(values.first().map_or("", String::as_str));
        }
        let (known, columns) = match context {
            Context::Vlan(vlan) => {
                let ("name", [name]) = (word.as_str(), values) else { return Err("a VLAN has a name, and nothing else".to_owned()) };
                self.vlans.insert(*vlan, name.clone());
                return Ok(());
            }
            Context::Bridge(name) => (BRIDGE, self.bridges.entry(name.clone()).or_default()),
            Context::Interface(name) => (INTERFACE, self.interfaces.entry(name.clone()).or_default()),
            Context::Port(name) => {
                let port = self.ports.entry(name.clone()).or_default();
                match (word.as_str(), values) {
                    ("in-bridge", [bridge]) => {
                        port.bridge.clone_from(bridge);
                        return Ok(());
                    }
                    ("interfaces", [list]) => {
                        port.interfaces = list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
                        return Ok(());
                    }
                    _ => (PORT, &mut port.columns),
                }
            }
        };
        context.check_word(word)?;
        let found = known.iter().find(|(name, _)| name == word);
        let (name, kind): &(&'static str, ColumnType) = found.ok_or_else(|| format!("`{word}` has one value"))?;
        kind.set(name, values, columns)
    }

    /// Fills in defaults, and lets go of ports and interfaces of a removed bridge or port.
    fn complete(&mut self, running: &Self) -> Result<(), Fault> {
        for bridge in self.bridges.keys() {
            let own = self.ports.entry(bridge.clone()).or_default();
            if own.bridge.is_empty() {
                own.bridge.clone_from(bridge);
            }
            self.interfaces.entry(bridge.clone()).or_insert_with(internal);
        }
        let mut gone = BTreeSet::new();
        for (name, port) in &mut self.ports {
            if port.interfaces.is_empty() {
                port.interfaces.insert(name.clone());
            }
            if self.bridges.contains_key(&port.bridge) {
                continue;
            }
            if running.ports.get(name).is_none_or(|old| old.bridge != port.bridge && !port.bridge.is_empty()) {
                let why =
                    if port.bridge.is_empty() { "stands in no bridge: add `in-bridge`" } else { "stands in a bridge that is not there" };
                return Err(refused(&format!("port {name}"), why));
            }
            gone.insert(name.clone());
        }
        self.ports.retain(|name, _| !gone.contains(name));
        let mut users: BTreeMap<&str, &str> = BTreeMap::new();
        for (port, interface) in self.ports.iter().flat_map(|(port, of)| of.interfaces.iter().map(move |interface| (port, interface))) {
            if let Some(other) = users.insert(interface, port) {
                return Err(refused(&format!("port {port}"), format!("port {other} has the interface {interface} already")));
            }
        }
        let used: BTreeSet<String> = users.keys().map(|name| (*name).to_owned()).collect();
        if let Some(unused) = self.interfaces.keys().find(|name| !used.contains(*name) && !running.interfaces.contains_key(*name)) {
            return Err(refused(&format!("interface {unused}"), "no port has this interface: add `port` with this name"));
        }
        self.interfaces.retain(|name, _| used.contains(name));
        for name in used {
            self.interfaces.entry(name).or_default();
        }
        Ok(())
    }
}

/// The only form of a line, for whoever judges lines by their text: quotes only where a word needs them, and no other escapes than needed.
///
/// # Errors
/// -32084 for a line without words that can be read.
pub fn canonical_line(line: &str) -> Result<String, Fault> {
    let line = line.trim();
    if line.starts_with('!') {
        return Ok(line.to_owned());
    }
    let words = words(line).map_err(|why| refused(line, why))?;
    Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

fn internal() -> Columns {
    Columns::from([("type", ColumnValue::Word("internal".to_owned()))])
}

fn push_lines(text: &mut String, columns: &Columns) {
    for line in columns.iter().flat_map(|(name, value)| value.lines(name)) {
        text.push_str(&format!(" {line}\n"));
    }
}
