use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use config::resolved::Config;
use proptest::prelude::*;

use super::*;
use crate::{Platform, discover};

struct Desk {
    dir: tempfile::TempDir,
    places: Places,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let listen = Config::DEFAULT_LISTEN;
        let env = [("SHOP_HOST".to_owned(), "shop.example.com".to_owned())].into();
        Self { dir, places: Places { cwd: home.join("work"), home, platform: Platform::Linux, env, listen } }
    }

    /// Makes a client with this text in its file.
    fn with(client: Client, text: &str) -> Self {
        let desk = Self::new();
        std::fs::create_dir_all(desk.file(client).parent().unwrap()).unwrap();
        std::fs::write(desk.file(client), text).unwrap();
        desk
    }

    fn file(&self, client: Client) -> PathBuf {
        client.own_files(&self.places)[0].clone()
    }

    fn text(&self, client: Client) -> String {
        std::fs::read_to_string(self.file(client)).unwrap()
    }

    fn plan(&self, client: Client, endpoint: Endpoint) -> Result<Plan, ConnectError> {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_228_800);
        connect(&Request { client, places: &self.places, endpoint, keep: BTreeSet::new(), now })
    }

    fn connect(&self, client: Client) -> Plan {
        let endpoint = if client.takes_address() { http() } else { stdio() };
        let plan = self.plan(client, endpoint).unwrap();
        plan.apply().unwrap();
        plan
    }

    fn disconnect(&self, client: Client) -> Plan {
        let plan = disconnect(client, &self.places).unwrap();
        plan.apply().unwrap();
        plan
    }

    /// Reads every file below the home directory.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut dirs = vec![self.dir.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() { dirs.push(entry) } else { drop(found.insert(entry.clone(), std::fs::read_to_string(entry).unwrap())) }
            }
        }
        found
    }
}

fn http() -> Endpoint {
    Endpoint::Http { url: "http://127.0.0.1:7411/mcp".parse().unwrap(), bearer_env: None }
}

fn stdio() -> Endpoint {
    Endpoint::Stdio { command: "/opt/banyan".into(), args: vec!["stdio".into()] }
}

fn fixture(client: Client) -> String {
    let name = match client {
        Client::ClaudeCode => "claude.json",
        Client::ClaudeDesktop => "claude_desktop_config.json",
        Client::Cline => "cline_mcp_settings.json",
        Client::Codex => "config.toml",
        Client::Cursor | Client::VsCode => "mcp.json",
        Client::Gemini | Client::Zed => "settings.json",
        Client::Windsurf => "mcp_config.json",
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import").join(client.id()).join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn each_client_is_connected_and_put_back_to_the_byte() {
    for client in Client::ALL {
        for endpoint in [http(), stdio()] {
            if endpoint == http() && !client.takes_address() {
                continue;
            }
            let desk = Desk::with(client, &fixture(client));
            let before = desk.files();
            let plan = desk.plan(client, endpoint).unwrap();
            assert!(!plan.is_nothing() && !plan.removed.is_empty(), "{client}");
            assert_eq!(desk.files(), before, "{client}: a plan writes nothing");
            plan.apply().unwrap();
            assert_eq!(desk.files().len(), 2, "{client}");

            let found = discover(&desk.places);
            let own = found.notes.iter().filter(|note| note.kind == NoteKind::Banyan).count();
            assert!(found.servers.is_empty() && own == 1, "{client}: {found:#?}");

            desk.disconnect(client);
            assert_eq!(desk.files(), before, "{client}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_made_and_goes_again() {
    for client in Client::ALL {
        let desk = Desk::new();
        std::fs::create_dir_all(desk.file(client).parent().unwrap()).unwrap();
        desk.connect(client);
        assert!(desk.text(client).contains("banyan"), "{client}");
        desk.disconnect(client);
        assert_eq!(desk.files(), BTreeMap::new(), "{client}");
    }
}

#[test]
fn what_is_not_about_servers_stays_with_its_comments() {
    let desk = Desk::with(Client::Zed, &fixture(Client::Zed));
    let plan = desk.connect(Client::Zed);
    assert_eq!(
        desk.text(Client::Zed),
        r#"// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "banyan": {
      "url": "http://127.0.0.1:7411/mcp"
    },
    "mcp-server-context7": { "source": "extension", "enabled": true, "settings": { "key": "x" } }
  },
}
"#
    );
    let removed: Vec<_> = plan.removed.iter().map(|server| server.name.as_str()).collect();
    assert_eq!((removed, plan.kept), (vec!["local-mcp", "old-shape", "remote"], vec!["mcp-server-context7".to_owned()]));
}

#[test]
fn codex_keeps_its_other_tables_and_their_comments() {
    let text = "# mine\nmodel = \"x\" # fast\n\n[mcp_servers.a]\ncommand = \"a\"\n\n# profiles\n[profiles.p]\nmodel = \"y\"\n";
    let desk = Desk::with(Client::Codex, text);
    desk.connect(Client::Codex);
    assert_eq!(
        desk.text(Client::Codex),
        "# mine\nmodel = \"x\" # fast\n\n# profiles\n[profiles.p]\nmodel = \"y\"\n\n[mcp_servers.banyan]\nurl = \"http://127.0.0.1:7411/mcp\"\n"
    );
    let later = format!("{}\n[mcp_servers.new]\ncommand = \"new\"\n", desk.text(Client::Codex));
    std::fs::write(desk.file(Client::Codex), later).unwrap();
    desk.disconnect(Client::Codex);
    let names = toml::names(&desk.text(Client::Codex), "mcp_servers").unwrap();
    assert_eq!(names, ["a", "new"], "{}", desk.text(Client::Codex));
    assert!(desk.text(Client::Codex).starts_with("# mine\nmodel = \"x\" # fast\n"));
}

#[test]
fn later_changes_stay_when_the_servers_come_back() {
    let desk = Desk::with(Client::ClaudeCode, "{\n  \"numStartups\": 1,\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" }\n  }\n}\n");
    let backup = desk.connect(Client::ClaudeCode).backup.unwrap();
    let later = desk.text(Client::ClaudeCode).replace("\"numStartups\": 1", "\"numStartups\": 2");
    std::fs::write(desk.file(Client::ClaudeCode), later).unwrap();
    desk.disconnect(Client::ClaudeCode);
    assert_eq!(desk.text(Client::ClaudeCode), "{\n  \"numStartups\": 2,\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" }\n  }\n}\n");
    assert!(!backup.exists() && backup.with_extension("old").exists());
    assert!(matches!(disconnect(Client::ClaudeCode, &desk.places), Err(ConnectError::NotConnected { .. })));
}

#[test]
fn connecting_twice_keeps_the_first_state() {
    let desk = Desk::with(Client::Cursor, &fixture(Client::Cursor));
    let before = desk.files();
    desk.connect(Client::Cursor);
    assert!(desk.connect(Client::Cursor).is_nothing());
    let plan = desk.plan(Client::Cursor, stdio()).unwrap();
    assert!(!plan.is_nothing());
    plan.apply().unwrap();
    assert_eq!(desk.files().len(), 2);
    desk.disconnect(Client::Cursor);
    assert_eq!(desk.files(), before);
}

#[test]
fn a_server_that_is_to_stay_stays() {
    let desk = Desk::with(Client::Cursor, r#"{"mcpServers":{"a":{"command":"a"},"b":{"command":"b"}}}"#);
    let now = UNIX_EPOCH;
    let request = Request { client: Client::Cursor, places: &desk.places, endpoint: http(), keep: ["a".to_owned()].into(), now };
    let plan = connect(&request).unwrap();
    assert_eq!((plan.removed.len(), plan.kept.as_slice()), (1, ["a".to_owned()].as_slice()));
}

#[test]
fn a_token_is_named_by_its_variable_in_each_client_s_way() {
    let endpoint = || Endpoint::Http { url: "https://gate.example.com/mcp".parse().unwrap(), bearer_env: Some("GATE".into()) };
    for (client, part) in [
        (Client::ClaudeCode, "\"Authorization\": \"Bearer ${GATE}\""),
        (Client::Cline, "\"Authorization\": \"Bearer ${env:GATE}\""),
        (Client::Codex, "bearer_token_env_var = \"GATE\""),
        (Client::Cursor, "\"Authorization\": \"Bearer ${env:GATE}\""),
        (Client::Gemini, "\"Authorization\": \"Bearer $GATE\""),
        (Client::VsCode, "\"Authorization\": \"Bearer ${env:GATE}\""),
        (Client::Windsurf, "\"Authorization\": \"Bearer ${env:GATE}\""),
    ] {
        let desk = Desk::with(client, "");
        desk.plan(client, endpoint()).unwrap().apply().unwrap();
        assert!(desk.text(client).contains(part), "{}", desk.text(client));
    }
    let desk = Desk::with(Client::Zed, "");
    assert!(matches!(desk.plan(Client::Zed, endpoint()), Err(ConnectError::NoBearer { .. })));
    let desk = Desk::with(Client::ClaudeDesktop, "");
    let error = desk.plan(Client::ClaudeDesktop, endpoint()).unwrap_err().to_string();
    assert!(error.contains("`banyan connect claude-desktop --stdio`"), "{error}");
}

#[test]
fn a_file_that_does_not_parse_is_refused_and_left_alone() {
    for (client, text) in [
        (Client::Cursor, "{ \"mcpServers\": "),
        (Client::Cursor, "[]"),
        (Client::Cursor, "{ \"mcpServers\": [] }"),
        (Client::Codex, "[mcp_servers"),
        (Client::Codex, "mcp_servers = 1"),
    ] {
        let desk = Desk::with(client, text);
        let error = desk.plan(client, http()).unwrap_err();
        assert!(matches!(error, ConnectError::Unreadable { .. }), "{text}: {error}");
        assert!(error.to_string().contains("nothing was written"), "{error}");
        assert_eq!(desk.text(client), text);
    }
}

#[test]
fn a_client_that_is_not_installed_is_refused() {
    let desk = Desk::new();
    let error = desk.plan(Client::Cursor, http()).unwrap_err().to_string();
    assert!(error.starts_with("Cursor does not seem to be installed: there is no directory `") && error.contains(".cursor`"), "{error}");
}

#[test]
fn a_file_that_changes_under_the_plan_is_left_alone() {
    let desk = Desk::with(Client::Cursor, "{}");
    let plan = desk.plan(Client::Cursor, http()).unwrap();
    std::fs::write(desk.file(Client::Cursor), "{ }").unwrap();
    assert!(matches!(plan.apply(), Err(ConnectError::Changed { .. })));
    assert_eq!(desk.files().into_values().collect::<Vec<_>>(), ["{ }"]);
}

#[test]
fn an_entry_without_a_backup_is_taken_out() {
    let desk = Desk::with(Client::Cursor, "{\n  \"mcpServers\": {\n    \"banyan\": { \"url\": \"x\" },\n    \"a\": 1\n  }\n}\n");
    desk.disconnect(Client::Cursor);
    assert_eq!(json::names(&desk.text(Client::Cursor), "mcpServers").unwrap(), ["a"]);
}

#[test]
fn the_difference_shows_servers_and_no_secrets() {
    let desk = Desk::with(Client::ClaudeDesktop, &fixture(Client::ClaudeDesktop));
    let plan = desk.plan(Client::ClaudeDesktop, stdio()).unwrap();
    let shown = plan.diff();
    assert!(shown.contains("-    \"GitHub\": {") && shown.contains("+      \"command\": \"/opt/banyan\","), "{shown}");
    assert!(shown.contains("\"GITHUB_PERSONAL_ACCESS_TOKEN\": \"***\""), "{shown}");
    assert!(!shown.contains("ghp_") && !shown.contains("brave-fixture-key"), "{shown}");
    plan.apply().unwrap();
    let back = disconnect(Client::ClaudeDesktop, &desk.places).unwrap().diff();
    assert!(back.contains("+    \"GitHub\": {") && !back.contains("ghp_"), "{back}");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::with(Client::Cursor, "{}");
    let real = desk.places.home.join("dotfiles-mcp.json");
    #[expect(clippy::disallowed_methods, reason = "somebody moves it elsewhere")]
    std::fs::rename(desk.file(Client::Cursor), &real).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, desk.file(Client::Cursor)).unwrap();
    let backup = desk.connect(Client::Cursor).backup.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&real), mode(&backup)), (0o640, 0o600));
    assert!(desk.file(Client::Cursor).is_symlink());
    desk.disconnect(Client::Cursor);
    assert_eq!((desk.text(Client::Cursor).as_str(), mode(&real)), ("{}", 0o640));
}

fn any_json() -> impl Strategy<Value = String> {
    let space = || prop_oneof!["[ \n\t]{0,3}", Just(" // a, b: {\n".to_owned()), Just("/* c */".to_owned())];
    let server = prop_oneof![Just("{\"command\":\"x\"}"), Just("{ \"url\": \"https://x/\", }"), Just("1"), Just("{}")];
    let member =
        (space(), "\"[a-c ]{1,2}\"", space(), server, space()).prop_map(|(a, name, b, server, c)| format!("{a}{name}{b}:{server}{c}"));
    let list = (proptest::collection::vec(member, 0..4), any::<bool>(), space()).prop_map(|(members, trailing, end)| {
        let comma = if trailing && !members.is_empty() { "," } else { "" };
        format!("{{{}{comma}{end}}}", members.join(","))
    });
    let others =
        || proptest::collection::vec((space(), "\"[x-z]{1,3}\"").prop_map(|(space, name)| format!("{space}{name}: [1, {{}}]")), 0..3);
    (others(), proptest::option::of(list), others(), space(), any::<bool>()).prop_map(|(before, list, after, space, trailing)| {
        let list = list.map(|list| format!("\"mcpServers\":{space}{list}"));
        let members: Vec<String> = before.into_iter().chain(list).chain(after).collect();
        let comma = if trailing && !members.is_empty() { "," } else { "" };
        format!("{space}{{{}{comma}{space}}}{space}", members.join(","))
    })
}

proptest! {
    #[test]
    fn any_file_comes_back_to_the_byte(text in any_json()) {
        let desk = Desk::with(Client::Cursor, &text);
        let plan = desk.connect(Client::Cursor);
        prop_assert!(crate::json::parse(&desk.text(Client::Cursor)).is_ok(), "{}", desk.text(Client::Cursor));
        prop_assert!(json::names(&desk.text(Client::Cursor), "mcpServers").unwrap().contains(&ENTRY.to_owned()));
        if !plan.is_nothing() {
            desk.disconnect(Client::Cursor);
        }
        prop_assert_eq!(desk.text(Client::Cursor), text);
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_comes_back_with_its_servers(text in any_json()) {
        let desk = Desk::with(Client::Cursor, &text);
        desk.connect(Client::Cursor);
        let later = format!("{} ", desk.text(Client::Cursor));
        std::fs::write(desk.file(Client::Cursor), later).unwrap();
        desk.disconnect(Client::Cursor);
        let value = |text: &str| crate::json::parse(text).map(|document| document.members);
        let after = desk.text(Client::Cursor);
        prop_assert_eq!(value(&after), value(&text), "{}", after);
    }
}
