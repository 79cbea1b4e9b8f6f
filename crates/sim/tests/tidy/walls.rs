//! A crate exists to forbid a dependency: libraries that few crates may need, and code that may not know which store it has. Does not look at
//! tests.

use crate::metadata::Graph;
use crate::tree::sources;

/// Packages that only these crates may need, outside of tests.
const CONFINED: &[(&str, &[&str])] = &[
    ("disk", &["gateway", "banyan"]),
    ("jsonwebtoken", &["policy", "trust"]),
    ("rmcp", &["mcp", "rmcp-peer"]),
    ("rusqlite", &["disk"]),
    ("x509-parser", &["trust"]),
];

/// Packages that the store traits never reach: databases, files, networks.
const NO_STORE: &[&str] = &["async-nats", "config", "disk", "hyper", "notify", "runtime", "rusqlite"];

/// Folders whose code names the store traits and no implementation.
const BY_TRAIT: &[&str] = &["/approvals/", "/call/", "/pins/", "/registry/"];

#[test]
fn a_confined_library_is_needed_by_no_other_crate() {
    let graph = Graph::load();
    for (name, allowed) in CONFINED {
        let users = graph.members().filter(|member| member.dependencies.iter().any(|id| graph.package(id).name == *name));
        let users: Vec<&str> = users.map(|member| member.name.as_str()).collect();
        assert!(!users.is_empty(), "nobody needs `{name}`: take it out of CONFINED");
        for user in users {
            assert!(allowed.contains(&user), "`{user}` must not need `{name}`: only {allowed:?} may");
        }
    }
}

#[test]
fn the_store_traits_reach_no_store() {
    let graph = Graph::load();
    let store = graph.members().find(|member| member.name == "store").expect("the traits are a crate");
    for reached in graph.reach(store) {
        assert!(!NO_STORE.contains(&reached.name.as_str()), "`store` reaches `{}`", reached.name);
    }
}

#[test]
fn calls_registrations_and_approvals_name_no_implementation() {
    let all = sources(&[".rs"]);
    let bound: Vec<_> = all.iter().filter(|file| !file.is_test() && BY_TRAIT.iter().any(|folder| file.path.contains(folder))).collect();
    assert!(bound.iter().any(|file| file.production().contains("store::")), "some of them name the traits");
    for file in bound.iter().filter(|file| file.path.starts_with("crates/") && !file.path.starts_with("crates/banyan/")) {
        assert!(!file.production().contains("disk::"), "{}: name the trait of `store`, and let `gateway` choose", file.path);
    }
}
