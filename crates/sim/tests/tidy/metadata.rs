//! `cargo metadata`, cut down to the needs of the checks. Does not judge.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::tree::root;

/// A package of the dependency graph.
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// `None` for the packages of this workspace.
    pub(crate) source: Option<String>,
    /// Ids of packages needed to build and run.
    pub(crate) dependencies: Vec<String>,
    /// Ids of further packages needed by tests.
    pub(crate) dev_dependencies: Vec<String>,
}

/// The resolved graph of the platform that runs the test.
pub(crate) struct Graph {
    packages: BTreeMap<String, Package>,
}

impl Graph {
    /// Runs `cargo metadata`.
    pub(crate) fn load() -> Self {
        let cargo = cargo();
        let host = run(Command::new(&cargo).args(["-vV"]));
        let host = host.lines().find_map(|l| l.strip_prefix("host: ")).expect("cargo -vV names the host");
        let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
        let text = run(Command::new(&cargo).args(arguments).current_dir(root()));
        let whole: Value = serde_json::from_str(&text).expect("cargo metadata prints JSON");
        let nodes = whole["resolve"]["nodes"].as_array().expect("nodes");
        let about: BTreeMap<&str, &Value> =
            whole["packages"].as_array().expect("packages").iter().map(|p| (p["id"].as_str().unwrap_or_default(), p)).collect();
        let packages = nodes.iter().map(|n| package(n, &about)).map(|p| (p.id.clone(), p)).collect();
        Self { packages }
    }

    /// Every package, dependencies included.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    /// Lists the packages of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages().filter(|p| p.source.is_none())
    }

    /// Finds a package by id.
    pub(crate) fn package(&self, id: &str) -> &Package {
        &self.packages[id]
    }

    /// Everything that `from` needs to be built and run, at any depth, without itself.
    pub(crate) fn reach(&self, from: &Package) -> Vec<&Package> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = from.dependencies.iter().collect();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(&self.packages[id].dependencies);
            }
        }
        seen.into_iter().map(|id| self.package(id)).collect()
    }
}

/// Draws the users of the package `name` as a tree; empty without users. The lock file and `cargo metadata` also hold packages of
/// optional features, `cargo tree` only built ones.
pub(crate) fn users(name: &str) -> String {
    let arguments = ["tree", "--locked", "--workspace", "--edges", "normal,build", "--invert", name];
    run(Command::new(cargo()).args(arguments).current_dir(root()))
}

fn package(node: &Value, about: &BTreeMap<&str, &Value>) -> Package {
    let text = |v: &Value| v.as_str().map(str::to_owned);
    let id = text(&node["id"]).expect("a node has an id");
    let about = about[id.as_str()];
    let of_kind = |dev: bool| {
        let dependencies = node["deps"].as_array().into_iter().flatten();
        let wanted = move |d: &&Value| {
            let mut kinds = d["dep_kinds"].as_array().into_iter().flatten();
            if dev { kinds.all(|k| k["kind"] == "dev") } else { kinds.any(|k| k["kind"] != "dev") }
        };
        dependencies.filter(wanted).filter_map(|d| d["pkg"].as_str().map(str::to_owned)).collect()
    };
    Package {
        name: text(&about["name"]).expect("a package has a name"),
        version: text(&about["version"]).expect("a package has a version"),
        license: text(&about["license"]),
        source: text(&about["source"]),
        dependencies: of_kind(false),
        dev_dependencies: of_kind(true),
        id,
    }
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}
