//! Words of equal meaning in the search for a tool. Does not know grammar, and knows English only.
//!
//! Each line is a group: a query with a word of the group also finds tools with the others, at a lower weight. A word
//! may be in several groups, without joining them. The table holds the verbs and things of tools
//! everywhere; the names used by one product belong here only where others use different ones.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::words::Words;

const VERBS: &[&str] = &[
    "add append insert put include attach",
    "allow permit grant access",
    "approve accept review",
    "ask query question prompt",
    "assign give delegate allocate",
    "block deny forbid",
    "calculate compute count sum total",
    "cancel abort stop kill terminate end halt close",
    "capture take screenshot snapshot",
    "check verify test validate inspect status",
    "click press tap select",
    "close finish complete resolve",
    "comment remark note annotate",
    "compare diff difference changed",
    "compress zip gzip archive pack",
    "connect link relate associate join relationship",
    "convert translate transform",
    "copy duplicate clone fork replicate",
    "create make new add open start generate build produce initialize register",
    "delete remove erase drop destroy clear purge discard wipe forget",
    "deploy apply rollout release install publish ship",
    "download fetch get retrieve pull grab load",
    "echo repeat",
    "enable disable toggle turn switch activate",
    "explain describe detail",
    "explain plan slow performance",
    "export dump backup save",
    "fill type enter input",
    "find search look lookup query locate discover",
    "get list show read retrieve display view fetch print see inspect examine dump load open",
    "go navigate visit browse open",
    "invite attendee",
    "login authenticate sign log",
    "merge combine integrate",
    "monitor watch observe track",
    "move rename transfer relocate transition",
    "pay buy purchase order",
    "plan schedule book arrange reserve",
    "reach ping connect trace",
    "record log track write save",
    "refund reimburse return",
    "remember memory recall store save add",
    "reply answer respond",
    "restart reboot reload rerun retry",
    "run execute call invoke perform trigger launch",
    "save store write persist record insert",
    "say tell write post send",
    "scale resize increase decrease grow shrink",
    "send post publish deliver submit notify forward transmit broadcast",
    "summarize summary digest overview",
    "switch checkout change",
    "think reason reflect",
    "undo revert rollback restore reset back previous",
    "update edit change modify set configure adjust alter patch amend revise replace overwrite",
    "upload push share attach publish send",
];

/// Objects of these verbs.
const THINGS: &[&str] = &[
    "account profile user",
    "alarm alert warning notification",
    "amount number quantity",
    "attendee participant guest everybody everyone",
    "available free slot",
    "bill invoice",
    "branch version",
    "bug defect error fault problem issue",
    "button element",
    "change modification diff edit",
    "channel room chat conversation",
    "chat message slack conversation talk",
    "code source",
    "column field schema",
    "comment remark note reply",
    "commit revision version history",
    "config configuration setting",
    "container pod docker",
    "content text body",
    "conversation thread",
    "customer client buyer",
    "database sql table query",
    "date time day",
    "deployment service app application",
    "device router switch host machine",
    "disk file filesystem storage",
    "emoji reaction smiley",
    "environment env variable",
    "error failure",
    "event meeting appointment calendar",
    "fact observation knowledge information",
    "file document",
    "firewall acl access rule",
    "folder directory dir",
    "forecast weather rain temperature",
    "heating thermostat temperature warm",
    "history log",
    "hour time worklog",
    "image picture photo screenshot media",
    "instance replica copy",
    "interface port",
    "issue ticket bug task story",
    "job workflow pipeline build ci run",
    "language translate french english german spanish",
    "lamp light bulb brightness",
    "link url uri web website webpage page site internet",
    "log output syslog error",
    "mail email mailbox inbox",
    "member user person people colleague human employee",
    "money payment charge fund",
    "name title label",
    "neighbor lldp adjacent connected",
    "network net",
    "node entity object",
    "organization team workspace company group",
    "path route",
    "permission access right",
    "person entity contact someone",
    "project repository repo",
    "property field attribute",
    "proposal pull pr request",
    "row record entry insert",
    "screen screenshot",
    "server host machine",
    "size big large info",
    "software firmware image program",
    "status state condition",
    "storm alert weather",
    "text string",
    "time clock timezone zone",
    "version release tag",
    "vulnerability security alert scanning",
];

/// Weight of a word that only means the same as a word of the query. Verbs of the same meaning are everywhere; tools about
/// the same thing are closer.
const VERB_WEIGHT: f32 = 0.4;
const THING_WEIGHT: f32 = 0.6;

/// Lists the stems that may stand for `stem`, without itself, each with its weight.
pub(super) fn matching(stem: &str, words: &Words) -> &'static [(Box<str>, f32)] {
    TABLE.get_or_init(|| table(words)).get(stem).map_or(&[], Vec::as_slice)
}

type Table = HashMap<Box<str>, Vec<(Box<str>, f32)>>;

static TABLE: OnceLock<Table> = OnceLock::new();

fn table(words: &Words) -> Table {
    let mut table = Table::new();
    for (group, weight) in groups() {
        let stems: Vec<Box<str>> = group.split(' ').filter_map(|word| words.stem(word)).collect();
        for stem in &stems {
            let others = table.entry(stem.clone()).or_default();
            for other in stems.iter().filter(|other| *other != stem) {
                match others.iter_mut().find(|(known, _)| known == other) {
                    Some((_, known)) => *known = known.max(weight),
                    None => others.push((other.clone(), weight)),
                }
            }
        }
    }
    table
}

fn groups() -> impl Iterator<Item = (&'static str, f32)> {
    let verbs = VERBS.iter().map(|group| (*group, VERB_WEIGHT));
    verbs.chain(THINGS.iter().map(|group| (*group, THING_WEIGHT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_has_a_stem_and_stands_in_a_group_once() {
        let words = Words::new();
        for (group, _) in groups() {
            let stem = |word| words.stem(word).unwrap_or_else(|| panic!("{word} is a stop word"));
            let mut once: Vec<_> = group.split(' ').map(stem).collect();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), group.split(' ').count(), "{group}");
        }
    }

    #[test]
    fn what_means_the_same_is_found_in_both_directions() {
        let words = Words::new();
        let stem = |word| words.stem(word).unwrap();
        for (one, other) in [("tickets", "issue"), ("folder", "directories"), ("remove", "deleted")] {
            for (from, to) in [(one, other), (other, one)] {
                assert!(matching(&stem(from), &words).iter().any(|(known, _)| *known == stem(to)), "{from} does not lead to {to}");
            }
        }
        assert!(matching("xylophon", &words).is_empty());
    }
}
