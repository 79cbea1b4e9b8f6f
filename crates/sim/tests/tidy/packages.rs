//! Dependencies: their origin, their licences, and their versions. The lists are those of `deny.toml`, so that
//! `cargo deny` and this test never disagree. Does not know advisories: their database is not at hand in a test.

use std::collections::{BTreeMap, BTreeSet};

use crate::licences::allowed;
use crate::metadata::{Graph, users};
use crate::tree::read;

fn deny() -> toml::Table {
    read("deny.toml").parse().expect("deny.toml is TOML")
}

fn texts(value: &toml::Value) -> BTreeSet<&str> {
    value.as_array().into_iter().flatten().filter_map(|v| v.get("crate").unwrap_or(v).as_str()).collect()
}

#[test]
fn every_licence_is_on_the_list() {
    let deny = deny();
    let list = texts(&deny["licenses"]["allow"]);
    for package in Graph::load().packages() {
        let expression = package.license.as_deref().unwrap_or("none given");
        assert!(allowed(expression, &list), "{} {}: licence `{expression}` is not on the list of deny.toml", package.name, package.version);
    }
}

/// Packages that only build and test the console are not shipped, and may have any licence that permits their use.
#[test]
fn what_the_console_ships_has_a_licence_on_the_list_and_a_digest() {
    let deny = deny();
    let list = texts(&deny["licenses"]["allow"]);
    let lock: serde_json::Value = serde_json::from_str(&read("console/package-lock.json")).expect("package-lock.json is JSON");
    let packages = lock["packages"].as_object().expect("packages");
    let mut shipped = 0;
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        assert!(package["integrity"].is_string(), "{path} has no digest");
        let from = package["resolved"].as_str().unwrap_or("https://registry.npmjs.org/");
        assert!(from.starts_with("https://registry.npmjs.org/"), "{path} comes from {from}");
        if package["dev"] != true {
            shipped += 1;
            let expression = package["license"].as_str().unwrap_or("none given");
            assert!(allowed(expression, &list), "{path}: licence `{expression}` is not on the list of deny.toml");
        }
    }
    assert!(shipped > 0, "the console ships nothing of others?");
}

#[test]
fn everything_comes_from_the_registry() {
    let deny = deny();
    let registries = texts(&deny["sources"]["allow-registry"]);
    for package in Graph::load().packages() {
        let Some(source) = &package.source else {
            continue;
        };
        let from = source.strip_prefix("registry+").unwrap_or(source);
        assert!(registries.contains(from), "{} {} comes from {source}", package.name, package.version);
    }
}

#[test]
fn two_versions_of_a_package_have_a_reason() {
    let deny = deny();
    let skip = texts(&deny["bans"]["skip"]);
    let graph = Graph::load();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in graph.packages() {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, v| v.len() > 1);
    let unexplained: Vec<_> = versions.iter().filter(|(name, _)| !skip.contains(*name)).collect();
    assert!(unexplained.is_empty(), "use the version that is there, or give the reason in deny.toml: {unexplained:?}");
    let gone: Vec<_> = skip.iter().filter(|name| !versions.contains_key(*name)).collect();
    assert!(gone.is_empty(), "deny.toml excuses what no longer happens: {gone:?}");
}

#[test]
fn banned_packages_are_absent() {
    let deny = deny();
    let locked = read("Cargo.lock");
    for banned in texts(&deny["bans"]["deny"]) {
        if locked.contains(&format!("\nname = \"{banned}\"\n")) {
            let users = users(banned);
            assert!(users.is_empty(), "{banned} is banned in deny.toml, and used:\n{users}");
        }
    }
}
