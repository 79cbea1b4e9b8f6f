//! Differences between two configurations, for people and for the code that applies them. Applies nothing, and shows names of keys, never a
//! value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::resolved::Config;

/// A difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub subject: Subject,
    pub kind: Kind,
    pub effect: Effect,
}

/// The part of a configuration with a difference: a word, and for a part among several a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    word: &'static str,
    name: Option<Arc<str>>,
}

/// The way of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    /// These keys have other values; empty for a single value.
    Changed(Vec<&'static str>),
    Removed,
}

/// The time of a change's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    AtOnce,
    /// At once, but for an exception in words.
    AtOnceBut(&'static str),
    AtRestart,
}

/// Finds all differences, in the order of the sections.
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let sections = if old.sections.len() > new.sections.len() { &old.sections } else { &new.sections };
    sections.compare(old, new)
}

/// Compares a single value.
pub fn value(word: &'static str, differs: bool) -> Option<Change> {
    differs.then(|| Change::new(Subject::new(word), Kind::Changed(Vec::new())))
}

/// Makes a change of keys from [`differing`].
pub fn keys(word: &'static str, keys: Vec<&'static str>) -> Option<Change> {
    (!keys.is_empty()).then(|| Change::new(Subject::new(word), Kind::Changed(keys)))
}

/// Compares an optional section; `fields` lists the keys with other values.
pub fn optional<V>(word: &'static str, old: Option<&V>, new: Option<&V>, fields: fn(&V, &V) -> Vec<&'static str>) -> Option<Change> {
    compared(Subject::new(word), old, new, fields)
}

/// Compares sections of one word by their names; `fields` lists the keys with other values.
pub fn named<'a, V: 'a>(
    word: &'static str,
    old: impl IntoIterator<Item = (&'a str, &'a V)>,
    new: impl IntoIterator<Item = (&'a str, &'a V)>,
    fields: fn(&V, &V) -> Vec<&'static str>,
) -> Vec<Change> {
    let (old, new): (BTreeMap<&str, &V>, BTreeMap<&str, &V>) = (old.into_iter().collect(), new.into_iter().collect());
    let mut names: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let changes = names.into_iter().filter_map(|name| {
        let subject = Subject { word, name: Some(name.into()) };
        compared(subject, old.get(name).copied(), new.get(name).copied(), fields)
    });
    changes.collect()
}

/// Picks the differing keys.
pub fn differing<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

fn compared<V>(subject: Subject, old: Option<&V>, new: Option<&V>, fields: fn(&V, &V) -> Vec<&'static str>) -> Option<Change> {
    let kind = match (old, new) {
        (Some(old), Some(new)) => Some(fields(old, new)).filter(|keys| !keys.is_empty()).map(Kind::Changed),
        (Some(_), None) => Some(Kind::Removed),
        (None, Some(_)) => Some(Kind::Added),
        (None, None) => None,
    };
    kind.map(|kind| Change::new(subject, kind))
}

impl Subject {
    /// Callers without a credential, let in or shut out.
    pub const SHUT: Self = Self::new("callers without a credential");

    /// Names a part without others of its kind.
    pub const fn new(word: &'static str) -> Self {
        Self { word, name: None }
    }

    /// The word of all parts of a kind: `mount`, `limits`.
    pub const fn word(&self) -> &'static str {
        self.word
    }
}

impl Change {
    fn new(subject: Subject, kind: Kind) -> Self {
        Self { subject, kind, effect: Effect::AtOnce }
    }

    /// Puts the effect off until Banyan is started again.
    #[must_use]
    pub fn at_restart(self) -> Self {
        Self { effect: Effect::AtRestart, ..self }
    }

    /// Notes `exception`, for people, where a key of `keys` has another value.
    #[must_use]
    pub fn but_for(self, keys: &[&str], exception: &'static str) -> Self {
        let is_hit = matches!(&self.kind, Kind::Changed(changed) if changed.iter().any(|key| keys.contains(key)));
        if is_hit { Self { effect: Effect::AtOnceBut(exception), ..self } } else { self }
    }

    /// Checks whether the change takes effect only when Banyan is started again.
    pub fn needs_restart(&self) -> bool {
        self.effect == Effect::AtRestart
    }
}

/// `+ mount x`, `~ mount y: args`, `- mount z`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.subject;
        match &self.kind {
            Kind::Added => write!(f, "+ {subject}")?,
            Kind::Changed(keys) if keys.is_empty() => write!(f, "~ {subject}")?,
            Kind::Changed(keys) => write!(f, "~ {subject}: {}", keys.join(", "))?,
            Kind::Removed => write!(f, "- {subject}")?,
        }
        match self.effect {
            Effect::AtOnce => Ok(()),
            Effect::AtOnceBut(exception) => write!(f, " ({exception})"),
            Effect::AtRestart => f.write_str(" (needs a restart)"),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} {name}", self.word),
            None => f.write_str(self.word),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse;
    use crate::secret::SystemSources;

    const OLD: &str = r#"
        listen = "127.0.0.1:1"
        [mount.a]
        command = "x"
        args = ["--key", "hunter2"]
        [mount.b]
        url = "http://x/"
        [mount.same]
        command = "x"
        [profile.p]
        search = 1
        [profile.q]
    "#;
    const NEW: &str = r#"
        listen = "127.0.0.1:2"
        limits = { calls = 1, request_size = "1B" }
        [mount.a]
        command = "x"
        args = ["--key", "hunter3"]
        timeout = "1s"
        [mount.c]
        command = "x"
        [mount.same]
        command = "x"
        [profile.q]
        [profile.p]
        search = 2
    "#;

    fn printed(old: &str, new: &str) -> Vec<String> {
        let read = |text| parse(text, Path::new("banyan.toml"), &SystemSources).unwrap();
        diff(&read(old), &read(new)).iter().map(Change::to_string).collect()
    }

    #[test]
    fn each_difference_is_one_line_without_values() {
        let expected = [
            "~ listen (needs a restart)",
            "~ limits: request_size, calls",
            "~ mount a: args, timeout",
            "- mount b",
            "+ mount c",
            "~ profile p: search",
            "~ profiles: order",
        ];
        assert_eq!(printed(OLD, NEW), expected);
        assert_eq!(printed(OLD, OLD), Vec::<String>::new());
    }

    #[test]
    fn a_bound_that_open_connections_keep_says_so() {
        let lines = printed("", "limits = { response_size = \"1MiB\", sessions = 1 }");
        assert_eq!(lines, ["~ limits: response_size, sessions (response_size holds for connections to servers made from now on)"]);
    }

    #[test]
    fn who_may_register_changes_at_once_but_for_what_holds_for_connections() {
        assert_eq!(printed("", "[registry]"), ["+ registry"]);
        assert_eq!(printed("[registry]\nproof = \"never\"", "[registry]\nhosts = [\"a\"]"), ["~ registry: hosts, proof"]);
        let lines = printed("[registry]", "[registry]\ninsecure = true");
        assert_eq!(lines, ["~ registry: insecure (insecure, list_ttl and tls hold for registrations from now on)"]);
    }

    #[test]
    fn a_server_that_is_reached_in_another_way_names_the_keys() {
        let mount = |keys: &str| format!("[mount.a]\n{keys}");
        for (old, new, line) in [
            ("command = \"x\"", "url = \"http://x\"", "~ mount a: command, url"),
            ("url = \"http://x\"", "url = \"http://x\"\ntransport = \"sse\"", "~ mount a: transport"),
            ("url = \"http://x\"", "url = \"http://y\"\nheaders = { A = \"hunter2\" }", "~ mount a: url, headers"),
            ("command = \"x\"\nenv = { A = \"1\" }", "command = \"x\"\nenv = { A = \"2\" }", "~ mount a: env"),
            ("command = \"x\"", "command = \"x\"\ndisabled = true", "- mount a"),
        ] {
            assert_eq!(printed(&mount(old), &mount(new)), [line]);
        }
    }

    #[test]
    fn tokens_differ_by_name() {
        let token = |name: &str, digit: &str| format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\n", digit.repeat(64));
        let old = format!("{}{}", token("a", "0"), token("b", "0"));
        let new = format!("{}{}", token("c", "0"), token("b", "1"));
        assert_eq!(printed(&old, &new), ["- token a", "~ token b: sha256", "+ token c"]);
    }
}
