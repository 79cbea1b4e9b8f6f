//! Inventories of Ansible, in INI and in YAML: groups within groups, variables that the nearest group decides, ranges of hosts. Templates and
//! vaults are not opened: a value that needs one counts as absent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    Inventory, InventoryAccess, InventoryDevice, InventoryError, InventoryFile, InventoryKind, MOST_DEVICES, dialect_of, note_passwords,
    port, text,
};

/// Groups within groups, at most.
const DEEPEST: usize = 32;
/// Hosts, groups and variables to go through: a short file can name each of them again and again.
const MOST_WORK: usize = 5_000_000;
/// Bytes of a pattern of hosts, and of a number in it, that are taken for one.
const LONGEST_PATTERN: usize = 1_000;
const LONGEST_NUMBER: usize = 10;
const PASSWORDS: [&str; 5] =
    ["ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_become_password", "ansible_become_pass"];

/// A host's variables, with the depth of the group that set each: the deepest wins.
#[derive(Debug, Default)]
struct Host {
    variables: BTreeMap<String, (usize, Value)>,
    groups: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Hosts {
    all: BTreeMap<String, Host>,
    /// Hosts, groups and variables that were gone through, over and over where groups hold each other.
    work: usize,
}

/// A group as either form has it.
#[derive(Debug, Default)]
struct IniGroup {
    hosts: Vec<(String, Map<String, Value>)>,
    variables: Map<String, Value>,
    children: Vec<String>,
}

/// Checks that each top member is a group.
pub(super) fn is_inventory(tree: &Map<String, Value>) -> bool {
    let is_group = |value: &Value| match value {
        Value::Object(group) => group.keys().all(|key| matches!(key.as_str(), "hosts" | "children" | "vars")),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    !tree.is_empty() && tree.values().all(is_group) && tree.values().any(|group| !group.is_null())
}

/// Checks that a text begins with the head of a group in INI, which JSON could begin like.
pub(super) fn begins_with_group(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first.is_some_and(|line| line.starts_with('[') && line.ends_with(']') && !line.contains(['{', '"', ',']) && line.len() > 2)
}

pub(super) fn read_yaml(tree: &Map<String, Value>) -> Result<Inventory, InventoryError> {
    let mut hosts = Hosts::default();
    for (name, group) in tree {
        hosts.add_tree(name, group, &[], 0)?;
    }
    Ok(hosts.into_inventory())
}

pub(super) fn read_ini(file: InventoryFile<'_>) -> Result<Inventory, InventoryError> {
    let mut groups: BTreeMap<String, IniGroup> = BTreeMap::new();
    let mut section = ("ungrouped".to_owned(), String::new());
    let syntax = |number: usize, reason: &str| InventoryError::Syntax {
        file: file.name.to_owned(),
        reason: format!("line {}: {reason}", number + 1),
    };
    for (number, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line.strip_prefix('[') {
            let head = head.split_once(']').ok_or_else(|| syntax(number, "a group has no `]`"))?.0;
            let (name, part) = head.split_once(':').unwrap_or((head, ""));
            section = (name.trim().to_owned(), part.trim().to_owned());
            groups.entry(section.0.clone()).or_default();
            continue;
        }
        let group = groups.entry(section.0.clone()).or_default();
        match section.1.as_str() {
            "" => {
                let (host, variables) = host_line(line).ok_or_else(|| syntax(number, "a quote has no end"))?;
                group.hosts.push((host, variables));
            }
            "vars" => {
                let (name, value) = line.split_once('=').ok_or_else(|| syntax(number, "a variable has no `=`"))?;
                group.variables.insert(name.trim().to_owned(), value.trim().trim_matches(['"', '\'']).into());
            }
            "children" => group.children.push(line.to_owned()),
            other => return Err(syntax(number, &format!("a group has `hosts`, `vars` and `children`, no `{other}`"))),
        }
    }
    if groups.values().all(|group| group.hosts.is_empty()) {
        return Err(InventoryError::Unknown(file.name.to_owned()));
    }
    let mut hosts = Hosts::default();
    let outer: &[Map<String, Value>] = groups.get("all").map_or(&[], |all| std::slice::from_ref(&all.variables));
    let children: BTreeSet<&String> = groups.values().flat_map(|group| &group.children).collect();
    // Groups in a circle have no top: each of them is one.
    let tops = groups.keys().filter(|name| !children.contains(name)).chain(groups.keys());
    for name in tops {
        let is_new = groups[name].hosts.iter().any(|(host, _)| !hosts.has(host));
        if is_new || !children.contains(name) {
            hosts.add_group(name, &groups, if name == "all" { &[] } else { outer }, 0)?;
        }
    }
    Ok(hosts.into_inventory())
}

/// Name and variables of a line such as `r1 ansible_host=10.0.0.1 note="two words"`; `None`: a quote without an end.
fn host_line(line: &str) -> Option<(String, Map<String, Value>)> {
    let mut words: Vec<String> = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if words.last().is_some_and(String::is_empty) => break,
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => words.last_mut()?.push(c),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let host = words.next()?;
    let variables = words.filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.into()))).collect();
    quote.is_none().then_some((host, variables))
}

impl Hosts {
    fn add_tree(&mut self, name: &str, group: &Value, outer: &[Map<String, Value>], depth: usize) -> Result<(), InventoryError> {
        let Value::Object(group) = group else { return Ok(()) };
        if depth > DEEPEST {
            return Ok(());
        }
        self.spend(outer)?;
        let part = |name: &str| group.get(name).and_then(Value::as_object);
        let mut variables = outer.to_vec();
        variables.push(part("vars").cloned().unwrap_or_default());
        for (host, own) in part("hosts").into_iter().flatten() {
            self.add(host, name, &variables, own.as_object())?;
        }
        for (child, below) in part("children").into_iter().flatten() {
            self.add_tree(child, below, &variables, depth + 1)?;
        }
        Ok(())
    }

    fn add_group(
        &mut self,
        name: &str,
        groups: &BTreeMap<String, IniGroup>,
        outer: &[Map<String, Value>],
        depth: usize,
    ) -> Result<(), InventoryError> {
        // Deeper than this there is a circle.
        let Some(group) = groups.get(name).filter(|_| depth <= DEEPEST) else { return Ok(()) };
        self.spend(outer)?;
        let mut variables = outer.to_vec();
        variables.push(group.variables.clone());
        for (host, own) in &group.hosts {
            self.add(host, name, &variables, Some(own))?;
        }
        for child in &group.children {
            self.add_group(child, groups, &variables, depth + 1)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        pattern: &str,
        group: &str,
        outer: &[Map<String, Value>],
        own: Option<&Map<String, Value>>,
    ) -> Result<(), InventoryError> {
        for name in expanded(pattern)? {
            self.spend(outer)?;
            if self.all.len() >= MOST_DEVICES && !self.all.contains_key(&name) {
                return Err(InventoryError::TooMany);
            }
            let host = self.all.entry(name).or_default();
            if !matches!(group, "all" | "ungrouped") {
                host.groups.insert(group.to_owned());
            }
            let own = own.map(|own| (usize::MAX, own));
            for (depth, variables) in outer.iter().enumerate().chain(own) {
                for (name, value) in variables.iter().filter(|(name, _)| name.starts_with("ansible_")) {
                    let is_nearer = host.variables.get(name).is_none_or(|(before, _)| depth >= *before);
                    if is_nearer {
                        host.variables.insert(name.clone(), (depth, value.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, variables: &[Map<String, Value>]) -> Result<(), InventoryError> {
        self.work += 1 + variables.iter().map(|some| 1 + some.len()).sum::<usize>();
        if self.work > MOST_WORK { Err(InventoryError::TooMany) } else { Ok(()) }
    }

    /// Checks that the hosts of a pattern are there.
    fn has(&self, pattern: &str) -> bool {
        expanded(pattern).is_ok_and(|names| names.iter().all(|name| self.all.contains_key(name)))
    }

    fn into_inventory(self) -> Inventory {
        let mut passwords = 0;
        let devices = self.all.into_iter().map(|(name, host)| {
            let variables: Map<String, Value> = host.variables.into_iter().map(|(name, (_, value))| (name, value)).collect();
            passwords += usize::from(PASSWORDS.iter().any(|name| variables.contains_key(*name)));
            // A template is for Ansible to fill in.
            let plain = |name: &str| text(&variables, name).filter(|text| !text.contains("{{"));
            let platform = plain("ansible_network_os");
            let connection = plain("ansible_connection").unwrap_or_default();
            InventoryDevice {
                address: plain("ansible_host").or_else(|| plain("ansible_ssh_host")).unwrap_or_else(|| name.clone()),
                port: port(&variables, "ansible_port").or_else(|| port(&variables, "ansible_ssh_port")),
                user: plain("ansible_user").or_else(|| plain("ansible_ssh_user")),
                dialect: platform.as_deref().and_then(dialect_of),
                platform,
                access: if connection.ends_with("netconf") { InventoryAccess::Netconf } else { InventoryAccess::CommandLine },
                groups: host.groups.into_iter().collect(),
                name,
            }
        });
        let devices = devices.collect();
        let mut notes = Vec::new();
        note_passwords(passwords, &mut notes);
        Inventory { kind: InventoryKind::Ansible, devices, notes }
    }
}

/// Names of a pattern such as `r[1:3]`, `sw[01:10:2]` or `leaf-[a:c]`.
fn expanded(pattern: &str) -> Result<Vec<String>, InventoryError> {
    if pattern.len() > LONGEST_PATTERN {
        return Ok(vec![pattern.to_owned()]);
    }
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, range, after)) = next_range(rest) {
        let values = range;
        if names.len().saturating_mul(values.len()) > MOST_DEVICES {
            return Err(InventoryError::TooMany);
        }
        names = names.iter().flat_map(|name| values.iter().map(move |value| format!("{name}{before}{value}"))).collect();
        rest = after;
    }
    Ok(names.into_iter().map(|name| name + rest).collect())
}

/// Text before a range, its values, and the text after it.
fn next_range(text: &str) -> Option<(&str, Vec<String>, &str)> {
    let (before, rest) = text.split_once('[')?;
    let (range, after) = rest.split_once(']')?;
    let mut parts = range.split(':');
    let (first, last) = (parts.next()?, parts.next()?);
    let step: usize = parts.next().map_or(Some(1), |step| step.parse().ok().filter(|step| *step > 0))?;
    if first.len() > LONGEST_NUMBER {
        return None;
    }
    if let (Ok(from), Ok(to)) = (first.parse::<u32>(), last.parse::<u32>()) {
        let width = if first.starts_with('0') { first.len() } else { 0 };
        let values = (from..=to).step_by(step).take(MOST_DEVICES + 1).map(|number| format!("{number:0width$}")).collect();
        return Some((before, values, after));
    }
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    let values = (letter(first)?..=letter(last)?).step_by(step).map(String::from).collect();
    Some((before, values, after))
}
