//! `banyan token`: additions to `banyan.toml`, secrets kept out of it, and the time when gates hold to it.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
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

    assert!(home.run(&["token", "rm", "ci"]).exits(0).err.contains("no token is left: every program on this machine may call the gate"));
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
fn a_name_of_other_callers_is_refused_first() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let refused = home.run(&["token", "add", "dns:edge.example.com"]).exits(1);
    assert!(refused.err.contains("can't be named `dns:edge.example.com`") && refused.out.is_empty(), "{}", refused.err);
    assert_eq!(home.read("banyan.toml"), FILE);
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
fn a_first_token_makes_the_configuration() {
    let home = Home::new();
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"web": {"url": "https://h.example/mcp"}}}"#);
    assert!(home.run(&["token", "add", "dns:x"]).exits(1).out.is_empty());
    assert!(!home.path().join(".config/banyan/banyan.toml").exists(), "a refusal makes no file");
    let added = home.run(&["token", "add", "ci"]).exits(0);
    assert!(added.out.starts_with("banyan_") && added.err.contains("The 1 server of your clients' files are not in it"), "{}", added.err);
    assert_eq!(home.run(&["token", "list"]).exits(0).out, "ci\n");
    assert!(Home::new().run(&["token", "rm", "ci"]).exits(3).err.contains("banyan import --write"));
}

/// Gives the status of a gate's answer to a request with this token.
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
    assert!(told.contains("but for credentials that are gone") && told.contains("bogus"), "{told}");
    assert!(gates.iter().all(|gate| status(gate, &token) == 401), "it is void although nothing else of the file is in force");
    gates.into_iter().for_each(|gate| drop(gate.end()));
}

fn is_in(gate: &Gate, token: &str) -> bool {
    !matches!(status(gate, token), 401 | 403)
}

/// Finds an address of this machine on a network.
fn of_a_network() -> IpAddr {
    // Nothing is sent: the system only says from where it would be.
    let probe = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    probe.connect("198.51.100.1:9").expect("this test needs a network interface besides the loopback");
    let own = probe.local_addr().expect("an address").ip();
    assert!(!own.is_loopback() && !own.is_unspecified(), "this test needs a network interface besides the loopback");
    own
}

#[test]
fn h0_the_last_token_of_a_gate_on_a_network_is_not_removed_and_a_file_without_it_opens_nothing() {
    let home = home_with_server();
    let token = home.run(&["token", "add", "ann"]).exits(0).out.trim().to_owned();
    let listen = SocketAddr::new(of_a_network(), 0).to_string();
    let mut gate = Gate::up(&home, &["--listen", &listen]);
    gate.until("settled");
    let before = home.read("banyan.toml");
    let refused = home.run(&["token", "rm", "ann"]).exits(4).err;
    assert!(refused.contains("the last token of a gate that listens on") && refused.contains("banyan token add"), "{refused}");
    assert_eq!((home.read("banyan.toml"), is_in(&gate, &token)), (before.clone(), true));

    // Somebody edits the file by hand.
    home.write("banyan.toml", before.split("[[token]]").next().expect("what stands before the token"));
    let told = gate.until("kept");
    assert!(told["error"].as_str().is_some_and(|error| error.contains("can be reached from other machines")), "{told}");
    assert_eq!(told["revoked"], serde_json::json!(["- token ann"]));
    assert!(!is_in(&gate, "none") && !is_in(&gate, &token));
    let seen = home.run(&["status"]).exits(0).out;
    assert!(seen.contains("not in force") && seen.contains("can be reached from other machines"), "{seen}");
    let found = home.run(&["doctor"]).exits(1).out;
    assert!(found.contains("not in force") && found.contains("banyan token add"), "{found}");

    let next = home.run(&["token", "add", "bob"]).exits(0).out.trim().to_owned();
    assert!(is_in(&gate, &next) && !is_in(&gate, &token));
    home.run(&["token", "add", "eve"]).exits(0);
    home.run(&["token", "rm", "bob"]).exits(0);
    assert!(!is_in(&gate, &next));
    gate.end().exits(0);
}

#[test]
fn the_last_token_stays_in_a_file_that_names_a_network_address_although_no_gate_runs() {
    let home = Home::new();
    let file = format!("listen = \"0.0.0.0:7000\"\n[[token]]\nname = \"ann\"\nsha256 = \"{}\"\n", "0".repeat(64));
    home.write("banyan.toml", &file);
    assert!(home.run(&["token", "rm", "ann"]).exits(4).err.contains("0.0.0.0:7000"));
    assert_eq!(home.read("banyan.toml"), file);
}

#[test]
fn a_removed_token_is_void_although_nothing_else_is_in_the_file() {
    let home = home_with_server();
    home.write("banyan.toml", "");
    home.run(&["token", "add", "ann"]).exits(0);
    let gate = Gate::up(&home, &["--listen", "127.0.0.1:0"]);
    assert!(!is_in(&gate, "none"));
    home.run(&["token", "rm", "ann"]).exits(0);
    assert_eq!(home.run(&["reload"]).exits(0).out, "nothing is different\n");
    assert!(is_in(&gate, "none"), "the gate asks for nothing on this machine");
    gate.end().exits(0);
}
