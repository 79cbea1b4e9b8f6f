//! `banyan stdio`: clients that start a process, and the gate they share. The gate's treatment of a call is not tried here.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::serving::Gate;

/// A server with a tool that answers, and a tool that never does.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9a-z"-]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"hello","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"hello"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"hello"}],"x":1e2}}\n' "$id" ;;
    *'"hang"'*) echo hanging >> hung ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// Makes a home with that server, and `more` in its configuration.
fn home(more: &str) -> Home {
    let home = Home::new();
    let server = home.write("server.sh", SERVER);
    let mount = format!("[mount.shell]\ncommand = 'sh'\nargs = ['{}']\ncwd = '{}'\n", server.display(), home.path().display());
    home.write("banyan.toml", &format!("listen = '127.0.0.1:0'\n{more}{mount}"));
    home
}

/// A client of `banyan stdio` in the initialize era.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Client {
    /// Starts `banyan stdio`, and says nothing yet.
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&[&["stdio"], arguments].concat());
        let log = std::fs::OpenOptions::new().append(true).create(true).open(home.path().join("stderr")).expect("a file");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().expect("the binary runs");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output, seen: Vec::new() }
    }

    /// Starts a client with an open session.
    fn open(home: &Home) -> Self {
        let mut client = Self::start(home, &["--config", "banyan.toml"]);
        let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        assert_eq!(client.ask("begin", "initialize", &about)["result"]["serverInfo"]["name"], "banyan");
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("it still speaks"), "{message}").expect("the pipe is open");
    }

    fn request(&mut self, id: &str, method: &str, params: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// Waits for a message accepted by `is`; earlier messages are kept in `seen`.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a line") > 0, "it ended; before: {:?}", self.seen);
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            if is(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    fn answer(&mut self, id: &str) -> Value {
        self.until(|message| message["id"] == id)
    }

    fn ask(&mut self, id: &str, method: &str, params: &Value) -> Value {
        self.request(id, method, params);
        self.answer(id)
    }

    fn hello(&mut self, id: &str) -> Value {
        self.ask(id, "tools/call", &json!({ "name": "shell__hello", "arguments": {} }))
    }

    /// Says nothing more; the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        while self.output.read_line(&mut String::new()).expect("a line") > 0 {}
        self.child.wait().expect("it ends").code()
    }
}

fn pid(home: &Home) -> u64 {
    home.run(&["status", "--json"]).exits(0).json()["pid"].as_u64().expect("a process")
}

/// Waits until `holds`.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Enrols a key and gives its file.
fn enrolled(home: &Home) -> String {
    let key = home.path().join("key").display().to_string();
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status().expect("ssh-keygen runs");
    assert!(made.success());
    home.run(&["operator", "enroll", "anna", "--key", &format!("{key}.pub")]).exits(0);
    key
}

/// Waits for the id of a waiting call.
fn waiting(home: &Home) -> String {
    let pending = || home.run(&["approvals", "--json"]).exits(0).json()["approvals"][0]["id"].as_str().map(str::to_owned);
    eventually("nothing waits", || pending().is_some());
    pending().expect("it waits")
}

const GATED: &str = "[gate]\nmode = 'irreversible'\nexpires = '60s'\n";

#[test]
fn ux1_a_held_call_over_stdio_is_approved_by_command_and_goes_through() {
    let home = home(GATED);
    let mut client = Client::open(&home);
    let key = enrolled(&home);
    let params = json!({ "name": "shell__hello", "arguments": {}, "_meta": { "progressToken": "p" } });
    client.request("held", "tools/call", &params);
    let id = waiting(&home);
    let approved = home.run(&["approve", &id, "--key", &key, "--yes"]).exits(0).out;
    assert_eq!(approved, "approved: its caller waits, and the call goes out now, once\n");
    assert_eq!(client.answer("held")["result"]["content"][0]["text"], "hello");

    let held = client.hello("again");
    assert!(held["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("banyan approve")), "{held}");
    let approved = home.run(&["approve", &waiting(&home), "--key", &key, "--yes"]).exits(0).out;
    assert!(approved.starts_with("approved: the call goes out once, when its caller makes it again within "), "{approved}");
    assert_eq!(client.hello("returned")["result"]["content"][0]["text"], "hello");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn ux1_calls_over_stdio_stand_in_the_one_record_and_arrive_byte_for_byte() {
    let home = home("");
    let mut client = Client::open(&home);
    client.request("raw", "tools/call", &json!({ "name": "shell__hello", "arguments": {} }));
    let mut line = String::new();
    while !line.contains("\"raw\"") {
        line.clear();
        client.output.read_line(&mut line).expect("a line");
    }
    assert!(line.contains("\"x\":1e2"), "{line}");
    home.run(&["call", "shell.hello"]).exits(0);
    eventually("both calls stand in the record", || {
        let told = home.run(&["audit", "list", "--json"]).exits(0).json();
        let entries = told["entries"].as_array().expect("entries");
        entries.iter().filter(|entry| entry["principal"] == "local" && entry["route"] == "shell.hello").count() == 2
    });
    assert_eq!(client.end(), Some(0));
}

#[test]
fn ux1_clients_over_stdio_share_one_budget() {
    let home = home("[budget.all]\nprincipals = ['*']\nmax_calls_per_minute = 3\n");
    let (mut one, mut other) = (Client::open(&home), Client::open(&home));
    for id in ["1", "2"] {
        assert_eq!(one.hello(id)["result"]["content"][0]["text"], "hello");
    }
    assert_eq!(other.hello("3")["result"]["content"][0]["text"], "hello");
    assert_eq!(other.hello("4")["error"]["data"]["reason"], "budget_exceeded");
    assert_eq!((one.end(), other.end()), (Some(0), Some(0)));
}

#[test]
fn ux1_two_bridges_at_once_start_one_gate_that_ends_after_them() {
    let home = home("");
    let mut clients: Vec<Client> = (0..3).map(|_| Client::start(&home, &["--config", "banyan.toml"])).collect();
    for client in &mut clients {
        assert!(client.ask("1", "ping", &json!({})).get("error").is_some(), "no session is open");
    }
    // `status` fails where there are several.
    let gate = pid(&home);
    assert_eq!(home.read("stderr").matches(&format!("process {gate}:")).count(), 3, "{}", home.read("stderr"));
    clients.into_iter().for_each(|client| assert_eq!(client.end(), Some(0)));
    eventually("the gate goes on without clients", || home.run(&["status"]).code == 3);
    assert_eq!(home.read("stderr").matches("started the gate").count(), 1, "{}", home.read("stderr"));
}

#[test]
fn ux1_a_killed_gate_is_told_to_the_client_and_later_calls_go_through() {
    let home = home("");
    let mut client = Client::open(&home);
    client.hello("before");
    client.request("in flight", "tools/call", &json!({ "name": "shell__hang", "arguments": {} }));
    eventually("the call does not arrive", || home.path().join("hung").exists());
    let before = pid(&home);
    assert!(Command::new("kill").args(["-KILL", &before.to_string()]).status().expect("kill runs").success());
    let lost = client.answer("in flight");
    assert_eq!((&lost["error"]["code"], &lost["error"]["data"]["reason"]), (&json!(-32004), &json!("outcome_unknown")), "{lost}");
    assert_eq!(client.hello("after")["result"]["content"][0]["text"], "hello");
    assert!(client.seen.iter().any(|message| message["method"] == "notifications/tools/list_changed"), "{:?}", client.seen);
    assert_ne!(pid(&home), before);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn ux1_a_gate_that_a_person_starts_takes_the_clients_over() {
    let home = home("");
    let mut client = Client::open(&home);
    let before = pid(&home);
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let now = pid(&home);
    assert_ne!(now, before);
    assert_eq!(client.hello("after")["result"]["content"][0]["text"], "hello");
    assert_eq!(client.end(), Some(0));
    assert_eq!(pid(&home), now, "it stays");
    assert!(gate.end().exits(0).err.contains(&format!("process {before} ends")));
}

#[test]
fn ux1_a_running_gate_is_used_however_its_configuration_is_spelt() {
    let home = home("");
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let link = home.path().join("link.toml");
    std::os::unix::fs::symlink(home.path().join("banyan.toml"), &link).expect("a link");
    let at = gate.first["url"].as_str().expect("a URL").to_owned();
    for arguments in [["--config", "link.toml"], ["--gate", at.as_str()]] {
        let mut client = Client::start(&home, &arguments);
        client.ask("1", "ping", &json!({}));
        assert_eq!(client.end(), Some(0));
    }
    assert!(!home.read("stderr").contains("started the gate"), "{}", home.read("stderr"));
    gate.end().exits(0);
}

#[test]
fn ux1_a_gate_without_a_configuration_is_used_while_it_runs_and_never_started() {
    let home = home("");
    home.write("other.toml", &home.read("banyan.toml"));
    std::fs::remove_file(home.path().join("banyan.toml")).expect("it is there");
    let mut other = Gate::up(&home, &["--config", "other.toml"]);
    other.until("settled");
    assert!(home.run(&["stdio"]).exits(3).err.contains("`banyan up`"), "a gate with a configuration is not meant");
    let mut gate = Gate::up(&home, &["--listen", "127.0.0.1:0"]);
    gate.until("settled");
    let mut client = Client::start(&home, &[]);
    let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert_eq!(client.ask("1", "initialize", &about)["result"]["serverInfo"]["name"], "banyan");
    let tools = client.ask("2", "tools/list", &json!({}))["result"]["tools"].to_string();
    assert!(tools.contains("clock__now") && !tools.contains("shell__hello"), "{tools}");
    assert_eq!(client.end(), Some(0));
    gate.end().exits(0);
    other.end().exits(0);
}

#[test]
fn ux1_a_taken_port_does_not_keep_the_gate_from_a_client() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let home = home("");
    let address = taken.local_addr().expect("an address").to_string();
    home.write("banyan.toml", &home.read("banyan.toml").replace("127.0.0.1:0", &address));
    let mut client = Client::open(&home);
    assert_eq!(client.hello("1")["result"]["content"][0]["text"], "hello");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn ux1_a_gate_with_certificates_and_tokens_serves_its_owner_over_stdio() {
    let home = home("");
    home.run(&["ca", "init", "--name", "gate.example.com"]).exits(0);
    home.run(&["token", "add", "ci"]).exits(0);
    let mut client = Client::open(&home);
    assert!(home.read("stderr").contains("uses the gate at https://"), "{}", home.read("stderr"));
    client.request("last", "tools/call", &json!({ "name": "shell__hello", "arguments": {} }));
    drop(client.input.take());
    assert_eq!(client.answer("last")["result"]["content"][0]["text"], "hello");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn ux1_a_gate_that_can_not_start_is_told_with_its_reason() {
    let home = home("");
    home.write("banyan.toml", &home.read("banyan.toml").replace("127.0.0.1:0", "0.0.0.0:0"));
    let told = home.run(&["stdio", "--config", "banyan.toml"]);
    assert!(told.code != 0 && told.err.contains("banyan token add"), "{told:?}");
    home.write("banyan.toml", "listen = '127.0.0.1:0'\n[mount.a]\ncomand = 'x'\n");
    assert!(home.run(&["stdio", "--config", "banyan.toml"]).exits(1).err.contains("did you mean `command`?"));
    home.write("blocked", "");
    let blocked = home.command(&["stdio", "--config", "banyan.toml"]).env("XDG_RUNTIME_DIR", home.path().join("blocked")).output();
    let blocked = Ran::of(blocked.expect("the binary runs"));
    assert!(blocked.code == 1 && blocked.err.contains("XDG_RUNTIME_DIR"), "{blocked:?}");
}

#[test]
fn ux4_a_call_by_command_waits_for_its_approval_and_says_how_to_give_it() {
    let home = home(GATED);
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let key = enrolled(&home);
    let left = home.run(&["call", "shell.hello"]).exits(4);
    assert!(left.err.contains("`banyan approve ") && left.err.contains("`--wait`"), "{left:?}");
    let calling = home.command(&["call", "shell.hello", "--wait"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let calling = calling.expect("the binary runs");
    let attended = || home.run(&["approvals", "--json"]).exits(0).json()["approvals"][0]["attended"] == true;
    eventually("nobody waits", attended);
    home.run(&["approve", &waiting(&home), "--key", &key, "--yes"]).exits(0);
    let waited = Ran::of(calling.wait_with_output().expect("it ends")).exits(0);
    assert_eq!(waited.out, "hello\n");
    assert!(waited.err.contains("waits for a person"), "{waited:?}");
    gate.end().exits(0);
}

#[test]
fn ux42_the_reason_of_a_denial_reaches_the_command_line() {
    let home = home(GATED);
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    enrolled(&home);
    home.run(&["call", "shell.hello"]).exits(4);
    home.run(&["deny", &waiting(&home), "--reason", "not today, freeze"]).exits(0);
    let denied = home.run(&["call", "shell.hello"]).exits(1);
    assert!(denied.err.contains("the reason given: not today, freeze"), "{denied:?}");
    gate.end().exits(0);
}

#[test]
fn ux41_the_owner_hears_by_which_rule_a_call_is_refused() {
    let home = home("");
    home.write("banyan.toml", &home.read("banyan.toml").replace("[mount", "[policy]\nfile = 'policy.cedar'\n[mount"));
    home.write("policy.cedar", "permit (principal, action, resource);\n@id(\"no-hello\")\n@remedy(\"ask anna\")\nforbid (principal, action == Action::\"call\", resource);\n");
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let refused = home.run(&["call", "shell.hello"]);
    assert!(refused.code != 0 && refused.err.contains("by the rule `no-hello` (line 2): ask anna"), "{refused:?}");
    gate.end().exits(0);
}
