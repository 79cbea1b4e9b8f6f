//! Differences of views, and of their order. Shows no tool.

use std::sync::Arc;

use crate::diff::{self, Change, differing};
use crate::resolved::{Config, Profile};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes: Vec<Change> = diff::value("names", old.names != new.names).into_iter().collect();
    changes.extend(diff::named("profile", by_name(old), by_name(new), profile_fields));
    changes.extend(diff::value("profiles: order", reordered(&old.profiles, &new.profiles)));
    changes
}

fn by_name(config: &Config) -> impl Iterator<Item = (&str, &Profile)> {
    config.profiles.iter().map(|profile| (&*profile.name, &**profile))
}

fn profile_fields(old: &Profile, new: &Profile) -> Vec<&'static str> {
    let Profile { name: _, clients, include, exclude, rename, names, search, annotations } = old;
    differing([
        ("clients", *clients != new.clients),
        ("include", *include != new.include),
        ("exclude", *exclude != new.exclude),
        ("rename", *rename != new.rename),
        ("names", *names != new.names),
        ("search", *search != new.search),
        ("annotations", *annotations != new.annotations),
    ])
}

fn reordered(old: &[Arc<Profile>], new: &[Arc<Profile>]) -> bool {
    let shared = |these: &[Arc<Profile>], those: &[Arc<Profile>]| -> Vec<Arc<str>> {
        let kept = |profile: &&Arc<Profile>| those.iter().any(|other| other.name == profile.name);
        these.iter().filter(kept).map(|profile| profile.name.clone()).collect()
    };
    shared(old, new) != shared(new, old)
}
