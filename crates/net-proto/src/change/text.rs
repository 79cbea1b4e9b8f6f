//! Configurations of lines and contexts, as FRR and IOS write them: read into a tree, changed by commands, compared. Does not judge commands:
//! the device does.

mod reload;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Lines of a dialect with a meaning for merges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grammar {
    /// Beginnings of lines that open a context, from anywhere.
    pub contexts: Vec<String>,
    /// Beginnings of lines that open a context within a context.
    pub inner: Vec<String>,
    /// Beginnings of lines that belong to no context.
    pub global: Vec<String>,
    /// Beginnings of lines that replace each other in a context; `*` stands for any word.
    pub single: Vec<String>,
}

/// FRR, in the words of `vtysh`.
pub static FRR: LazyLock<Grammar> = LazyLock::new(|| {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Grammar {
        contexts: texts(&[
            "interface ",
            "router ",
            "route-map ",
            "vrf ",
            "line vty",
            "key chain ",
            "bfd",
            "segment-routing",
            "pbr-map ",
            "nexthop-group ",
            "rpki",
        ]),
        inner: texts(&["address-family ", "vni ", "key ", "peer ", "profile "]),
        global: texts(&[
            "ip route ",
            "ipv6 route ",
            "ip prefix-list ",
            "ipv6 prefix-list ",
            "access-list ",
            "ipv6 access-list ",
            "hostname ",
            "log ",
            "bgp as-path ",
            "bgp community-list ",
            "ip forwarding",
            "ipv6 forwarding",
            "service ",
            "banner ",
            "username ",
        ]),
        single: texts(&[
            "description",
            "hostname",
            "log file",
            "log syslog",
            "bandwidth",
            "ip ospf cost",
            "ip ospf hello-interval",
            "ip ospf dead-interval",
            "ip ospf priority",
            "ip ospf authentication-key",
            "bgp router-id",
            "ospf router-id",
            "timers throttle spf",
            "maximum-paths",
            "neighbor * remote-as",
            "neighbor * description",
            "neighbor * timers connect",
            "neighbor * timers",
            "neighbor * password",
            "neighbor * update-source",
            "neighbor * ebgp-multihop",
            "neighbor * local-as",
            "neighbor * weight",
            "set local-preference",
            "set metric",
            "router-id",
        ]),
    }
});

/// A line and the lines below.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LineNode {
    line: String,
    below: Vec<LineNode>,
}

/// A configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    nodes: Vec<LineNode>,
}

/// Lines at the end of a context, and lines without meaning.
fn is_silent(line: &str) -> bool {
    line.is_empty()
        || line.starts_with('!')
        || line.starts_with("exit")
        || matches!(line, "end" | "Building configuration..." | "Current configuration:")
}

fn begins(line: &str, beginnings: &[String]) -> bool {
    beginnings.iter().any(|begin| line.starts_with(begin.as_str()) || line == begin.trim_end())
}

impl Tree {
    /// Reads a text by its indentation.
    pub fn read(text: &str) -> Self {
        let mut root = Vec::new();
        let mut open: Vec<(usize, LineNode)> = Vec::new();
        for raw in text.lines() {
            let line = raw.trim();
            if is_silent(line) {
                continue;
            }
            let indent = raw.len() - raw.trim_start().len();
            while open.last().is_some_and(|(depth, _)| *depth >= indent) {
                close(&mut open, &mut root);
            }
            open.push((indent, LineNode { line: line.to_owned(), below: Vec::new() }));
        }
        while !open.is_empty() {
            close(&mut open, &mut root);
        }
        Self { nodes: root }
    }

    /// Applies commands of the configuration mode, `no` included.
    pub fn merge<'a>(&mut self, commands: impl IntoIterator<Item = &'a str>, grammar: &Grammar) {
        let mut path: Vec<String> = Vec::new();
        for command in commands {
            let line = command.trim();
            if line == "end" || line.starts_with('!') || line.is_empty() {
                path.truncate(if line == "end" { 0 } else { path.len() });
            } else if line.starts_with("exit") {
                path.pop();
            } else if begins(line, &grammar.contexts) {
                path = vec![line.to_owned()];
                self.context(&path);
            } else if path.len() == 1 && begins(line, &grammar.inner) {
                path.push(line.to_owned());
                self.context(&path);
            } else {
                let bare = line.strip_prefix("no ").unwrap_or(line);
                if begins(bare, &grammar.global) || (bare != line && begins(bare, &grammar.contexts)) {
                    path.clear();
                }
                place(self.context(&path), line, grammar);
            }
        }
    }

    /// Text of the tree, with closing lines for contexts.
    pub fn write(&self, grammar: &Grammar) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            write_node(&mut text, node, 0, grammar);
        }
        text
    }

    /// Differences from the configuration of a device, as lines with context: `-` is missing on the device, `+` is too much. The order of
    /// lines does not count, empty contexts neither.
    pub fn differences(&self, shown: &Self) -> Vec<String> {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        count(&self.nodes, "", 1, &mut counts);
        count(&shown.nodes, "", -1, &mut counts);
        let is_default = |line: &str| {
            let (context, last) = line.rsplit_once(" / ").map_or(("", line), |(context, last)| (context, last));
            let negated = if context.is_empty() { format!("no {last}") } else { format!("{context} / no {last}") };
            // A device shows neither a default nor the `no` of a default.
            !counts.contains_key(&negated)
        };
        let differing = counts.iter().filter(|(_, count)| **count != 0);
        let told = differing.map(|(line, count)| if *count > 0 { format!("- {line}") } else { format!("+ {line}") });
        told.filter(|line| !line.starts_with("- ip forwarding") && !line.starts_with("- ipv6 forwarding") || !is_default(&line[2..]))
            .collect()
    }

    /// Commands of the configuration mode that lead from this configuration to `wanted`, each context begun from outside.
    pub fn towards(&self, wanted: &Self, grammar: &Grammar) -> Vec<String> {
        let mut commands = Vec::new();
        lead(&self.nodes, &wanted.nodes, grammar, &mut commands);
        commands
    }

    fn context(&mut self, path: &[String]) -> &mut Vec<LineNode> {
        let mut level = &mut self.nodes;
        for line in path {
            let at = level.iter().position(|node| node.line == *line).unwrap_or_else(|| {
                level.push(LineNode { line: line.clone(), below: Vec::new() });
                level.len() - 1
            });
            level = &mut level[at].below;
        }
        level
    }
}

/// The command that takes a line away.
fn undone(line: &str, grammar: &Grammar) -> String {
    let line = key(line, grammar).unwrap_or(line);
    line.strip_prefix("no ").map_or_else(|| format!("no {line}"), str::to_owned)
}

/// Commands that take away what is too much, and then add what is missing.
fn lead(have: &[LineNode], wanted: &[LineNode], grammar: &Grammar, commands: &mut Vec<String>) {
    for node in have {
        let key = key(&node.line, grammar);
        let is_replaced = key.is_some() && wanted.iter().any(|other| self::key(&other.line, grammar) == key);
        if !is_replaced && !wanted.iter().any(|other| other.line == node.line) {
            commands.push(undone(&node.line, grammar));
        }
    }
    for node in wanted {
        let same = have.iter().find(|other| other.line == node.line);
        if same.is_some_and(|same| same.below == node.below) {
            continue;
        }
        commands.push(node.line.clone());
        lead(same.map_or(&[], |same| &same.below), &node.below, grammar, commands);
        if !node.below.is_empty() || same.is_some_and(|same| !same.below.is_empty()) {
            commands.push(if node.line.starts_with("address-family ") { "exit-address-family" } else { "exit" }.to_owned());
        }
    }
}

fn close(open: &mut Vec<(usize, LineNode)>, root: &mut Vec<LineNode>) {
    if let Some((_, node)) = open.pop() {
        open.last_mut().map_or(root, |(_, parent)| &mut parent.below).push(node);
    }
}

fn place(level: &mut Vec<LineNode>, line: &str, grammar: &Grammar) {
    let within =
        |node: &LineNode, begin: &str| node.line == begin || node.line.strip_prefix(begin).is_some_and(|rest| rest.starts_with(' '));
    if let Some(gone) = line.strip_prefix("no ") {
        let before = level.len();
        // `no neighbor X timers` leaves `neighbor X timers connect`, and `no neighbor X` leaves nothing.
        let is_key = key(gone, grammar) == Some(gone);
        level.retain(|node| if is_key { key(&node.line, grammar) != Some(gone) } else { !within(node, gone) });
        if level.len() < before || level.iter().any(|node| node.line == line) {
            return;
        }
    } else {
        let negated = format!("no {line}");
        level.retain(|node| node.line != negated);
        if level.iter().any(|node| node.line == line) {
            return;
        }
        if let Some(replaced) = key(line, grammar) {
            let at = level.iter().position(|node| key(&node.line, grammar) == Some(replaced)).unwrap_or(level.len());
            level.retain(|node| key(&node.line, grammar) != Some(replaced));
            level.insert(at, LineNode { line: line.to_owned(), below: Vec::new() });
            return;
        }
    }
    level.push(LineNode { line: line.to_owned(), below: Vec::new() });
}

/// The part of a line that stands once in a context; `None` for lines that may stand side by side.
fn key<'a>(line: &'a str, grammar: &Grammar) -> Option<&'a str> {
    grammar.single.iter().find_map(|pattern| key_of(line, pattern))
}

/// The part of `line` under `pattern`.
fn key_of<'a>(line: &'a str, pattern: &str) -> Option<&'a str> {
    let mut end = 0;
    for wanted in pattern.split(' ') {
        let rest = &line[end..];
        let begin = rest.len() - rest.trim_start().len();
        let word = first_word(&rest[begin..]).filter(|word| !word.is_empty())?;
        if wanted != "*" && wanted != word {
            return None;
        }
        end += begin + word.len();
    }
    Some(&line[..end])
}

/// The first word of a line; a quote begins a word that blanks are part of, up to the next quote.
fn first_word(line: &str) -> Option<&str> {
    let mut is_escaped = false;
    let is_end = |(_, letter): &(usize, char)| {
        let ends = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    };
    let end = line.strip_prefix('"').and_then(|quoted| quoted.char_indices().find(is_end)).map(|(at, _)| at + 2);
    match end {
        Some(end) if line[end..].is_empty() || line[end..].starts_with(' ') => line.get(..end),
        Some(_) | None => line.split(' ').next(),
    }
}

fn write_node(text: &mut String, node: &LineNode, depth: usize, grammar: &Grammar) {
    let indent = " ".repeat(depth);
    text.push_str(&format!("{indent}{}\n", node.line));
    for below in &node.below {
        write_node(text, below, depth + 1, grammar);
    }
    if node.line.starts_with("address-family ") {
        text.push_str(&format!("{indent}exit-address-family\n"));
    } else if !node.below.is_empty() || (depth == 0 && begins(&node.line, &grammar.contexts)) {
        text.push_str(&format!("{indent}exit\n"));
    }
}

fn count(nodes: &[LineNode], context: &str, by: i64, counts: &mut BTreeMap<String, i64>) {
    for node in nodes {
        let whole = if context.is_empty() { node.line.clone() } else { format!("{context} / {}", node.line) };
        if node.below.is_empty() {
            if !(context.is_empty() && node.line.starts_with("interface ")) {
                *counts.entry(whole).or_default() += by;
            }
        } else {
            count(&node.below, &whole, by, counts);
        }
    }
}

/// Changed lines and the lines around, as `diff -u` has them; empty for equal texts. Lines are compared as they are, and told as `shown` gives
/// the lines of a text.
pub fn unified(before: &str, after: &str, shown: impl Fn(&str) -> Vec<String>) -> String {
    let (old, new) = (shown(before), shown(after));
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let found = similar::TextDiff::from_slices(&before, &after);
    let mut text = String::new();
    for hunk in found.unified_diff().context_radius(3).iter_hunks() {
        if text.is_empty() {
            text.push_str("--- running\n+++ candidate\n");
        }
        text.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            let line = change.new_index().map_or_else(|| change.old_index().and_then(|at| old.get(at)), |at| new.get(at));
            text.push_str(&format!("{}{}\n", change.tag(), line.map_or("", String::as_str)));
        }
    }
    text
}

/// Revision of a configuration: SHA-256 of its text, in hexadecimal.
pub fn revision(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "!\nfrr version 8.4.4\nhostname vm\nno ip forwarding\n!\ninterface lan0\n description customer-lan\n ip address 192.168.1.1/24\nexit\n!\nrouter bgp 65001\n neighbor 10.0.12.2 remote-as 65002\n neighbor 10.0.12.2 timers 1 3\n !\n address-family ipv4 unicast\n  redistribute connected\n exit-address-family\nexit\n!\nend\n";

    fn merged(commands: &[&str]) -> String {
        let mut tree = Tree::read(SHOWN);
        tree.merge(commands.iter().copied(), &FRR);
        tree.write(&FRR)
    }

    #[test]
    fn a_text_comes_back_without_its_comments() {
        let text = Tree::read(SHOWN).write(&FRR);
        assert_eq!(Tree::read(&text), Tree::read(SHOWN));
        assert!(text.contains("\n address-family ipv4 unicast\n  redistribute connected\n exit-address-family\nexit\n"), "{text}");
    }

    #[test]
    fn a_single_line_is_replaced_and_others_stay() {
        let text = merged(&["interface lan0", "description new lan", "ip address 192.168.9.1/24"]);
        assert!(
            text.contains("interface lan0\n description new lan\n ip address 192.168.1.1/24\n ip address 192.168.9.1/24\nexit\n"),
            "{text}"
        );
        let text = merged(&["router bgp 65001", " neighbor 10.0.12.2 timers 2 6"]);
        assert!(text.contains("timers 2 6") && !text.contains("timers 1 3") && text.contains("remote-as 65002"), "{text}");
    }

    #[test]
    fn no_deletes_by_prefix_and_global_lines_leave_contexts() {
        let text = merged(&["interface lan0", "no description", "ip route 10.7.0.0/16 Null0"]);
        assert!(!text.contains("customer-lan"), "{text}");
        assert!(text.contains("\nip route 10.7.0.0/16 Null0\n"), "{text}");
        assert!(!merged(&["no router bgp 65001"]).contains("neighbor"));
        assert!(merged(&["router bgp 65001", "no bgp ebgp-requires-policy"]).contains("\n no bgp ebgp-requires-policy\n"));
    }

    #[test]
    fn a_longer_key_is_another_line() {
        let mut tree = Tree::read("router bgp 1\n neighbor 10.0.0.1 timers 1 3\n neighbor 10.0.0.1 timers connect 5\nexit\n");
        tree.merge(["router bgp 1", "neighbor 10.0.0.1 timers 2 6"], &FRR);
        assert!(tree.write(&FRR).contains(" neighbor 10.0.0.1 timers 2 6\n neighbor 10.0.0.1 timers connect 5\n"));
        tree.merge(["router bgp 1", "no neighbor 10.0.0.1 timers"], &FRR);
        assert_eq!(tree.write(&FRR), "router bgp 1\n neighbor 10.0.0.1 timers connect 5\nexit\n");
        tree.merge(["router bgp 1", "no neighbor 10.0.0.1"], &FRR);
        assert_eq!(tree.write(&FRR), "router bgp 1\nexit\n");
    }

    #[test]
    fn nm_09_keys_with_blanks_have_places_of_their_own() {
        let grammar = Grammar { single: vec!["external_ids *".to_owned(), "tag".to_owned()], ..Grammar::default() };
        let mut tree = Tree::read("external_ids \"a b\" 1\nexternal_ids \"a c\" 2\nexternal_ids \"a \\\" d\" 3\n");
        tree.merge(["external_ids \"a c\" 9", "no external_ids \"a \\\" d\""], &grammar);
        assert_eq!(tree.write(&grammar), "external_ids \"a b\" 1\nexternal_ids \"a c\" 9\n");
        // A quote that never ends is part of a word.
        assert_eq!(
            (key_of("external_ids \"a b", "external_ids *"), key_of("external_ids", "external_ids *")),
            (Some("external_ids \"a"), None)
        );
    }

    #[test]
    fn nm_09_commands_lead_from_one_configuration_to_another() {
        let (old, new) = (
            "hostname a\ninterface lan0\n description x\n shutdown\nexit\nip route 10.0.0.0/8 Null0\n",
            "hostname b\ninterface lan0\n description y z\nexit\n",
        );
        let commands = Tree::read(old).towards(&Tree::read(new), &FRR);
        assert_eq!(commands, ["no ip route 10.0.0.0/8 Null0", "hostname b", "interface lan0", "no shutdown", "description y z", "exit"]);
        // A device shows no default, so that a line of one is no difference.
        let whole = SHOWN.replace("no ip forwarding\n", "");
        for (from, to) in [(old, new), (new, old), (old, whole.as_str()), (whole.as_str(), old)] {
            let mut tree = Tree::read(from);
            let commands = tree.towards(&Tree::read(to), &FRR);
            tree.merge(commands.iter().map(String::as_str), &FRR);
            assert_eq!(Tree::read(to).differences(&tree), Vec::<String>::new(), "{commands:?}");
        }
    }

    #[test]
    fn order_does_not_differ_and_a_missing_line_does() {
        let one = Tree::read("hostname a\ninterface lan0\n description x\n ip address 10.0.0.1/8\nexit\n");
        let other = Tree::read("interface lan0\n ip address 10.0.0.1/8\n description x\nexit\nhostname a\n");
        assert_eq!(one.differences(&other), Vec::<String>::new());
        assert_eq!(
            one.differences(&Tree::read("hostname a\ninterface lan0\n description x\nexit\n")),
            ["- interface lan0 / ip address 10.0.0.1/8"]
        );
        assert_eq!(Tree::read("hostname a\n").differences(&Tree::read("hostname b\n")), ["- hostname a", "+ hostname b"]);
    }
}
