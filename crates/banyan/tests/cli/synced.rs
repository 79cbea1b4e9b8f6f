//! The text that takes a file's place is on the disk before it takes the name, and the name afterwards: seen where the binary asks the
//! system.
//! The obedience of a disk can't be seen from here.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

/// A request of a thread to the system.
#[derive(Debug)]
enum Asked {
    /// To bring this file, of so many bytes, to the disk.
    Sync { path: String, size: String },
    /// To give a file of so many bytes the name of another.
    Rename { from: String, to: String, size: String },
}

/// Makes the binary record its requests.
fn watched(home: &mut Home) {
    let seen = home.path().join("seen.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/synced.c");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&seen).arg(source).arg("-ldl").status();
    assert!(made.expect("a C compiler").success());
    home.env = vec![("LD_PRELOAD", seen), ("SYNCED_LOG", home.path().join("asked"))];
}

/// Lists the requests of each thread, in order.
fn asked(home: &Home) -> Vec<Vec<Asked>> {
    let text = home.read("asked");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let threads: BTreeSet<&str> = lines.iter().map(|line| line[1]).collect();
    let of = |thread: &str| lines.iter().filter(|line| line[1] == thread).map(|line| one(home, line)).collect();
    threads.into_iter().map(of).collect()
}

fn one(home: &Home, line: &[&str]) -> Asked {
    let full = |path: &str| home.path().join(path).to_string_lossy().into_owned();
    match *line {
        ["sync", _, size, path, _] => Asked::Sync { path: path.into(), size: size.into() },
        ["rename", _, size, from, to] => Asked::Rename { from: full(from), to: full(to), size: size.into() },
        _ => panic!("{line:?}"),
    }
}

/// Tells if the file is a growing tile, which is made again from the lines.
fn is_made_again(path: &str) -> bool {
    path.contains("/tile/") && path.contains(".p/")
}

/// Lists the files that took a name, and checks that each was whole on the disk before, and its name afterwards.
fn put(home: &Home) -> BTreeSet<String> {
    let mut put = BTreeSet::new();
    for thread in asked(home) {
        for (at, one) in thread.iter().enumerate() {
            let Asked::Rename { from, to, size } = one else { continue };
            if is_made_again(to) {
                continue;
            }
            let is_whole = |one: &Asked| matches!(one, Asked::Sync { path, size: synced } if path == from && synced == size);
            assert!(thread[..at].iter().any(is_whole), "{to} was not brought to the disk before it took its name");
            let dir = Path::new(to).parent().expect("a directory").to_string_lossy();
            let is_named = |one: &&Asked| matches!(one, Asked::Sync { path, .. } if *path == dir);
            assert!(thread.get(at + 1).as_ref().is_some_and(is_named), "the name of {to} was not brought to the disk");
            put.insert(to.clone());
        }
    }
    put
}

#[test]
fn what_takes_the_place_of_a_file_is_on_the_disk_before_and_its_name_afterwards() {
    let mut home = home_with_server();
    home.write(".cursor/mcp.json", r#"{"mcpServers": {}}"#);
    watched(&mut home);
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    home.run(&["call", "shell.say_hello"]).exits(0);
    gate.end();
    home.run(&["connect", "cursor", "--yes", "--without-gate"]).exits(0);
    home.run(&["ca", "init", "--name", "gate.example.com"]).exits(0);
    let put = put(&home);
    for name in ["banyan.toml", ".cursor/mcp.json", ".local/state/banyan/ca/ca.key"] {
        assert!(put.contains(&at(name)), "{name}: {put:#?}");
    }
    assert!(put.iter().any(|path| path.ends_with("/chain-0001/checkpoint")), "{put:#?}");
}

#[test]
fn a_file_that_is_made_is_on_the_disk_and_its_name_too() {
    let mut home = Home::new();
    watched(&mut home);
    home.run(&["ca", "init", "--name", "gate.example.com"]).exits(0);
    let asked: Vec<Asked> = asked(&home).into_iter().flatten().collect();
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let is_synced = |of: &str| asked.iter().any(|one| matches!(one, Asked::Sync { path, .. } if *path == at(of)));
    assert!(is_synced(".config/banyan/banyan.toml") && is_synced(".config/banyan"), "{asked:#?}");
    assert!(is_synced(".local/state/banyan") && is_synced(".local/state/banyan/ca"), "{asked:#?}");
}
