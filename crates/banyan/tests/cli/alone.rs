//! The binary with nothing at hand: the demonstration, and a client on standard input. What the demonstration servers do is not tried here.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

#[test]
fn the_first_command_on_an_empty_machine_shows_something_alive() {
    let home = Home::new();
    let since = Instant::now();
    let mut gate = Gate::up(&home, &["--listen", "127.0.0.1:0"]);
    assert!(since.elapsed() < Duration::from_secs(2), "the address was printed after {:?}", since.elapsed());
    assert!(gate.first["serves"].as_str().is_some_and(|s| s.contains("demonstration")));
    let settled = gate.until("settled");
    assert_eq!((&settled["ready"], &settled["servers"]), (&3.into(), &3.into()));
    let tree = home.run(&["tree", "--json"]).exits(0).json();
    let names: Vec<&str> = tree["mounts"].as_array().expect("mounts").iter().filter_map(|m| m["name"].as_str()).collect();
    assert_eq!(names, ["clock", "notes", "system"]);
    // These servers speak the stateless era, in which every call says who calls.
    let ran = home.run(&["call", "clock.now", "zone=UTC", "--json"]).exits(0);
    assert!(ran.json()["content"][0]["text"].as_str().is_some_and(|t| t.contains("UTC")), "{ran:?}");
    gate.end().exits(0);
}

#[test]
fn a_client_that_starts_a_process_gets_the_tree_and_nothing_else_on_its_pipe() {
    let home = home_with_server();
    let mut child =
        home.command(&["stdio", "--config", "banyan.toml"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").expect("the pipe is open");
        let answer = |line: std::io::Result<String>| -> Value { serde_json::from_str(&line.expect("a line")).expect("only messages") };
        lines.by_ref().map(answer).find(|m| m["id"] == message["id"]).expect("an answer")
    };
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert_eq!(
        ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }))["result"]["serverInfo"]["name"],
        "banyan"
    );
    let tools = ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    assert_eq!(tools["result"]["tools"][0]["name"], "shell__sayHello");
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "shell__sayHello", "arguments": {} } });
    assert_eq!(ask(call)["result"]["content"][0]["text"], "hello");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_client_does_not_start_what_lies_in_its_working_directory() {
    let home = home_with_server();
    assert!(home.run(&["stdio"]).exits(3).err.contains("--config FILE"));
}
