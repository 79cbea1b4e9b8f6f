//! Dependencies of manifests and their uses in the sources beside them. Looks for the name in the text, no further: a crate
//! linked for its side effects alone is named with `use NAME as _;`.

use std::collections::BTreeSet;

use crate::tree::{Source, read, sources};

fn manifests() -> Vec<(String, toml::Table)> {
    let named = sources(&["/Cargo.toml", "Cargo.toml"]).into_iter().filter(|file| file.name() == "Cargo.toml");
    let parsed = named.map(|file| (file.path.clone(), file.text.parse().unwrap_or_else(|e| panic!("{}: {e}", file.path))));
    parsed.collect()
}

/// Lists the names below `kind`, those for single platforms too.
fn dependencies(manifest: &toml::Table, kind: &str) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten().filter_map(|(_, t)| t.as_table());
    let tables = std::iter::once(manifest).chain(targets).filter_map(|table| table.get(kind)?.as_table());
    tables.flatten().map(|(name, _)| name.clone()).collect()
}

/// Tells if `text` names a crate: by `NAME::` at the beginning of a path, or by `use NAME` alone.
fn names(text: &str, package: &str) -> bool {
    let name = package.replace('-', "_");
    text.match_indices(&name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let alone = before.ends_with("use ") && after.starts_with([';', ' ']);
        begins && (after.starts_with("::") || alone)
    })
}

#[test]
fn every_dependency_is_used() {
    let all = sources(&[".rs"]);
    let mut unused = Vec::new();
    for (path, manifest) in manifests() {
        let dir = path.trim_end_matches("Cargo.toml");
        let beside: Vec<&Source> = all.iter().filter(|file| !dir.is_empty() && file.path.starts_with(dir)).collect();
        let tests_only = |file: &Source| file.path[dir.len()..].starts_with("tests/") || file.name() == "tests.rs";
        for package in dependencies(&manifest, "dependencies") {
            if !beside.iter().any(|file| !tests_only(file) && names(file.production(), &package)) {
                unused.push(format!("{path}: `{package}` (if only tests use it, it belongs under dev-dependencies)"));
            }
        }
        for package in dependencies(&manifest, "dev-dependencies") {
            if !beside.iter().any(|file| names(&file.text, &package)) {
                unused.push(format!("{path}: `{package}`"));
            }
        }
    }
    assert!(unused.is_empty(), "no source file names these dependencies; take them out:\n{}", unused.join("\n"));
}

#[test]
fn every_dependency_of_the_workspace_has_a_member_that_takes_it() {
    let root: toml::Table = read("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let offered = dependencies(root["workspace"].as_table().expect("a workspace"), "dependencies");
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let taken: BTreeSet<String> = manifests().iter().flat_map(|(_, m)| kinds.map(|kind| dependencies(m, kind))).flatten().collect();
    let idle: Vec<_> = offered.difference(&taken).collect();
    assert!(idle.is_empty(), "no crate takes these from the workspace: {idle:?}");
}

#[test]
fn a_name_is_told_from_what_contains_it() {
    assert!(names("use http::Uri;", "http") && names("let x = toml_edit::value(1);", "toml-edit") && names("use ring as _;", "ring"));
    assert!(!names("crate::http::send()", "http") && !names("toml_edit::value(1)", "toml") && !names("// about http", "http"));
}
