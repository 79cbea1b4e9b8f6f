//! The shapes of `--json` output, held as a golden file: members and their types, no values. A change here is a change of what
//! scripts rely on: members may be added, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::home::Home;
use crate::room::Seat;
use crate::serving::{Gate, home_with_server};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/golden/shapes.json");

/// Write the file anew with `BANYAN_UPDATE_GOLDEN=1 cargo test -p banyan shapes`.
#[test]
fn the_shapes_are_those_of_the_golden_file() {
    let seen: BTreeMap<String, Value> = asking_a_gate().into_iter().chain(without_a_gate()).collect();
    let made = format!("{:#}\n", json!(seen));
    if std::env::var_os("BANYAN_UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &made).expect("the golden file");
    }
    let golden: BTreeMap<String, Value> =
        std::fs::read_to_string(GOLDEN).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let names: BTreeSet<&String> = golden.keys().chain(seen.keys()).collect();
    let differ: Vec<_> = names.into_iter().filter(|name| golden.get(*name) != seen.get(*name)).map(|name| (name, seen.get(name))).collect();
    assert!(differ.is_empty(), "tests/cli/golden/shapes.json differs: run with BANYAN_UPDATE_GOLDEN=1 and look at the change: {differ:?}");
}

#[test]
fn every_member_stands_in_the_documentation() {
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(GOLDEN).expect("the golden file")).expect("JSON");
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).expect("the page");
    let words: BTreeSet<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let missing: Vec<String> = members(&golden).into_iter().filter(|m| !words.contains(m.as_str())).collect();
    assert!(missing.is_empty(), "docs/cli.md does not name {missing:?}");
}

fn asking_a_gate() -> Vec<(String, Value)> {
    let home = home_with_server();
    let failing = "[mount.failing]\ncommand = 'sh'\nargs = ['-c', 'exit 3']\n";
    home.write("banyan.toml", &format!("{}{failing}[room.ops]\n", home.read("banyan.toml")));
    let mut gate = Gate::up(&home, &[]);
    let mut shapes = vec![("up: listening".to_owned(), shape(&gate.first))];
    shapes.push(("up: server".to_owned(), merged(shape(&gate.until("server")), shape(&gate.until("server")))));
    shapes.push(("up: settled".to_owned(), shape(&gate.until("settled"))));
    for words in [&["status"][..], &["tools"], &["names"], &["tree"], &["doctor"]] {
        shapes.push((words[0].to_owned(), shape(&serde_json::from_str(&home.run(&[words, &["--json"]].concat()).out).expect("JSON"))));
    }
    home.run(&["call", "shell.say_hello"]).exits(0);
    shapes.push(("top".to_owned(), shape(&home.run(&["top", "--json"]).exits(0).json())));
    shapes.push(("trace".to_owned(), shape(&home.run(&["trace", "shell.fail", "--json"]).exits(0).json())));
    shapes.extend(rooms(&home));
    shapes.push(("console".to_owned(), shape(&home.run(&["console", "--print", "--json"]).exits(0).json())));
    shapes.push(("logs".to_owned(), shape(&home.run(&["logs", "shell", "--json"]).exits(0).json())));
    let good = home.read("banyan.toml");
    home.write("banyan.toml", "agrs = 1");
    shapes.push(("up: kept".to_owned(), shape(&gate.until("kept"))));
    home.write("banyan.toml", &format!("{good}[mount.more]\ncommand = 'cat'\n"));
    shapes.push(("up: reloaded".to_owned(), shape(&gate.until("reloaded"))));
    shapes.push(("reload".to_owned(), shape(&home.run(&["reload", "--json"]).exits(0).json())));
    shapes.push(("audit verify".to_owned(), shape(&home.run(&["audit", "verify", "--json"]).exits(0).json())));
    shapes.push(("audit checkpoint".to_owned(), shape(&home.run(&["audit", "checkpoint", "--json"]).exits(0).json())));
    shapes.push(("stop".to_owned(), shape(&home.run(&["stop", "--json"]).exits(0).json())));
    shapes.push(("up: stopping".to_owned(), shape(&gate.until("stopping"))));
    gate.wait().exits(0);
    shapes
}

/// Collects the shapes of rooms, with a participant in one.
fn rooms(home: &Home) -> Vec<(String, Value)> {
    let mut alice = Seat::take(home, &["--as", "alice", "--json"]);
    alice.message("system/welcome");
    let seen = [("room list", &["room", "list"][..]), ("room list ROOM", &["room", "list", "ops"])];
    let seen = seen.map(|(name, words)| (name.to_owned(), shape(&home.run(&[words, &["--json"]].concat()).exits(0).json())));
    alice.ends().exits(0);
    seen.into()
}

fn without_a_gate() -> Vec<(String, Value)> {
    let home = Home::new();
    let server = json!({ "command": "sh", "env": { "API_TOKEN": "x" }, "surprise": 1 });
    home.write(".cursor/mcp.json", &json!({ "mcpServers": { "a": server } }).to_string());
    home.write("bad.toml", "agrs = []\n");
    home.write("hosts.ini", "[edge]\nr1 ansible_user=ops ansible_network_os=frr\nr2 ansible_network_os=frr\n");
    let call = "[[test]]\nprincipal = 'a'\nresource = 'm.t'\nexpect = 'allow'\n";
    home.write("calls.toml", &format!("{call}{call}rules = ['everybody-may']\n"));
    let runs: &[(&str, &[&str], i32)] = &[
        ("policy init", &["policy", "init"], 0),
        ("policy check", &["policy", "check", "policy.cedar"], 0),
        ("policy test", &["policy", "test", "calls.toml", "--rules", "policy.cedar"], 0),
        ("failure", &["status"], 3),
        ("import", &["import", "--write"], 0),
        ("check, fine", &["check"], 0),
        ("check, with problems", &["check", "bad.toml"], 1),
        ("token add", &["token", "add", "ci"], 0),
        ("token list", &["token", "list"], 0),
        ("token rm", &["token", "rm", "ci"], 0),
        ("join", &["join", "https://root.example", "--segment", "edge"], 0),
        ("leave", &["leave", "https://root.example"], 0),
        ("secret list", &["secret", "list"], 0),
        ("connect", &["connect", "cursor", "--yes", "--without-gate", "--config", "new.toml"], 0),
        ("disconnect", &["disconnect", "cursor"], 0),
        ("device import", &["device", "import", "hosts.ini", "--write", "--config", "devices.toml"], 0),
        ("device list", &["device", "list", "--config", "devices.toml"], 0),
        ("man", &["man", "pages"], 0),
    ];
    let shapes = runs.iter().map(|(name, words, code)| {
        let ran = home.run(&[words, &["--json"][..]].concat()).exits(*code);
        ((*name).to_owned(), shape(&if *name == "failure" { ran.failure() } else { ran.json() }))
    });
    shapes.collect()
}

/// Gives members with the types of their values. A list is one element for all; a member missing in some ends with `?`.
fn shape(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(shape).reduce(merged).into_iter().collect()),
        Value::Bool(_) => "boolean".into(),
        Value::Null => "null".into(),
        Value::Number(_) => "number".into(),
        Value::Object(members) => json!(members.iter().map(|(k, v)| (k, shape(v))).collect::<BTreeMap<_, _>>()),
        Value::String(_) => "text".into(),
    }
}

fn merged(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => Value::Array(a.into_iter().chain(b).reduce(merged).into_iter().collect()),
        (Value::Object(a), Value::Object(b)) => Value::Object(merged_members(&a, &b)),
        (Value::String(a), Value::String(b)) if a != b => {
            let kinds: BTreeSet<&str> = a.split(" or ").chain(b.split(" or ")).collect();
            kinds.into_iter().collect::<Vec<_>>().join(" or ").into()
        }
        (a, _) => a,
    }
}

fn merged_members(a: &Map<String, Value>, b: &Map<String, Value>) -> Map<String, Value> {
    let bare = |m: &Map<String, Value>| -> BTreeMap<String, Value> {
        m.iter().map(|(k, v)| (k.trim_end_matches('?').to_owned(), v.clone())).collect()
    };
    let (a_bare, b_bare) = (bare(a), bare(b));
    let names: BTreeSet<&String> = a_bare.keys().chain(b_bare.keys()).collect();
    let member = |name: &String| match (a_bare.get(name), b_bare.get(name)) {
        (Some(x), Some(y)) if a.contains_key(name) && b.contains_key(name) => (name.clone(), merged(x.clone(), y.clone())),
        (Some(x), Some(y)) => (format!("{name}?"), merged(x.clone(), y.clone())),
        (x, y) => (format!("{name}?"), x.or(y).cloned().unwrap_or_default()),
    };
    names.into_iter().map(member).collect()
}

/// The names of all members, at any depth, below the names of the commands.
fn members(shapes: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|v| collect(v, into)),
            Value::Object(members) => members.iter().for_each(|(k, v)| {
                into.insert(k.trim_end_matches('?').to_owned());
                collect(v, into);
            }),
            Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut names = BTreeSet::new();
    shapes.as_object().into_iter().flat_map(Map::values).for_each(|v| collect(v, &mut names));
    names
}

#[test]
fn a_list_stands_for_all_its_elements() {
    let value = json!([{ "a": 1 }, { "a": null, "b": [true] }, { "a": 2 }]);
    assert_eq!(shape(&value), json!([{ "a": "null or number", "b?": ["boolean"] }]));
}
