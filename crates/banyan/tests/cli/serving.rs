//! A running `banyan up` and the commands that ask it. Traffic through the gate is not tried here.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A server in a few lines of shell: two tools, one of which fails, and a word on standard error.
const SERVER: &str = r#"#!/bin/sh
echo "hello from the server" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9a-z"-]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"sayHello","description":"Says hello.","inputSchema":{"type":"object"}},{"name":"fail","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"sayHello"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"hello"}],"x":1e2}}\n' "$id" ;;
    *'"fail"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"out of order"}],"isError":true}}\n' "$id" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// A running gate; ended with SIGTERM.
pub(crate) struct Gate {
    child: Child,
    news: BufReader<ChildStdout>,
    pub(crate) first: Value,
}

impl Gate {
    /// Starts `banyan up --json` with further arguments, and waits for its first line.
    pub(crate) fn up(home: &Home, arguments: &[&str]) -> Self {
        let all = [&["up", "--json"], arguments].concat();
        let mut child = home.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut news = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        news.read_line(&mut line).expect("a line");
        if line.is_empty() {
            panic!("the gate ended at once: {:?}", Ran::of(child.wait_with_output().expect("it has ended")));
        }
        let first = serde_json::from_str(&line).expect("the first line is JSON");
        Self { child, news, first }
    }

    /// Waits for news of this kind.
    pub(crate) fn until(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.news.read_line(&mut line).expect("a line") > 0, "the gate ended before it told of `{event}`");
            let news: Value = serde_json::from_str(&line).expect("news are JSON");
            if news["event"] == event {
                return news;
            }
        }
    }

    /// Ends the gate and gives its outcome.
    pub(crate) fn end(self) -> Ran {
        let pid = self.child.id().to_string();
        let status = std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(status.success());
        self.wait()
    }

    /// Waits for the gate to end by itself.
    pub(crate) fn wait(self) -> Ran {
        Ran::of(self.child.wait_with_output().expect("the gate ends"))
    }
}

/// Makes a home with one server, mounted as `shell`.
pub(crate) fn home_with_server() -> Home {
    let home = Home::new();
    let server = home.write("server.sh", SERVER);
    home.write("banyan.toml", &format!("listen = '127.0.0.1:0'\n[mount.shell]\ncommand = 'sh'\nargs = ['{}']\n", server.display()));
    home
}

#[test]
fn the_first_line_is_the_address_and_the_end_is_clean() {
    let home = home_with_server();
    let mut gate = Gate::up(&home, &[]);
    assert_eq!((&gate.first["event"], &gate.first["servers"]), (&"listening".into(), &1.into()));
    assert!(gate.first["url"].as_str().is_some_and(|u| u.starts_with("http://127.0.0.1:") && u.ends_with("/mcp")));
    assert_eq!(gate.until("server"), json!({ "event": "server", "name": "shell", "state": "ready", "tools": 2 }));
    assert_eq!(gate.until("settled")["ready"], 1);
    let ran = gate.end().exits(0);
    assert_eq!(ran.err, "");
    home.run(&["status"]).exits(3);
}

#[test]
fn a_running_gate_answers_every_command() {
    let home = home_with_server();
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");

    let status = home.run(&["status", "--json"]).exits(0).json();
    assert_eq!((&status["url"], &status["mounts"][0]["state"]), (&gate.first["url"], &"ready".into()));
    assert_eq!(status["mounts"][0]["era"], "initialize");

    let tools = home.run(&["tools", "--json"]).exits(0).json();
    assert_eq!((&tools["total"]["tools"], &tools["tools"][0]["dotted"]), (&2.into(), &"shell.say_hello".into()));
    assert_eq!((&tools["tools"][0]["original"], &tools["warnings"]), (&"sayHello".into(), &json!([])));

    let names = home.run(&["names", "--client", "x", "--json"]).exits(0).json();
    assert_eq!((&names["client"], &names["names"][1]["shown"]), (&"x".into(), &"shell__fail".into()));

    let tree = home.run(&["tree"]).exits(0).out;
    assert!(tree.contains("└── shell  ready, 2 tools, stdio\n    ├── shell__"), "{tree}");

    assert_eq!(home.run(&["logs", "shell"]).exits(0).out, "hello from the server\n");
    assert!(home.run(&["logs", "shel"]).exits(3).err.contains("did you mean `shell`?"));
    gate.end().exits(0);
}

#[test]
fn a_gate_that_is_no_agent_says_so() {
    let home = home_with_server();
    let gate = Gate::up(&home, &[]);
    for command in [&["agent", "negotiate", "https://agent.example"][..], &["agent", "card"], &["agent", "drain"]] {
        let ran = home.run(command).exits(3);
        assert!(ran.err.contains("add a section [agent]"), "{command:?}: {}", ran.err);
    }
    gate.end().exits(0);
}

#[test]
fn a_call_prints_the_result_and_a_failing_tool_is_told_apart() {
    let home = home_with_server();
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    assert_eq!(home.run(&["call", "shell.say_hello"]).exits(0).out, "hello\n");
    assert_eq!(home.run(&["call", "shell__sayHello"]).exits(0).out, "hello\n");
    assert_eq!(home.run(&["call", "shell.sayHello"]).exits(0).out, "hello\n", "as the record has it");
    assert!(home.run(&["trace", "shell.sayHello"]).exits(0).out.contains("say_hello"));
    let raw = home.run(&["call", "shell.say_hello", "--json"]).exits(0).out;
    assert!(raw.contains("\"x\":1e2"), "byte for byte: {raw}");

    let failed = home.run(&["call", "shell.fail"]).exits(5);
    assert_eq!((failed.out.as_str(), failed.err.contains("`shell.fail` reports that it failed")), ("out of order\n", true));
    assert!(home.run(&["call", "shell.say_helo"]).exits(3).err.contains("did you mean"));
    gate.end().exits(0);
}

#[test]
fn without_a_gate_the_configuration_is_started_for_one_question() {
    let home = home_with_server();
    let ran = home.run(&["call", "shell.say_hello"]).exits(0);
    assert_eq!(ran.out, "hello\n");
    assert!(ran.err.contains("starting 1 server of banyan.toml for this question"), "{}", ran.err);
    assert!(home.run(&["tools"]).exits(0).out.contains("shell__sayHello"));
}

#[test]
fn without_a_gate_a_call_starts_one_server_alone() {
    let home = home_with_server();
    home.write("banyan.toml", &format!("{}[mount.other]\ncommand = 'no-such-program'\n", home.read("banyan.toml")));
    for tool in ["shell.say_hello", "shell__sayHello"] {
        let ran = home.run(&["call", tool]).exits(0);
        assert!(ran.err.contains("starting 1 server of") && !ran.err.contains("no-such-program"), "{}", ran.err);
    }
    assert!(home.run(&["call", "nobody.is_there"]).exits(3).err.contains("starting 2 servers of"));
}

#[test]
fn a_changed_configuration_is_told_and_a_bad_one_changes_nothing() {
    let home = home_with_server();
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let good = home.read("banyan.toml");
    home.write("banyan.toml", &format!("{good}\n[mount.b]\nagrs = []\n"));
    assert!(gate.until("kept")["error"].as_str().is_some_and(|e| e.contains("did you mean `args`?")));
    home.write("banyan.toml", &good.replace("mount.shell", "mount.other"));
    assert_eq!(gate.until("reloaded")["changes"], json!(["+ mount other", "- mount shell"]));
    assert_eq!(gate.until("server")["name"], "other");
    gate.end().exits(0);
}

#[test]
fn the_keys_of_an_approval_service_are_read_again_when_their_file_changes() {
    let home = home_with_server();
    let service = "[approvals.service.desk]\nissuer = 'https://desk.example'\naudience = 'https://gate.example'\nkeys = 'desk.pem'\n";
    home.write("banyan.toml", &format!("{}\n{service}", home.read("banyan.toml")));
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    for keys in ["-----BEGIN PUBLIC KEY-----\n", ""] {
        home.write("desk.pem", keys);
        assert_eq!(gate.until("reloaded")["changes"], json!(["~ approvals"]));
    }
    gate.end().exits(0);
}

#[test]
fn servers_of_another_program_are_started_only_when_somebody_agrees() {
    let home = home_with_server();
    std::fs::remove_file(home.path().join("banyan.toml")).expect("the file");
    let server = home.path().join("server.sh");
    let file = json!({ "mcpServers": { "My Shell": { "command": "sh", "args": [server], "surprise": 1 } } });
    home.write("servers.json", &file.to_string());

    let refused = home.run(&["up", "--from", "servers.json", "--listen", "127.0.0.1:0"]).exits(4);
    assert_eq!(refused.out, "");
    for part in ["my-shell  sh ", "surprise: this key is not understood", "`--yes` starts them"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }

    let mut gate = Gate::up(&home, &["--from", "servers.json", "--listen", "127.0.0.1:0", "--yes"]);
    assert_eq!(gate.until("server")["name"], "my-shell");
    gate.end().exits(0);
}

#[test]
fn a_taken_port_is_an_error_that_names_the_holder() {
    let home = home_with_server();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let ran = home.run(&["up", "--listen", &address]).exits(1);
    assert!(ran.err.contains(&format!("{address} is taken")) && ran.err.contains("--listen 127.0.0.1:0"), "{}", ran.err);
}

#[test]
fn a_server_that_wrote_nothing_is_said_to_have() {
    let home = Home::new();
    home.write("banyan.toml", "listen = '127.0.0.1:0'\n[mount.mute]\ncommand = 'sleep'\nargs = ['60']\n");
    let gate = Gate::up(&home, &[]);
    let ran = home.run(&["logs", "mute"]).exits(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "mute has written nothing on its standard error\n"));
    assert_eq!(home.run(&["logs", "mute", "--json"]).exits(0).err, "");
    gate.end().exits(0);
}

#[test]
fn other_machines_are_let_in_only_with_a_token() {
    let ran = home_with_server().run(&["up", "--listen", "0.0.0.0:0"]).exits(4);
    assert_eq!(ran.err.matches("banyan token add").count(), 1, "{}", ran.err);
}

#[test]
fn a_supervisor_reloads_and_stops_by_command() {
    let home = home_with_server();
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    assert_eq!(home.run(&["reload"]).exits(0).out, "nothing is different\n");
    home.write("banyan.toml", "[mount.files]\nagrs = []\n");
    assert!(home.run(&["reload"]).exits(1).err.contains("did you mean `args`?"));
    home.run(&["stop"]).exits(0);
    gate.until("stopping");
    gate.wait().exits(0);
}

const OWNERS_TOO: [(&str, &str); 5] =
    [("GET", "/-/controller"), ("POST", "/-/reload"), ("POST", "/-/stop"), ("GET", "/-/overview"), ("GET", "/-/offers")];

#[test]
fn what_only_the_owner_may_do_takes_the_token_of_the_file() {
    let home = home_with_server();
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let url = gate.first["url"].as_str().expect("a URL").trim_end_matches("/mcp").to_owned();
    let ask = |method: &str, path: &str, header: &str| {
        let address = url.trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(address).expect("the gate listens");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 2\r\nConnection: close\r\n{header}\r\n{{}}");
        std::io::Write::write_all(&mut stream, head.as_bytes()).expect("the gate reads");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("the gate answers");
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    for path in ["/healthz", "/readyz", "/metrics", "/-/status", "/-/tools?client=x"] {
        assert_eq!(ask("GET", path, ""), "200", "{path}");
    }
    let of_owner =
        [("GET", "/-/stdio"), ("GET", "/-/logs/shell"), ("POST", "/-/call"), ("POST", "/-/restart/shell"), ("POST", "/-/console/code")];
    for (method, path) in of_owner.into_iter().chain(OWNERS_TOO) {
        assert_eq!(ask(method, path, ""), "403", "{path}");
        assert_eq!(ask(method, path, "Authorization: Bearer wrong\r\n"), "403", "{path}");
    }
    assert_eq!(ask("GET", "/-/status", "Origin: http://evil.example\r\n"), "403");
    assert_eq!(ask("GET", "/nowhere", ""), "404");
    gate.end().exits(0);
}
