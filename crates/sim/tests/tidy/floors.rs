//! Imports within a crate: its modules stand on each other, and no two need each other. Does not look below the modules at the top of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, sources};

/// Modules at the top of a crate that need each other all the same, by crate. The list may only shrink, and `call` is not on it.
const KNOTS: &[(&str, &[&str])] = &[
    ("audit", &["proof", "tile"]),
    ("banyan", &["arguments", "asked", "bridged", "command", "document", "gate", "handover", "moved", "news", "plan", "serve", "turn"]),
    ("config", &["file", "reading", "resolved", "section", "sections"]),
    ("gateway", &["admin", "console", "gateway"]),
    ("mcp-server", &["connection", "protocol", "request", "server"]),
    ("mesh", &["child", "link", "mesh", "registry"]),
    ("mesh-proto", &["annotation", "json", "message", "refusal"]),
    ("netdev", &["drive", "guard", "site"]),
    (
        "room",
        &[
            "admin",
            "chair",
            "connection",
            "driver",
            "entry",
            "guest",
            "lib",
            "lobby",
            "mounted",
            "part",
            "pass",
            "rules",
            "secrets",
            "socket_door",
            "status",
            "steward",
            "table",
            "token_door",
            "writer",
        ],
    ),
    ("room-proto", &["chain", "participant", "voice"]),
    ("trust", &["lib", "renewal", "sign", "watched"]),
];

/// The floors of `call`, from the ground up.
const FLOORS: [&str; 4] = ["words", "tree", "judge", "way"];

/// Stands for what is defined at the root of a crate.
const ROOT: &str = "lib";

/// Modules of one crate, each with the modules that it names.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn module_of(path: &str) -> Option<(&str, &str)> {
    let (package, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = rest.split(['/', '.']).next()?;
    (!matches!(rest, "main.rs")).then_some((package, module))
}

/// Names that the root of a crate takes from its modules, with these.
fn passed_on(root: &Source) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root.production().split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let path = statement.trim_start_matches("crate::").trim_start_matches("self::");
        let Some((module, rest)) = path.split_once("::") else { continue };
        for name in rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            found.insert(name.to_owned(), module.to_owned());
        }
    }
    found
}

/// Names behind `crate::` in a text, those of `crate::{a, b}` included; comments do not count.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let group = rest.strip_prefix('{');
        let mut depth = 0_usize;
        let mut names = vec![String::new()];
        for c in group.unwrap_or(rest).chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 && group.is_some() => names.push(String::new()),
                _ if depth > 0 => {}
                c if group.is_none() && !(c.is_alphanumeric() || c == '_') => break,
                c => names.last_mut().into_iter().for_each(|name| name.push(c)),
            }
        }
        found.extend(names.iter().filter_map(|name| name.trim().split("::").next()).filter(|name| !name.is_empty()).map(str::to_owned));
    }
    found
}

fn imports(files: &[Source], package: &str) -> Imports {
    let of_package = || files.iter().filter_map(|file| Some((module_of(&file.path)?, file))).filter(|((name, _), _)| *name == package);
    let modules: BTreeSet<&str> = of_package().map(|((_, module), _)| module).collect();
    let root = of_package().find(|((_, module), _)| *module == ROOT).map(|(_, file)| passed_on(file)).unwrap_or_default();
    let mut found = Imports::new();
    for ((_, module), file) in of_package().filter(|(_, file)| !file.is_test()) {
        for name in named(file.production()) {
            let target = match modules.get(&*name) {
                Some(target) => (*target).to_owned(),
                None => root.get(&name).cloned().unwrap_or_else(|| ROOT.to_owned()),
            };
            if target != module {
                found.entry(module.to_owned()).or_default().insert(target);
            }
        }
    }
    found
}

/// Lists the modules that need each other.
fn knotted(imports: &Imports) -> BTreeSet<&str> {
    let reach = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(module) = open.pop() {
            for next in imports.get(&module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    imports.keys().filter(|module| reach(module).contains(*module)).map(String::as_str).collect()
}

#[test]
fn no_two_modules_of_a_crate_need_each_other() {
    let files = sources(&[".rs"]);
    let packages: BTreeSet<&str> = files.iter().filter_map(|file| module_of(&file.path)).map(|(package, _)| package).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let imports = imports(&files, package);
        let (found, known) = (knotted(&imports), KNOTS.iter().find(|(name, _)| *name == package).map_or(&[][..], |(_, known)| known));
        let known: BTreeSet<&str> = known.iter().copied().collect();
        for module in found.difference(&known) {
            wrong.push(format!("{package}: `{module}` needs modules that need it: {:?}", imports[*module]));
        }
        for module in known.difference(&found) {
            wrong.push(format!("{package}: `{module}` is free of knots by now: take it out of KNOTS"));
        }
    }
    assert!(wrong.is_empty(), "let imports within a crate point one way:\n{}", wrong.join("\n"));
}

#[test]
fn the_floors_of_call_stand_on_each_other() {
    let imports = imports(&sources(&[".rs"]), "call");
    let floor = |module: &str| FLOORS.iter().position(|known| *known == module).unwrap_or_else(|| panic!("`{module}` is no floor of call"));
    assert!(imports.len() >= 3, "three floors stand on others");
    for (module, named) in &imports {
        for other in named {
            assert!(floor(other) < floor(module), "call: `{module}` must not name `{other}`, which stands above");
        }
    }
    assert!(KNOTS.iter().all(|(package, _)| *package != "call"));
}

#[test]
fn imports_are_read_from_paths_and_groups() {
    let text = "use crate::{a::b, c, d::{e, f}};\nuse crate::g::h;\n// crate::i\nfn x() { crate::j(1, k) }";
    assert_eq!(named(text), BTreeSet::from(["a", "c", "d", "g", "j"].map(str::to_owned)));
}
