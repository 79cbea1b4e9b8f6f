//! What differs between two configurations, for people and for the code that applies it. Does not apply anything, and
//! never shows a value: names of keys only.

mod fields;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use banyan_model::Segment;
use room_proto::name::{ParticipantId, Topic};

use fields::{
    authority_fields, budget_fields, group_fields, issuer_fields, limit_fields, mount_fields, participant_fields, profile_fields,
    registry_fields, room_fields, rooms_fields, tls_fields, token_fields,
};

use super::resolved::{AuthorityKeys, Budget, Config, Group, Issuer, Mount, Profile, Token};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What is different.
    pub subject: Subject,
    /// In which way.
    pub kind: Kind,
}

/// What a difference is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The host names that are accepted.
    AllowedHosts,
    /// What is recorded.
    Audit,
    /// A proxy stands in front.
    BehindProxy,
    /// Keys that prove authorities.
    Authority(Arc<str>),
    /// How much callers may do.
    Budget(Arc<str>),
    /// Callers that rules speak of as one.
    Group(Arc<str>),
    /// Which calls wait for somebody to agree.
    Gate,
    /// An authorization server.
    Issuer(Arc<str>),
    /// Callers without a credential.
    Shut,
    /// Whom it registers with, and as what.
    Join,
    /// The bounds.
    Limits,
    /// The address to listen on.
    Listen,
    /// A server.
    Mount(Segment),
    /// The spelling of tool names.
    Names,
    /// What is done with definitions nobody has looked at.
    Pins,
    /// Who may call what.
    Policy,
    /// A profile.
    Profile(Arc<str>),
    /// The order in which profiles are tried.
    ProfileOrder,
    /// Who may register servers.
    Registry,
    /// Who comes into rooms by a token of its own.
    Participant(String),
    /// A room.
    Room(String),
    /// What holds for all rooms.
    Rooms,
    /// The address by which tokens name the gate.
    Resource,
    /// Where traces go.
    Telemetry,
    /// TLS on the listener.
    Tls,
    /// A bearer token, by its holder.
    Token(Arc<str>),
}

/// In which way something differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is new.
    Added,
    /// These keys of it have other values; empty when it is a single value.
    Changed(Vec<&'static str>),
    /// It is gone.
    Removed,
}

/// Everything that differs, in a stable order: the gate itself, then mounts, profiles and tokens by name.
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let single = |subject, differs: bool| differs.then_some(Change { subject, kind: Kind::Changed(Vec::new()) });
    let Config {
        listen,
        allowed_hosts,
        behind_proxy,
        tokens,
        trust,
        shut,
        policy,
        groups,
        budgets,
        limits,
        mounts,
        gate,
        registry,
        rooms,
        join,
        profiles,
        telemetry,
        names,
        pins,
        audit,
    } = old;
    let mut changes: Vec<Change> = [
        single(Subject::Listen, *listen != new.listen),
        single(Subject::AllowedHosts, *allowed_hosts != new.allowed_hosts),
        single(Subject::Shut, *shut != new.shut),
        single(Subject::BehindProxy, *behind_proxy != new.behind_proxy),
        single(Subject::Names, *names != new.names),
        single(Subject::Policy, *policy != new.policy),
        single(Subject::Gate, *gate != new.gate),
        single(Subject::Pins, *pins != new.pins),
        single(Subject::Resource, trust.resource != new.trust.resource),
        single(Subject::Join, *join != new.join),
        single(Subject::Telemetry, *telemetry != new.telemetry),
        single(Subject::Audit, *audit != new.audit),
    ]
    .into_iter()
    .flatten()
    .collect();
    compare(&mut changes, &by(registry, |_| ()), &by(&new.registry, |_| ()), |()| Subject::Registry, registry_fields);
    changes.extend(changed(Subject::Rooms, rooms_fields(rooms, &new.rooms)));
    changes.extend(changed(Subject::Limits, limit_fields(limits, &new.limits)));
    compare(&mut changes, &by(&trust.tls, |_| ()), &by(&new.trust.tls, |_| ()), |()| Subject::Tls, tls_fields);
    compare(&mut changes, &by(&trust.issuers, issuer_name), &by(&new.trust.issuers, issuer_name), Subject::Issuer, issuer_fields);
    let (old_keys, new_keys) = (by(&trust.authorities, authority_name), by(&new.trust.authorities, authority_name));
    compare(&mut changes, &old_keys, &new_keys, Subject::Authority, authority_fields);
    compare(&mut changes, &by(groups, group_name), &by(&new.groups, group_name), Subject::Group, group_fields);
    compare(&mut changes, &by(budgets, budget_name), &by(&new.budgets, budget_name), Subject::Budget, budget_fields);
    let text = |topic: &Topic| topic.as_str().to_owned();
    compare(&mut changes, &named(&rooms.rooms, text), &named(&new.rooms.rooms, text), Subject::Room, room_fields);
    let text = |id: &ParticipantId| id.as_str().to_owned();
    let (old_ones, new_ones) = (named(&rooms.participants, text), named(&new.rooms.participants, text));
    compare(&mut changes, &old_ones, &new_ones, Subject::Participant, participant_fields);
    compare(&mut changes, &by(mounts.values(), mount_name), &by(new.mounts.values(), mount_name), Subject::Mount, mount_fields);
    compare(&mut changes, &by(profiles, profile_name), &by(&new.profiles, profile_name), Subject::Profile, profile_fields);
    changes.extend(single(Subject::ProfileOrder, reordered(profiles, &new.profiles)));
    compare(&mut changes, &by(tokens, token_name), &by(&new.tokens, token_name), Subject::Token, token_fields);
    changes
}

impl Change {
    /// Whether it takes effect only when Banyan is started again.
    pub fn needs_restart(&self) -> bool {
        match self.subject {
            Subject::Audit | Subject::Listen | Subject::Telemetry => true,
            // Other files are taken at once; a port that speaks TLS does not begin to speak without, nor the other way round.
            Subject::Tls => !matches!(self.kind, Kind::Changed(_)),
            Subject::AllowedHosts
            | Subject::BehindProxy
            | Subject::Authority(_)
            | Subject::Budget(_)
            | Subject::Group(_)
            | Subject::Gate
            | Subject::Issuer(_)
            | Subject::Join
            | Subject::Limits
            | Subject::Mount(_)
            | Subject::Names
            | Subject::Participant(_)
            | Subject::Pins
            | Subject::Policy
            | Subject::Profile(_)
            | Subject::ProfileOrder
            | Subject::Registry
            | Subject::Resource
            | Subject::Room(_)
            | Subject::Rooms
            | Subject::Shut
            | Subject::Token(_) => false,
        }
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
        let has = |wanted: &str| matches!(&self.kind, Kind::Changed(keys) if keys.contains(&wanted));
        let note = if self.needs_restart() {
            " (needs a restart)"
        } else if self.subject == Subject::Limits && has("response_size") {
            " (response_size holds for connections to servers made from now on)"
        } else if self.subject == Subject::Registry && (has("insecure") || has("tls")) {
            " (insecure and tls hold for registrations from now on)"
        } else {
            ""
        };
        f.write_str(note)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllowedHosts => f.write_str("allowed_hosts"),
            Self::BehindProxy => f.write_str("behind_proxy"),
            Self::Authority(name) => write!(f, "authority {name}"),
            Self::Budget(name) => write!(f, "budget {name}"),
            Self::Group(name) => write!(f, "group {name}"),
            Self::Gate => f.write_str("gate"),
            Self::Issuer(name) => write!(f, "issuer {name}"),
            Self::Join => f.write_str("node and parents"),
            Self::Limits => f.write_str("limits"),
            Self::Listen => f.write_str("listen"),
            Self::Mount(name) => write!(f, "mount {name}"),
            Self::Names => f.write_str("names"),
            Self::Pins => f.write_str("pins"),
            Self::Policy => f.write_str("policy"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::ProfileOrder => f.write_str("profiles: order"),
            Self::Participant(name) => write!(f, "participant {name}"),
            Self::Registry => f.write_str("registry"),
            Self::Room(name) => write!(f, "room {name}"),
            Self::Rooms => f.write_str("rooms"),
            Self::Shut => f.write_str("callers without a credential"),
            Self::Resource => f.write_str("resource"),
            Self::Telemetry => f.write_str("telemetry"),
            Self::Audit => f.write_str("audit"),
            Self::Tls => f.write_str("tls"),
            Self::Token(name) => write!(f, "token {name}"),
        }
    }
}

fn compare<K: Ord + Clone, V>(
    changes: &mut Vec<Change>,
    old: &BTreeMap<K, &V>,
    new: &BTreeMap<K, &V>,
    subject: fn(K) -> Subject,
    fields: fn(&V, &V) -> Vec<&'static str>,
) {
    let mut names: Vec<&K> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let subject = subject(name.clone());
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => changes.extend(changed(subject, fields(old, new))),
            (Some(_), None) => changes.push(Change { subject, kind: Kind::Removed }),
            (None, _) => changes.push(Change { subject, kind: Kind::Added }),
        }
    }
}

fn changed(subject: Subject, keys: Vec<&'static str>) -> Option<Change> {
    (!keys.is_empty()).then_some(Change { subject, kind: Kind::Changed(keys) })
}

fn by<'a, K: Ord, V: 'a + Borrow<T>, T: 'a>(all: impl IntoIterator<Item = &'a V>, name: fn(&T) -> K) -> BTreeMap<K, &'a T> {
    all.into_iter().map(Borrow::borrow).map(|one| (name(one), one)).collect()
}

fn named<K, V>(all: &BTreeMap<K, V>, name: impl Fn(&K) -> String) -> BTreeMap<String, &V> {
    all.iter().map(|(key, value)| (name(key), value)).collect()
}

fn mount_name(mount: &Mount) -> Segment {
    mount.name.clone()
}

fn profile_name(profile: &Profile) -> Arc<str> {
    profile.name.clone()
}

fn token_name(token: &Token) -> Arc<str> {
    token.name.clone()
}

fn issuer_name(issuer: &Issuer) -> Arc<str> {
    issuer.name.clone()
}

fn budget_name(budget: &Budget) -> Arc<str> {
    budget.name.clone()
}

fn group_name(group: &Group) -> Arc<str> {
    group.name.clone()
}

fn authority_name(authority: &AuthorityKeys) -> Arc<str> {
    authority.name.clone()
}

fn reordered(old: &[Arc<Profile>], new: &[Arc<Profile>]) -> bool {
    let shared = |these: &[Arc<Profile>], those: &[Arc<Profile>]| -> Vec<Arc<str>> {
        let kept = |profile: &&Arc<Profile>| those.iter().any(|other| other.name == profile.name);
        these.iter().filter(kept).map(|profile| profile.name.clone()).collect()
    };
    shared(old, new) != shared(new, old)
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
        assert_eq!(lines, ["~ registry: insecure (insecure and tls hold for registrations from now on)"]);
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
