//! The console as a browser without a screen meets it: signing in, signing out with its effects, and the data. The drawing is tried
//! elsewhere, not here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

/// A gate, and a browser with or without a session.
struct Visit {
    home: Home,
    gate: Gate,
    address: String,
    /// Header fields of each request.
    fields: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Visit {
    fn begin() -> Self {
        let home = home_with_server();
        let mut gate = Gate::up(&home, &[]);
        gate.until("settled");
        let url = gate.first["url"].as_str().expect("a URL").trim_end_matches("/mcp").to_owned();
        Self { home, gate, address: url.trim_start_matches("http://").to_owned(), fields: String::new() }
    }

    fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("the gate listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let (address, fields, length) = (&self.address, &self.fields, body.len());
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n{fields}\r\n{body}");
        stream.write_all(head.as_bytes()).expect("the gate reads");
        stream
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut all = Vec::new();
        self.open(method, path, body).read_to_end(&mut all).expect("the gate answers");
        let all = String::from_utf8_lossy(&all);
        let (head, body) = all.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn code(&self) -> String {
        let link = self.home.run(&["console", "--print", "--json"]).exits(0).json();
        let url = link["url"].as_str().expect("a URL");
        assert!(url.starts_with("http://localhost:") && link["expires_in"] == 120, "{link}");
        url.split_once("/-/console/#code=").expect("a code").1.to_owned()
    }

    /// Takes a code for a session; gives the answer, the cookie and the proof.
    fn sign_in(&self, code: &str) -> (Answer, String, String) {
        let answer = self.ask("POST", "/-/console/session", &json!({ "code": code }).to_string());
        let cookie = answer.head.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap_or_default().to_owned();
        let told: Value = serde_json::from_str(&answer.body).expect("JSON");
        let proof = told["proof"].as_str().unwrap_or_default().to_owned();
        (answer, cookie, proof)
    }
}

#[test]
fn a_link_lets_a_browser_in_once_and_signing_out_ends_what_it_holds_open() {
    let mut visit = Visit::begin();
    let own = |visit: &Visit| visit.ask("GET", "/-/logs/shell", "").status;
    assert_eq!(own(&visit), 403);
    let code = visit.code();
    visit.fields = "Origin: http://localhost:1\r\n".to_owned();
    assert_eq!(visit.sign_in(&code).0.status, 403, "a page of another site");
    visit.fields.clear();
    let (_, cookie, proof) = visit.sign_in(&code);
    assert_eq!(visit.sign_in(&code).0.status, 403, "the code was used");
    let pair = cookie.split(';').next().expect("a cookie").to_owned();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict") && cookie.contains("path=/-/"), "{cookie}");

    for fields in [format!("Cookie: {pair}\r\n"), format!("Banyan-Console: {proof}\r\n")] {
        visit.fields = fields;
        assert_eq!(own(&visit), 403, "half of a session");
    }
    let both = format!("Cookie: other=1; {pair}\r\nBanyan-Console: {proof}\r\n");
    for (more, status) in [
        (String::new(), 200),
        (format!("Origin: http://{}\r\n", visit.address), 200),
        ("Origin: http://localhost:1\r\n".to_owned(), 403),
        ("Sec-Fetch-Site: same-site\r\n".to_owned(), 403),
    ] {
        visit.fields = format!("{both}{more}");
        assert_eq!(own(&visit), status, "{more}");
    }

    visit.fields = both;
    assert_eq!(visit.ask("POST", "/-/console/code", "").status, 403, "a session makes no sessions");
    let mut log = visit.open("GET", "/-/logs/shell?follow=1", "");
    assert_eq!(visit.ask("DELETE", "/-/console/session", "").status, 200);
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("the stream ends with the session");
    assert_eq!(own(&visit), 403);
    visit.gate.end().exits(0);
}

#[test]
fn a_browser_at_the_root_is_led_to_the_console() {
    let mut visit = Visit::begin();
    assert_eq!(visit.ask("GET", "/", "").status, 404, "who is no browser is not");
    visit.fields = "Accept: text/html\r\n".to_owned();
    let root = visit.ask("GET", "/", "");
    assert!(root.status == 303 && root.head.contains("location: /-/console/"), "{}", root.head);
    let page = visit.ask("GET", "/-/console/", "");
    assert!(page.status == 200 && page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    visit.gate.end().exits(0);
}

#[test]
fn events_begin_with_everything_and_go_on_with_what_changes() {
    let mut visit = Visit::begin();
    let mut shown = Events(BufReader::new(visit.open("GET", "/-/events", "")));
    let (name, whole) = shown.next();
    assert_eq!((&*name, &whole["mounts"][0]["state"]), ("snapshot", &json!("ready")), "to a guest, too");
    assert_eq!(visit.ask("POST", "/-/restart/shell", "").status, 403, "a guest restarts nothing");

    let (_, cookie, proof) = visit.sign_in(&visit.code());
    visit.fields = format!("Cookie: {}\r\nBanyan-Console: {proof}\r\n", cookie.split(';').next().expect("a cookie"));
    let mut events = Events(BufReader::new(visit.open("GET", "/-/events", "")));
    let (name, whole) = events.next();
    assert_eq!(name, "snapshot");
    let before = whole["mounts"][0]["restarts"].as_u64().expect("a number");
    assert_eq!(visit.ask("POST", "/-/restart/shell", "").status, 200);
    assert_eq!(visit.ask("POST", "/-/restart/nobody", "").status, 404);
    loop {
        let (name, change) = events.next();
        assert_eq!(name, "change");
        let mount = &change["mounts"][0];
        if mount["state"] == "ready" && mount["restarts"].as_u64() > Some(before) {
            break;
        }
    }
    let is_degraded = |visit: &Visit| visit.ask("GET", "/-/tools/shell.fail", "").body.contains("\"availability\":\"degraded\"");
    while is_degraded(&visit) {
        // Whatever makes it another is told.
        events.next();
    }
    visit.gate.end().exits(0);
}

#[test]
fn a_tool_is_told_whole_and_a_call_answers_as_a_client_hears_it() {
    let mut visit = Visit::begin();
    let told: Value = serde_json::from_str(&visit.ask("GET", "/-/tools/shell.fail", "").body).expect("JSON");
    assert_eq!((&told["tool"]["dotted"], &told["definition"]["name"]), (&json!("shell.fail"), &told["tool"]["original"]));
    assert!(told["definition"]["inputSchema"].is_object(), "{told}");
    assert_eq!(visit.ask("GET", "/-/tools/shell.nothing", "").status, 404);

    let (_, cookie, proof) = visit.sign_in(&visit.code());
    visit.fields = format!("Cookie: {}\r\nBanyan-Console: {proof}\r\n", cookie.split(';').next().expect("a cookie"));
    let call = |tool: &str| -> Value {
        let body = json!({ "tool": tool, "arguments": {}, "raw": true }).to_string();
        serde_json::from_str(&visit.ask("POST", "/-/call", &body).body).expect("JSON")
    };
    assert_eq!(call("shell.fail")["jsonrpc"], "2.0");
    assert_eq!(call("shell.nothing")["error"]["code"], -32602);
    visit.gate.end().exits(0);
}

/// Server-sent events in chunks, as they arrive.
struct Events(BufReader<TcpStream>);

impl Events {
    fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("the stream goes on") > 0, "the stream ended");
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).expect("JSON"));
            }
        }
    }
}
