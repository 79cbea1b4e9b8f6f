//! Records of rules: which come into force and which go. Decides nothing.

use std::collections::BTreeMap;

use audit::record::{Changed, Record, Text};
use config::resolved::Config;

use crate::judge::approvals::policy_version;
use crate::tree::gate::Recorder;

/// Records the change of rules from `old` to `new`, or without `old` the rules at the start.
pub fn changed(recorder: &Recorder, old: Option<&Config>, new: &Config) {
    let version = policy_version(new);
    if old.map_or_else(|| new.policy.is_none() && new.gate.is_none(), |old| policy_version(old) == version) {
        return;
    }
    let lines = lines(&old.map(rules).unwrap_or_default(), &rules(new)).into_iter().map(Text::Owned).collect();
    recorder.journal.append(&Record::Changed(Changed { lines, version: Some(version.into()), what: "policy".into() }));
}

/// Rules by name, and their texts.
fn rules(config: &Config) -> BTreeMap<String, String> {
    let rules = config.policy.iter().flat_map(|policy| policy.policies.rules());
    rules.map(|rule| (rule.id.to_string(), rule.text.to_string())).collect()
}

/// Changes of rules: `+ NAME` came, `- NAME` went, `~ NAME` has another text.
fn lines(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let gone = old.keys().filter(|id| !new.contains_key(*id)).map(|id| format!("- {id}"));
    let other = new.iter().filter_map(|(id, text)| match old.get(id) {
        None => Some(format!("+ {id}")),
        Some(before) => (before != text).then(|| format!("~ {id}")),
    });
    gone.chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_rules_are_listed_by_name() {
        let rules = |all: &[(&str, &str)]| all.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect();
        let (old, new) = (rules(&[("a", "1"), ("b", "1"), ("c", "1")]), rules(&[("b", "1"), ("c", "2"), ("d", "1")]));
        assert_eq!(lines(&old, &new), ["- a", "~ c", "+ d"]);
    }
}
