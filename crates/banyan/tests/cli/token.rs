//! `banyan token`: what it writes into `banyan.toml`, what it never writes, and from when on gates hold to it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

const FILE: &str = "# ours\nlisten = \"127.0.0.1:7000\" # behind the proxy\n";

#[test]
fn a_token_is_shown_once_and_only_its_hash_is_kept() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let token = home.run(&["token", "add", "ci"]).exits(0).out.trim().to_owned();
    assert!(token.starts_with("banyan_") && token.len() == 71, "{token}");
    let text = home.read("banyan.toml");
    assert!(text.starts_with(FILE), "comments and order stay: {text}");
    assert!(text.contains("[[token]]\nname = \"ci\"\nsha256 = \"") && !text.contains(&token), "{text}");
    assert_eq!(home.run(&["token", "list"]).exits(0).out, "ci\n");

    assert!(home.run(&["token", "rm", "ci"]).exits(0).err.contains("no token is left: whoever reaches the gate may call it"));
    assert_eq!(home.read("banyan.toml"), FILE);
    assert_eq!(home.run(&["token", "list", "--json"]).exits(0).json(), serde_json::json!({ "tokens": [] }));
}

#[test]
fn a_name_is_taken_once_and_a_wrong_one_is_guessed() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let added = home.run(&["token", "add", "laptop", "--json"]).exits(0).json();
    assert_eq!(added["name"], "laptop");
    assert!(home.run(&["token", "add", "laptop"]).exits(4).err.contains("banyan token rm laptop"));
    assert!(home.run(&["token", "rm", "latpop"]).exits(3).err.contains("did you mean `laptop`?"));
}

#[test]
fn the_file_keeps_its_permissions() {
    let home = Home::new();
    let path = home.write("banyan.toml", FILE);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a mode");
    home.run(&["token", "add", "ci"]).exits(0);
    assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
}

#[test]
fn without_a_configuration_there_is_nowhere_to_keep_a_token() {
    assert!(Home::new().run(&["token", "add", "ci"]).exits(3).err.contains("banyan import --write"));
}

/// What a gate answers to a request with this token: the status.
fn status(gate: &Gate, token: &str) -> u16 {
    let address = gate.first["url"].as_str().expect("an address").trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut stream = TcpStream::connect(&address).expect("a connection");
    let head = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a request");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    std::str::from_utf8(&answer[9..]).expect("digits").parse().expect("a status")
}

#[test]
fn a_token_that_was_removed_is_refused_by_every_gate_of_its_file_when_the_command_returns() {
    let home = home_with_server();
    home.run(&["token", "add", "other"]).exits(0);
    let gates = [Gate::up(&home, &[]), Gate::up(&home, &[])];
    for _ in 0..5 {
        let token = home.run(&["token", "add", "ci"]).exits(0).out.trim().to_owned();
        assert!(gates.iter().all(|gate| status(gate, &token) != 401), "it is taken at once");
        home.run(&["token", "rm", "ci"]).exits(0);
        assert!(gates.iter().all(|gate| status(gate, &token) == 401), "and refused at once");
    }
    let token = home.run(&["token", "add", "ci"]).exits(0).out.trim().to_owned();
    home.write("banyan.toml", &format!("bogus = 1\n{}", home.read("banyan.toml")));
    let told = home.run(&["token", "rm", "ci"]).exits(1).err;
    assert!(told.contains("goes on with what it had") && told.contains("bogus"), "{told}");
    assert_ne!(status(&gates[0], &token), 401, "a bad file changes nothing, and that is what was said");
    gates.into_iter().for_each(|gate| drop(gate.end()));
}
