//! Forms of configurations: lines of a command line, or data of NETCONF in normal form. Compares; reaches no device.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::text::{Tree, unified};
use crate::netconf::{MOST_DIFFERENCES, XmlTree};
use crate::numbers::ranges;

/// Differences in a message for people.
const SHOWN: usize = 20;

/// Differences for a message: the first ones, and the count of the others.
pub fn listed(differences: &[String]) -> String {
    let more = differences.len().saturating_sub(SHOWN);
    let told = differences.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    if more == 0 { told } else { format!("{told}; and {more} more") }
}

/// Form of the configurations of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigForm {
    /// Lines and contexts.
    #[default]
    Lines,
    /// An element a line.
    Data,
    /// Lines and contexts, in which a change and work of others can be told apart.
    Rows,
    /// A text as it is, in which order and blanks may count.
    Text,
    /// An object a line, each with a value of its own. Objects that others have made do not count.
    Objects,
}

impl ConfigForm {
    /// Differences of a device from the wanted configuration: `-` is missing there, `+` is too much.
    pub fn differences(self, wanted: &str, shown: &str) -> Vec<String> {
        match self {
            Self::Lines | Self::Rows => Tree::read(wanted).differences(&Tree::read(shown)),
            Self::Objects => {
                let shown: BTreeSet<&str> = shown.lines().collect();
                wanted.lines().filter(|line| !shown.contains(line)).map(|line| format!("-{line}")).take(MOST_DIFFERENCES).collect()
            }
            Self::Text if wanted == shown => Vec::new(),
            Self::Text => {
                let changes = unified(wanted, shown, |text| text.lines().map(str::to_owned).collect());
                let changed = changes.lines().skip(2).filter(|line| line.starts_with(['-', '+']) && line.len() > 1);
                let told: Vec<String> = changed.map(|line| format!("{} {}", &line[..1], line[1..].trim())).collect();
                if told.is_empty() { vec!["blank lines differ".to_owned()] } else { told }
            }
            Self::Data => match (XmlTree::parse(wanted), XmlTree::parse(shown)) {
                (Ok(wanted), Ok(shown)) => wanted.differences(&shown),
                (Err(reason), _) | (_, Err(reason)) => vec![format!("the configurations can't be compared: {reason}")],
            },
        }
    }

    /// Differences of a device from a change: where work of others can be told apart, only differences of the change itself.
    pub fn lost(self, old: &str, new: &str, shown: &str) -> Vec<String> {
        let differences = self.differences(new, shown);
        match self {
            Self::Lines | Self::Data | Self::Text => differences,
            Self::Objects => {
                let made: BTreeSet<String> = self.differences(new, old).into_iter().collect();
                let are_all = made.len() < MOST_DIFFERENCES && differences.len() < MOST_DIFFERENCES;
                differences.into_iter().filter(|line| !are_all || made.contains(line)).collect()
            }
            Self::Rows => {
                let made = by_value(self.differences(old, new));
                let present: BTreeSet<String> = by_value(self.differences(old, shown)).into_iter().collect();
                made.into_iter().filter(|line| !present.contains(line)).collect()
            }
        }
    }

    /// Checks that the old configuration runs: byte for byte, or node for node.
    pub fn is_restored(self, old: &str, shown: &str) -> bool {
        old == shown || (self != Self::Lines && self.differences(old, shown).is_empty())
    }

    /// Checks whether a device shows any part of the change from `old` to `new`: a node that was added, or where only nodes were removed, the
    /// lack of one. In lines, parts can't be told from work of others.
    pub fn holds_part(self, old: &str, new: &str, shown: &str) -> bool {
        match self {
            Self::Lines | Self::Text => return true,
            Self::Data | Self::Rows => {}
            Self::Objects => {
                let made = self.differences(new, old);
                let missing = self.differences(new, shown);
                return made.len() >= MOST_DIFFERENCES || made.iter().any(|line| !missing.contains(line));
            }
        }
        let differences = |wanted: &str, shown: &str| match self {
            Self::Rows => by_value(self.differences(wanted, shown)),
            Self::Lines | Self::Data | Self::Text | Self::Objects => self.differences(wanted, shown),
        };
        let mut made: BTreeSet<String> = differences(old, new).into_iter().collect();
        if self == Self::Data && made.len() >= MOST_DIFFERENCES {
            return true;
        }
        // A node that is gone may be gone by a restart of the device, or by others.
        if made.iter().any(|difference| difference.starts_with('+')) {
            made.retain(|difference| difference.starts_with('+'));
        }
        differences(old, shown).iter().any(|difference| made.contains(difference))
    }
}

/// The same differences with a line for each value of a list, without the values that stand on both sides.
fn by_value(differences: Vec<String>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for difference in differences {
        let (begin, list) = difference.rsplit_once(' ').unwrap_or(("", &difference));
        // VLANs: other numbers are no lists.
        match ranges(list).filter(|ranges| ranges.iter().all(|(_, last)| *last < 4096)) {
            Some(ranges) => all.extend(ranges.into_iter().flat_map(|(first, last)| first..=last).map(|value| format!("{begin} {value}"))),
            None => all.extend(list.split(',').map(|value| format!("{begin} {value}"))),
        }
    }
    let other = |line: &str| line.strip_prefix('-').map_or_else(|| format!("-{}", &line[1..]), |rest| format!("+{rest}"));
    let has_both = |line: &String| all.contains(&other(line));
    all.iter().filter(|line| !has_both(line)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_09_work_of_others_is_no_part_of_a_change() {
        let config = |description: &str, mtu: &str| {
            format!(
                "<interfaces xmlns=\"u\"><interface><name>a</name><description>{description}</description><mtu>{mtu}</mtu></interface></interfaces>"
            )
        };
        let (old, new) = (config("old", "1500"), config("new", "1500"));
        assert!(ConfigForm::Data.holds_part(&old, &new, &config("new", "9000")));
        assert!(!ConfigForm::Data.holds_part(&old, &new, &config("old", "9000")));
        assert!(
            !ConfigForm::Data.is_restored(&old, &config("old", "9000")) && ConfigForm::Data.is_restored(&old, &old.replace("><", ">\n<"))
        );
        assert!(!ConfigForm::Lines.is_restored("a\nb\n", "b\na\n"));
        assert_eq!(ConfigForm::Text.differences("a {\n b;\n}\n", "a {\n c;\n}\n"), ["- b;", "+ c;"]);
        assert!(ConfigForm::Text.differences("a\n", "a\n").is_empty() && !ConfigForm::Text.differences("a\n", "a\n\n").is_empty());
    }

    #[test]
    fn nm_09_values_that_others_add_to_a_list_are_theirs() {
        let port = |trunks: &str| format!("port e2\n in-bridge br0\n trunks {trunks}\n");
        let (old, new) = (port("10,20-22"), port("10,21-22"));
        assert!(!ConfigForm::Rows.holds_part(&old, &new, &port("10,20-22,40")), "the value is back, beside one of somebody else");
        assert!(ConfigForm::Rows.holds_part(&old, &new, &port("10,21-22,40")));
        assert!(!ConfigForm::Rows.is_restored(&old, &port("10,20-22,40")));
    }

    #[test]
    fn nm_09_objects_of_others_are_no_part_of_a_change() {
        let (old, new) = ("/a 1\n/b 1\n", "/a 2\n/b 1\n");
        assert_eq!(ConfigForm::Objects.differences(new, old), ["-/a 2"]);
        assert!(ConfigForm::Objects.is_restored(old, "/a 1\n/b 1\n/c 1\n"), "an object that came meanwhile");
        assert!(!ConfigForm::Objects.is_restored(old, "/a 1\n/b 9\n"));
        assert!(!ConfigForm::Objects.holds_part(old, new, "/a 1\n/b 9\n"));
        assert!(ConfigForm::Objects.holds_part(old, new, "/a 2\n/b 9\n"));
    }

    #[test]
    fn nm_09_drift_of_others_takes_nothing_from_a_change() {
        let (old, new) = ("/a 1\n/b 1\n", "/a 2\n/b 1\n");
        assert!(ConfigForm::Objects.lost(old, new, "/a 2\n/b 9\n/c 1\n").is_empty());
        assert_eq!(ConfigForm::Objects.lost(old, new, "/a 1\n/b 1\n"), ["-/a 2"]);
        let port = |tag: &str, trunks: &str| format!("port e2\n in-bridge br0\n tag {tag}\n trunks {trunks}\n");
        let (old, new) = (port("10", "1"), port("20", "1"));
        assert!(ConfigForm::Rows.lost(&old, &new, &port("20", "1,7")).is_empty());
        assert!(!ConfigForm::Rows.lost(&old, &new, &port("30", "1")).is_empty());
        assert_eq!(ConfigForm::Lines.lost("a\n", "b\n", "b\nc\n"), ["+ c"]);
    }
}
