//! Questions at a terminal: agreeing to what was found, and typing a secret. Only Unix terminals are tried.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::home::Home;

/// A command with a terminal for standard input and error, and a pipe for standard output.
struct Typing {
    child: Child,
    news: BufReader<ChildStdout>,
    terminal: File,
    seen: String,
}

impl Typing {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
        let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
        let both = slave.try_clone().expect("two of them");
        let mut child = home.command(arguments).stdin(slave).stderr(both).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let news = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, news, terminal: File::from(master), seen: String::new() }
    }

    /// Waits until `prompt` is on the screen, then types.
    fn answer(&mut self, prompt: &str, typed: &str) {
        while !self.seen.contains(prompt) {
            assert!(self.read(), "`{prompt}` was not asked: {}", self.seen);
        }
        self.terminal.write_all(typed.as_bytes()).expect("the terminal takes it");
    }

    /// Reads new text on the screen; `false` at the end.
    fn read(&mut self) -> bool {
        let mut new = [0; 4096];
        let count = self.terminal.read(&mut new).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(&new[..count]));
        count > 0
    }

    /// The first news on standard output.
    fn first_news(&mut self) -> Value {
        let mut line = String::new();
        self.news.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("news are JSON")
    }

    /// The exit code, with everything read.
    fn ends(&mut self) -> Option<i32> {
        while self.read() {}
        self.child.wait().expect("it ends").code()
    }
}

fn home() -> Home {
    let home = Home::new();
    home.write(".cursor/mcp.json", &json!({ "mcpServers": { "a": { "command": "sh", "args": ["-c", "cat\u{1b}[2K"] } } }).to_string());
    home
}

#[test]
fn a_person_is_asked_once_and_no_means_no() {
    let home = home();
    let mut typing = Typing::start(&home, &["up", "--listen", "127.0.0.1:0", "--json"]);
    typing.answer("Start them? [Y/n]", "n\n");
    assert_eq!(typing.ends(), Some(4));
    assert!(typing.seen.contains(r"sh -c 'cat\u{1b}[2K'"), "the command is shown whole and tame: {}", typing.seen);
    assert!(typing.seen.contains("nothing is started"), "{}", typing.seen);
}

#[test]
fn a_person_who_agrees_gets_the_gate() {
    let home = home();
    let mut typing = Typing::start(&home, &["up", "--listen", "127.0.0.1:0", "--json"]);
    typing.answer("Start them? [Y/n]", "\n");
    let first = typing.first_news();
    assert_eq!((&first["event"], &first["servers"]), (&"listening".into(), &1.into()));
    home.run(&["stop"]).exits(0);
    assert_eq!(typing.child.wait().expect("it ends").code(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_secret_is_not_shown_while_it_is_typed() {
    let home = Home::new();
    let mut typing = Typing::start(&home, &["secret", "set", "x"]);
    typing.answer("value of x: ", "hunter2\n");
    // No session bus can be reached from an empty environment, so that storing it fails.
    assert_eq!(typing.ends(), Some(1));
    assert!(!typing.seen.contains("hunter2"), "{}", typing.seen);
    assert!(typing.seen.contains("no keyring can be reached"), "{}", typing.seen);
}

/// Lists the files below `dir` that hold `text`.
fn files_with(text: &str, dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten().map(|e| e.path());
    let found = entries.flat_map(|path| {
        if path.is_dir() {
            return files_with(text, &path);
        }
        let holds = std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text));
        if holds { vec![path] } else { Vec::new() }
    });
    found.collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_secret_that_no_keyring_takes_is_kept_in_memory_while_the_gate_runs() {
    let home = Home::new();
    let script = "printf %s \"$KEY\" > got; cat";
    let server = json!({ "command": "sh", "args": ["-c", script], "env": { "KEY": "${input:key}" } });
    let inputs = json!([{ "id": "key", "type": "promptString", "description": "API key", "password": true }]);
    home.write("mcp.json", &json!({ "inputs": inputs, "servers": { "a": server } }).to_string());
    let mut typing = Typing::start(&home, &["up", "--from", "mcp.json", "--listen", "127.0.0.1:0", "--json"]);
    typing.answer("Start them? [Y/n]", "\n");
    typing.answer("API key: ", "hunter2\n");
    assert_eq!(typing.first_news()["event"], "listening");
    let until = Instant::now() + Duration::from_secs(20);
    while files_with("hunter2", home.path()).is_empty() {
        assert!(Instant::now() < until, "the server was not given the answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = home.run(&["status", "--json"]).exits(0);
    assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
    home.run(&["stop"]).exits(0);
    assert_eq!(typing.ends(), Some(0));
    assert!(typing.seen.contains("the answer is kept in memory only"), "{}", typing.seen);
    assert!(!typing.seen.contains("hunter2"), "{}", typing.seen);
    assert_eq!(files_with("hunter2", home.path()), [home.path().join("got")]);
}
