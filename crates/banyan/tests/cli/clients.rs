//! `banyan import`, `connect` and `disconnect` on files as clients write them. Each client's format is tested beside the code, not here.

use serde_json::json;

use crate::home::Home;
use crate::serving::Gate;

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"My Files\": {\"command\": \"sh\", \"args\": [\"-c\", \"cat\"], \"env\": {\"API_TOKEN\": \"hunter2\"}},\n    \"web\": {\"url\": \"https://h.example/mcp\", \"surprise\": 1}\n  }\n}\n";

fn home() -> Home {
    let home = Home::new();
    home.write(".cursor/mcp.json", CURSOR);
    home
}

#[test]
fn import_shows_what_there_is_and_hides_secrets() {
    let home = home();
    let ran = home.run(&["import"]).exits(0);
    assert!(ran.out.contains("Cursor  ~/.cursor/mcp.json\n  my-files  sh -c cat (sets API_TOKEN)"), "{}", ran.out);
    assert!(ran.err.contains("surprise: this key is not understood"), "{}", ran.err);
    let report = home.run(&["import", "--json"]).exits(0);
    assert!(!(report.out.clone() + &ran.out + &ran.err).contains("hunter2"));
    let server = &report.json()["servers"][0];
    assert_eq!((&server["name"], &server["enabled"]), (&"my-files".into(), &true.into()));
    assert_eq!(server["plain_secrets"], json!(["my-files: env API_TOKEN"]));
    assert!(!home.path().join("banyan.toml").exists());
}

#[test]
fn import_writes_a_configuration_and_merges_later() {
    let home = home();
    assert!(home.run(&["import", "--write"]).exits(0).out.contains("2 servers written to banyan.toml"));
    assert!(home.run(&["check"]).exits(0).out.contains("1 server to start, 1 to reach"));
    home.run(&["import", "--write", "--config", "deep/other.toml"]).exits(0);
    assert_eq!(home.read("banyan.toml"), home.read("deep/other.toml"));
    let before = home.read("banyan.toml");
    let again = home.run(&["import", "--write"]).exits(0);
    assert!(again.out.contains("0 servers written") && again.err.contains("`my-files`, `web` stands in banyan.toml already"), "{again:?}");
    assert_eq!(home.read("banyan.toml"), before, "what is there stays to the byte");
    home.write(
        "more.json",
        r#"{"mcpServers": {"web": {"url": "https://other.example/mcp"}, "new": {"command": "sh", "args": ["-c", "cat"]}}}"#,
    );
    let report = home.run(&["import", "more.json", "--write", "--json"]).exits(0).json();
    assert_eq!(report["kept"], json!(["web"]));
    let merged = home.read("banyan.toml");
    assert!(merged.starts_with(before.trim_end()) && merged.contains("[mount.new]\n") && !merged.contains("other.example"), "{merged}");
    assert!(home.run(&["check"]).exits(0).out.contains("2 servers to start, 1 to reach"));
}

#[test]
fn nothing_to_import_is_not_found() {
    let home = Home::new();
    let none = home.run(&["import"]).exits(3).err;
    assert!(none.contains("no client's file names a server") && none.contains("[mount.NAME]"), "{none}");
    // Each way to a configuration is one that somebody without any client can go.
    for arguments in [&["check"][..], &["token", "list"]] {
        assert!(home.run(arguments).exits(3).err.contains("[mount.NAME]"), "{arguments:?}");
    }
}

#[test]
fn a_client_is_connected_and_gets_its_file_back_to_the_byte() {
    let home = home();
    let refused = home.run(&["connect", "cursor"]).exits(4);
    assert!(refused.err.contains("`--yes` moves them") && !refused.err.contains("hunter2"), "{}", refused.err);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);

    let report = home.run(&["connect", "cursor", "--yes", "--without-gate", "--json"]).exits(0).json();
    assert_eq!((&report["changed"], &report["moved"]), (&true.into(), &json!(["my-files", "web"])));
    assert!(home.read(".cursor/mcp.json").contains("\"banyan\": {\n      \"url\": \"http://127.0.0.1:7411/mcp\""));
    assert!(home.read(".config/banyan/banyan.toml").contains("[mount.my-files]"));
    assert!(home.run(&["connect", "cursor"]).exits(0).out.contains("is connected already"));
    home.run(&["disconnect", "cursor"]).exits(0);
    let connected = home.run(&["connect", "cursor", "--yes", "--without-gate"]).exits(0);
    assert!(
        connected.err.contains("no gate runs at http://127.0.0.1:7411/mcp") && connected.err.contains("banyan up"),
        "{}",
        connected.err
    );

    home.run(&["disconnect", "cursor"]).exits(0);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert_eq!(std::fs::read_dir(home.path().join(".cursor")).expect("the directory").count(), 1, "no backup is left");
    assert!(home.run(&["disconnect", "cursor"]).exits(3).err.contains("is not connected"));
}

#[test]
fn no_client_is_emptied_while_no_gate_would_answer() {
    let home = home();
    let refused = home.run(&["connect", "cursor", "--yes"]).exits(4);
    assert!(refused.err.contains("`banyan service install`") && refused.err.contains("`--without-gate`"), "{}", refused.err);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert!(!home.path().join(".config").exists());
    home.run(&["connect", "cursor", "--yes", "--stdio"]).exits(0);
}

#[test]
fn a_units_file_and_a_demonstration_serve_no_client() {
    let home = Home::new();
    let demonstration = Gate::up(&home, &["--listen", "127.0.0.1:0"]);
    home.write(".cursor/mcp.json", CURSOR);
    let refused = home.run(&["connect", "cursor", "--yes"]).exits(4).err;
    assert!(refused.contains("serves the demonstration"), "{refused}");
    assert!(!home.path().join(".config").exists());
    demonstration.end().exits(0);

    home.write("banyan.toml", "listen = '127.0.0.1:0'\n");
    home.run(&["service", "install", "--no-start"]).exits(0);
    let refused = home.run(&["connect", "cursor", "--yes"]).exits(4).err;
    assert!(refused.contains("banyan.toml, so that"), "{refused}");
    assert_eq!((home.read(".cursor/mcp.json").as_str(), home.read("banyan.toml").as_str()), (CURSOR, "listen = '127.0.0.1:0'\n"));
    let gate = Gate::up(&home, &[]);
    home.run(&["connect", "cursor", "--yes"]).exits(0);
    gate.end().exits(0);
}

#[test]
fn a_connection_tells_what_stays_behind() {
    let home = Home::new();
    let server =
        r#"{"time": {"command": "sh", "env": {"API_KEY": "hunter2"}}, "sentry": {"type": "http", "url": "https://s.example/mcp"}}"#;
    let elsewhere = r#"{"/elsewhere": {"mcpServers": {"git": {"command": "git"}}}}"#;
    home.write(".claude.json", &format!(r#"{{"mcpServers": {server}, "projects": {elsewhere}}}"#));
    home.write(".claude/settings.json", r#"{"permissions": {"allow": ["mcp__time__get_current_time"]}}"#);
    let told = home.run(&["connect", "claude-code", "--yes", "--without-gate"]).exits(0).err;
    for part in ["servers of other projects stay", "`mcp__banyan__time__…`", "time: env API_KEY", "`banyan auth sentry`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_dry_run_changes_nothing_and_a_kept_server_stays() {
    let home = home();
    assert!(home.run(&["connect", "cursor", "--dry-run"]).exits(0).err.contains("+    \"banyan\""));
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert!(!home.path().join(".config").exists());

    home.run(&["connect", "cursor", "--yes", "--without-gate", "--keep", "web"]).exits(0);
    let text = home.read(".cursor/mcp.json");
    assert!(text.contains("\"web\"") && text.contains("\"banyan\"") && !text.contains("My Files"), "{text}");
}

#[test]
fn a_client_that_is_not_there_or_not_known_is_said_so() {
    let home = home();
    assert!(home.run(&["connect", "zed"]).exits(3).err.contains("does not seem to be installed"));
    assert!(home.run(&["connect", "curs0r"]).exits(2).err.contains("did you mean `cursor`?"));
}

#[test]
fn a_client_of_a_gate_with_tokens_sends_its_own() {
    let home = home();
    home.write("banyan.toml", "");
    home.run(&["token", "add", "cursor"]).exits(0);
    let ran = home.run(&["connect", "cursor", "--yes", "--without-gate"]).exits(0);
    assert!(ran.err.contains("BANYAN_TOKEN"), "{}", ran.err);
    assert!(home.read(".cursor/mcp.json").contains("Bearer ${env:BANYAN_TOKEN}"));
}
