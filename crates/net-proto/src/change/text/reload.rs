//! Lines of FRR that `frr-reload.py` does not take away. Runs no reload.

use super::{Grammar, LineNode, Tree, undone};

/// Begins of lines that a command of their own takes away; `frr-reload.py` leaves `password`.
const PASSWORDS: [&str; 2] = ["password ", "enable password "];
/// Begins of lines that `frr-reload.py` never takes away, and nothing else does.
const LASTING: [&str; 5] = ["agentx", "frr version", "frr defaults", "username", "service integrated-vtysh-config"];
/// The same for the lines below this one, which means nothing alone.
const LASTING_BELOW: &str = "line vty";

/// Could FRR take a line for one that lasts?
fn may_last(node: &LineNode) -> bool {
    LASTING.iter().any(|known| is_short_for(&node.line, known)) || (!node.below.is_empty() && is_short_for(&node.line, LASTING_BELOW))
}

/// Checks for a line that begins with known words, each perhaps shortened, or takes such a line back.
fn is_short_for(line: &str, known: &str) -> bool {
    let words: Vec<&str> = line.strip_prefix("no ").unwrap_or(line).split_whitespace().collect();
    let known: Vec<&str> = known.split(' ').collect();
    words.len() >= known.len() && words.iter().zip(known).all(|(word, known)| known.starts_with(word))
}

impl Tree {
    /// The first line that one of both configurations of FRR has alone and that no reload could take away: `frr-reload.py` leaves such lines.
    pub fn lasting_difference<'t>(&'t self, other: &'t Self) -> Option<&'t str> {
        let alone = |these: &'t Self, those: &'t Self| {
            let lasting = these.nodes.iter().filter(|node| may_last(node));
            lasting.filter(|node| !those.nodes.contains(node)).map(|node| node.line.as_str()).next()
        };
        alone(other, self).or_else(|| alone(self, other))
    }

    /// Commands that take away what a reload would not: the lines of interfaces which `wanted` does not name, since an interface of the kernel
    /// can't be deleted whole, and passwords of the command line.
    pub fn emptied(&self, wanted: &Self, grammar: &Grammar) -> Vec<String> {
        let foreign = self
            .nodes
            .iter()
            .filter(|node| node.line.starts_with("interface ") && !wanted.nodes.iter().any(|other| other.line == node.line));
        let lines = |node: &LineNode| {
            let undone = node.below.iter().map(|below| undone(&below.line, grammar));
            std::iter::once(node.line.clone()).chain(undone).chain(std::iter::once("exit".to_owned())).collect::<Vec<_>>()
        };
        let passwords = self.nodes.iter().filter(|node| !wanted.nodes.iter().any(|other| other.line == node.line)).filter_map(|node| {
            let password = PASSWORDS.iter().find(|password| node.line.starts_with(*password))?;
            Some(format!("no {}", password.trim_end()))
        });
        foreign.flat_map(lines).chain(passwords).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::FRR;
    use super::*;

    #[test]
    fn nm_09_interfaces_that_were_not_there_are_emptied() {
        let have = Tree::read(
            "interface mgmt0\n description x\n shutdown\n no link-detect\nexit\ninterface lan0\n description new\nexit\nip route 10.0.0.0/8 blackhole\n",
        );
        let wanted = Tree::read("interface lan0\n description old\nexit\n");
        assert_eq!(have.emptied(&wanted, &FRR), ["interface mgmt0", "no description", "no shutdown", "link-detect", "exit"]);
        assert!(have.emptied(&have, &FRR).is_empty());
    }

    #[test]
    fn nm_09_passwords_of_the_command_line_are_taken_away() {
        let have = Tree::read("password a\nenable password 8 b\nrouter bgp 65001\n neighbor 10.0.0.2 password c\nexit\n");
        assert_eq!(have.emptied(&Tree::read(""), &FRR), ["no password", "no enable password"]);
        assert_eq!(have.emptied(&Tree::read("password a\nenable password 8 d\n"), &FRR), ["no enable password"]);
    }

    #[test]
    fn nm_13_lines_that_last_are_found_on_both_sides() {
        let (one, other) = (Tree::read("hostname r1\nagentx\n"), Tree::read("hostname r2\nline vty\n exec-timeout 1 0\nexit\n"));
        assert_eq!((one.lasting_difference(&other), other.lasting_difference(&one)), (Some("line vty"), Some("agentx")));
        assert_eq!(one.lasting_difference(&Tree::read("agentx\nhostname r2\n")), None);
        let below = Tree::read("hostname r2\nline vty\n exec-timeout 0 0\nexit\n");
        assert_eq!(Tree::read("").lasting_difference(&Tree::read("line  vty\n exec-timeout 0 0\n")), Some("line  vty"));
        // Alone, the line stands in many a file and changes nothing.
        assert_eq!(Tree::read("").lasting_difference(&Tree::read("hostname r2\nline vty\n!\n")), None);
        assert_eq!(other.lasting_difference(&below), Some("line vty"));
        for line in ["agent", "usern x nopassword", "no service integrated-vtysh-config", "serv integ", "frr def datacenter"] {
            assert_eq!(Tree::read("").lasting_difference(&Tree::read(line)), Some(line.trim()));
        }
        for line in
            ["access-list a permit any", "service password-encryption", "log syslog", "ip route 10.0.0.0/8 blackhole", "hostname user"]
        {
            assert_eq!(Tree::read("").lasting_difference(&Tree::read(line)), None, "{line}");
        }
    }
}
