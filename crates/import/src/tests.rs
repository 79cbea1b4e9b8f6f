mod any;

use std::fmt::Write as _;

use config::resolved::{Mount, Transport};
use config::secret::SecretRef;

use super::*;

/// A home directory with the project `work/shop`, and files of clients.
struct Home {
    _dir: tempfile::TempDir,
    places: Places,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let cwd = home.join("work/shop");
        std::fs::create_dir_all(cwd.join(".git")).unwrap();
        let env = [("HOME", home.to_str().unwrap()), ("DOCS_TOKEN", "unused")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let listen = config::resolved::Config::DEFAULT_LISTEN;
        Self { _dir: dir, places: Places { home, cwd, platform: Platform::Linux, env: env.into(), listen } }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.places.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("HOME", self.places.home.to_str().unwrap())).unwrap();
    }

    fn with(self, fixture: &str, path: &str) -> Self {
        self.put(path, &std::fs::read_to_string(fixtures().join(fixture)).unwrap());
        self
    }

    fn all() -> Self {
        FILES.iter().fold(Self::new(), |home, (fixture, path)| home.with(fixture, path))
    }
}

const FILES: [(&str, &str); 12] = [
    ("claude-desktop/claude_desktop_config.json", ".config/Claude/claude_desktop_config.json"),
    ("claude-code/claude.json", ".claude.json"),
    ("claude-code/dot-mcp.json", "work/shop/.mcp.json"),
    ("cursor/mcp.json", ".cursor/mcp.json"),
    ("cursor/project-mcp.json", "work/shop/.cursor/mcp.json"),
    ("vscode/mcp.json", ".config/Code/User/mcp.json"),
    ("vscode/settings.json", ".config/Code/User/settings.json"),
    ("windsurf/mcp_config.json", ".codeium/windsurf/mcp_config.json"),
    ("cline/cline_mcp_settings.json", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ("codex/config.toml", ".codex/config.toml"),
    ("gemini/settings.json", ".gemini/settings.json"),
    ("zed/settings.json", ".config/zed/settings.json"),
];

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import")
}

/// Everything in words: servers with their transports, then notes and questions.
fn summary(found: &Found, home: &Home) -> String {
    let mut out = String::new();
    for server in &found.servers {
        let off = if server.enabled { "" } else { " (off)" };
        writeln!(out, "{}{off}", server.mount.name).unwrap();
        match &server.mount.transport {
            Transport::Stdio(process) => {
                let args: Vec<_> = process.args.iter().map(SecretRef::to_string).collect();
                writeln!(out, "  {} {args:?}", process.command).unwrap();
                for (name, value) in &process.env {
                    writeln!(out, "  env {name} = {value}").unwrap();
                }
                if !process.pass_env.is_empty() || process.cwd.is_some() {
                    writeln!(out, "  passes {:?}, in {:?}", process.pass_env, process.cwd).unwrap();
                }
            }
            Transport::Family(_) => panic!("clients have MCP servers only"),
            Transport::Http(remote) | Transport::Sse(remote) => {
                let kind = if matches!(server.mount.transport, Transport::Sse(_)) { "sse" } else { "http" };
                writeln!(out, "  {kind} {}", remote.url).unwrap();
                for (name, value) in &remote.headers {
                    writeln!(out, "  header {name} = {value}").unwrap();
                }
                writeln!(out, "  {:?}", remote.oauth).unwrap();
            }
        }
        let mount = &server.mount;
        writeln!(out, "  {:?} {:?} {:?} {:?}", mount.timeout, mount.start_timeout, mount.include, mount.exclude).unwrap();
    }
    for note in &found.notes {
        writeln!(out, "{:?} {note}", note.kind).unwrap();
    }
    for question in &found.questions {
        writeln!(out, "{question:?}").unwrap();
    }
    out.replace(home.places.home.to_str().unwrap(), "~")
}

/// Write the files anew with `BANYAN_UPDATE_GOLDEN=1 cargo test -p gateway import`.
fn assert_golden(name: &str, text: &str) {
    let path = fixtures().join(name);
    if std::env::var_os("BANYAN_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; this is what was made:\n{text}");
}

#[test]
fn each_client_s_files_are_taken_as_expected() {
    for client in Client::ALL {
        let home = FILES
            .iter()
            .filter(|(fixture, _)| fixture.starts_with(client.id()))
            .fold(Home::new(), |home, (fixture, path)| home.with(fixture, path));
        home.put("work/shop/.env", "# keys\nexport SHOP_KEY=\"in quotes\"\nPLAIN = value\n");
        let found = discover(&home.places);
        assert!(!found.servers.is_empty(), "{client}");
        assert_golden(&format!("{}/expected.txt", client.id()), &summary(&found, &home));
    }
}

#[test]
fn all_clients_together_give_each_server_once_and_a_file_that_reads_back() {
    let home = Home::all();
    let found = discover(&home.places);
    let text = to_toml(&found);
    assert_golden("all.toml", &text.replace(home.places.home.to_str().unwrap(), "~"));

    assert_reads_back(&found, &home.places);
}

fn assert_reads_back(found: &Found, places: &Places) {
    let text = to_toml(found);
    let config = config::parse(&text, &places.cwd.join("banyan.toml"), places).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let as_read = |mount: &std::sync::Arc<Mount>| Mount { origin: "banyan.toml".into(), ..Mount::clone(mount) };
    let expected: Vec<_> = found.mounts().values().map(as_read).collect();
    let read: Vec<_> = config.mounts.values().map(as_read).collect();
    assert_eq!(read, expected, "{text}");
}

#[test]
fn files_are_where_each_platform_has_them() {
    for (platform, env, files) in [
        (
            Platform::Mac,
            vec![],
            [
                "Library/Application Support/Claude/claude_desktop_config.json",
                "Library/Application Support/Code/User/mcp.json",
                ".config/zed/settings.json",
                ".codex/config.toml",
            ],
        ),
        (
            Platform::Windows,
            vec![("APPDATA", "AppData/Roaming")],
            [
                "AppData/Roaming/Claude/claude_desktop_config.json",
                "AppData/Roaming/Code/User/mcp.json",
                "AppData/Roaming/Zed/settings.json",
                ".codex/config.toml",
            ],
        ),
        (
            Platform::Linux,
            vec![("XDG_CONFIG_HOME", "xdg"), ("CODEX_HOME", "codex-home"), ("CLAUDE_CONFIG_DIR", "claude-home")],
            ["xdg/Claude/claude_desktop_config.json", "xdg/Code/User/mcp.json", "xdg/zed/settings.json", "codex-home/config.toml"],
        ),
    ] {
        let mut home = Home::new();
        home.places.platform = platform;
        for (name, below) in env {
            home.places.env.insert(name.into(), home.places.home.join(below).to_str().unwrap().into());
        }
        let texts = [
            r#"{"mcpServers":{"a":{"command":"a"}}}"#,
            r#"{"servers":{"b":{"command":"b"}}}"#,
            r#"{"context_servers":{"c":{"command":"c"}}}"#,
            "[mcp_servers.d]\ncommand = \"d\"",
        ];
        files.iter().zip(texts).for_each(|(file, text)| home.put(file, text));
        let names: Vec<_> = discover(&home.places).servers.into_iter().map(|server| server.name).collect();
        assert_eq!(names, ["a", "b", "d", "c"], "{platform:?}");
    }
}

#[test]
fn the_documentation_names_every_client_and_its_files() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")).unwrap();
    let places = nowhere();
    for client in Client::ALL {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", client.id()))).unwrap_or_else(|| panic!("{client}"));
        for location in client.files(&places) {
            let path = match &location.project {
                Some(project) => location.path.strip_prefix(project).unwrap().display().to_string(),
                None => match location.path.strip_prefix("/home/ada/.config") {
                    Ok(below) => below.display().to_string(),
                    Err(_) => format!("~/{}", location.path.strip_prefix("/home/ada").unwrap().display()),
                },
            };
            assert!(row.contains(&format!("`{path}`")), "{client}: {path}");
        }
        assert_eq!(row.contains("addresses"), client.takes_address(), "{client}");
    }
}

#[test]
fn a_project_s_files_are_taken_up_to_the_root_of_its_repository() {
    let mut home = Home::new();
    let file = |name: &str| format!(r#"{{"mcpServers":{{"{name}":{{"command":"{name}"}}}}}}"#);
    home.put("work/shop/deep/.mcp.json", &file("deep"));
    home.put("work/shop/.mcp.json", &file("root"));
    home.put("work/.mcp.json", &file("outside"));
    home.places.cwd = home.places.cwd.join("deep");
    let found = discover(&home.places);
    let names: Vec<_> = found.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["deep", "root"]);
    assert_eq!(found.servers[0].origins[0].project, Some(home.places.cwd));
}

#[test]
fn nothing_at_all_is_no_error() {
    let found = discover(&Home::new().places);
    assert!(found.files.is_empty() && found.servers.is_empty() && found.notes.is_empty());
}

#[test]
fn a_file_that_is_not_readable_is_told_and_the_others_are_taken() {
    let home = Home::new();
    home.put(".cursor/mcp.json", "{ \"mcpServers\": { \"a\": \"hunter2\" \"b\" } }");
    home.put(".codex/config.toml", "[mcp_servers.x]\ncommand = \"hunter2");
    home.put(".gemini/settings.json", "[]");
    home.put(".config/zed/settings.json", "");
    home.put(".claude.json", r#"{"mcpServers":{"a":{"command":"a"}}}"#);
    std::fs::create_dir_all(home.places.home.join(".codeium/windsurf/mcp_config.json")).unwrap();
    let found = discover(&home.places);
    assert_eq!(found.servers.len(), 1);
    let notes: Vec<_> =
        found.notes.iter().map(|note| format!("{}: {}", note.file.strip_prefix(&home.places.home).unwrap().display(), note.text)).collect();
    assert_eq!(
        notes,
        [
            ".cursor/mcp.json: it is not JSON: Expected comma in line 1, column 33",
            ".codeium/windsurf/mcp_config.json: it is not a file",
            ".codex/config.toml: it is not TOML: invalid basic string, expected `\"` in line 2",
            ".gemini/settings.json: it is JSON, but not an object",
        ]
    );
}

fn from_text(text: &str) -> Found {
    let home = Home::new();
    home.put("servers.json", text);
    from_file(&home.places.home.join("servers.json"), &home.places).unwrap()
}

#[test]
fn a_named_file_may_have_any_client_s_shape() {
    for text in [
        r#"{"mcpServers":{"a":{"command":"x"}}}"#,
        r#"{"servers":{"a":{"type":"stdio","command":"x"}}, "inputs": []}"#,
        r#"{"context_servers":{"a":{"command":{"path":"x"}}}}"#,
        r#"{"mcp_servers":{"a":{"command":"x"}}}"#,
        r#"{"mcp":{"servers":{"a":{"command":"x"}}}}"#,
    ] {
        let found = from_text(text);
        assert_eq!((found.servers.len(), found.notes.as_slice()), (1, [].as_slice()), "{text}");
    }
}

#[test]
fn a_named_file_that_holds_no_servers_is_an_error_with_its_reason() {
    let home = Home::new();
    home.put("a.json", "{}");
    home.put("b.toml", "[mcp_servers.a]\ncommand = \"x\"");
    let error = |name: &str| from_file(&home.places.home.join(name), &home.places).unwrap_err().to_string();
    assert!(error("a.json").ends_with("a.json`: it has no object `mcpServers` (or `servers`, `context_servers`, `mcp_servers`)"));
    assert!(error("none.json").ends_with("there is no such file"));
    assert_eq!(from_file(&home.places.home.join("b.toml"), &home.places).unwrap().servers.len(), 1);
}

#[test]
fn names_that_become_one_are_numbered_in_the_order_of_the_file() {
    let long = "x".repeat(70);
    let text = format!(
        r#"{{"mcpServers":{{"My Server":{{"command":"1"}},"my-server":{{"command":"2"}},"my.server":{{"command":"3"}},"{long}":{{"command":"4"}},"{long}y":{{"command":"5"}}}}}}"#
    );
    let found = from_text(&text);
    let names: Vec<_> = found.servers.iter().map(|server| server.mount.name.as_str()).collect();
    assert_eq!(names, ["my-server", "my-server-2", "my-server-3", &"x".repeat(63), &format!("{}-2", "x".repeat(61))]);
    let renamed = found.notes.iter().filter(|note| note.kind == NoteKind::Renamed).count();
    assert_eq!(renamed, 5, "{:#?}", found.notes);
}

#[test]
fn one_server_in_two_places_is_one() {
    let found = from_text(
        r#"{"mcpServers":{
            "a": {"command":"x","args":["1"],"env":{"K":"v"}},
            "other-name": {"command":"x","args":["1"],"env":{"K":"v"}},
            "A": {"command":"x","args":["1"],"env":{"K":"w"}},
            "b": {"command":"x","args":["1"],"env":{"K":"w"}},
            "web": {"url":"https://x/mcp","disabled":true},
            "Web": {"type":"http","url":"https://x/mcp","headers":{"Authorization":"Bearer t"}}
        }}"#,
    );
    let servers: Vec<_> = found.servers.iter().map(|server| (server.name.as_str(), server.origins.len(), server.enabled)).collect();
    assert_eq!(servers, [("a", 3, true), ("b", 1, true), ("web", 2, true)]);
    let texts: Vec<_> = found.notes.iter().filter(|note| note.kind == NoteKind::Same).map(|note| note.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "it is the server `a` again",
            "it is the server `a` again; its secrets differ, and those of the first are taken",
            "it is the server `web` again; its secrets are taken, as the first has none",
        ]
    );
    assert_eq!(found.plain_secrets().iter().map(ToString::to_string).collect::<Vec<_>>(), ["web: header Authorization"]);
}

#[test]
fn entries_that_lead_back_to_banyan_are_left_out() {
    for entry in [
        r#"{"command":"banyan","args":["stdio"]}"#,
        r#"{"command":"C:\\Program Files\\Banyan.exe"}"#,
        r#"{"command":{"path":"/opt/banyan"}}"#,
        r#"{"url":"http://127.0.0.1:7411/mcp"}"#,
        r#"{"httpUrl":"http://[::1]:7411/mcp/github"}"#,
        r#"{"serverUrl":"http://localhost:7411/mcp"}"#,
        r#"{"command":"npx","args":["mcp-remote","http://localhost:7411/mcp"]}"#,
    ] {
        let found = from_text(&format!(r#"{{"mcpServers":{{"x":{entry}}}}}"#));
        assert!(found.servers.is_empty() && found.notes[0].kind == NoteKind::Banyan, "{entry}: {found:#?}");
    }
    for entry in [r#"{"command":"banyan-tree"}"#, r#"{"url":"http://localhost:9999/mcp"}"#, r#"{"url":"https://banyan.example.com/mcp"}"#] {
        assert_eq!(from_text(&format!(r#"{{"mcpServers":{{"x":{entry}}}}}"#)).servers.len(), 1, "{entry}");
    }
}

#[test]
fn what_is_wrong_with_an_entry_is_told() {
    for (entry, problem) in [
        ("[]", "it is not an object with `command` or `url`"),
        ("{}", "it has neither `command` nor `url`"),
        (r#"{"command":1}"#, "its `command` is not a text"),
        (r#"{"command":""}"#, "its `command` is empty"),
        (r#"{"command":"x","args":"y"}"#, "its `args` is not a list of texts"),
        (r#"{"command":"x","args":[[]]}"#, "its `args` is not a list of texts"),
        (r#"{"command":"x","env":[]}"#, "its `env` is not an object of texts"),
        (r#"{"command":"x","env":{"A":{}}}"#, "its `env.A` is not a text"),
        (r#"{"command":"x","args":["${file:relative}"]}"#, "not an absolute path"),
        (r#"{"type":"http","command":"x"}"#, "it has neither `command` nor `url`"),
        (r#"{"url":"x/mcp"}"#, "its `url` is not an http:// or https:// address"),
        (r#"{"url":"https://${input:host}/"}"#, "its `url` takes a secret, and would show it"),
        (r#"{"url":"https://${A}/${B:-b}/${C}"}"#, "takes the variable `A`, `C`, which is not set"),
        (r#"{"type":"websocket","url":"ws://x"}"#, "it is reached by `websocket`, which Banyan does not speak"),
    ] {
        let found = from_text(&format!(r#"{{"mcpServers":{{"x":{entry}}}}}"#));
        let [note] = found.notes.as_slice() else { panic!("{entry}: {found:#?}") };
        assert!(found.servers.is_empty() && note.kind == NoteKind::Skipped && note.text.contains(problem), "{entry}: {note}");
    }
}

#[test]
fn an_answer_that_is_no_secret_is_put_in_place() {
    let mut found = from_text(
        r#"{"inputs":[{"id":"region","description":"Region","options":["eu"]}],
            "servers":{"a":{"command":"x","args":["--region=${input:region}"],"env":{"KEY":"${input:key}"}}}}"#,
    );
    let asked: Vec<_> = found.questions.iter().map(|question| (question.name.as_str(), question.hidden)).collect();
    assert_eq!(asked, [("key", true), ("region", false)]);
    found.answer("region", "${eu}");
    assert_eq!(found.questions.len(), 1);
    let Transport::Stdio(process) = &found.servers[0].mount.transport else { panic!() };
    assert_eq!(process.args[0].as_plain(), Some("--region=${eu}"));
    assert_eq!(process.env["KEY"].to_string(), "${keyring:key}");
}

#[test]
fn secrets_in_plain_text_are_found_and_can_be_replaced() {
    let mut found = from_text(
        r#"{"mcpServers":{
            "a": {"command":"x","args":["--api-key","s1","--token=s2","-e","DB_PASSWORD=s3","--header","Authorization: Bearer s4","--keyboard","us","--secret","--verbose","--max-tokens=5","https://x?token=y"],
                  "env":{"API_KEY":"s5","REF_TOKEN":"${env:T}","LANG":"de","EMPTY_KEY":""}},
            "b": {"url":"https://x/","headers":{"Authorization":"Bearer s6","X-Api-Key":"s7","X-Team":"blue"}}
        }}"#,
    );
    let secrets = found.plain_secrets();
    let shown: Vec<_> = secrets.iter().map(|secret| format!("{secret} {} {}", secret.name, secret.value.expose())).collect();
    assert_eq!(
        shown,
        [
            "a: args[1] a/api-key s1",
            "a: args[2] a/token s2",
            "a: args[4] a/DB_PASSWORD s3",
            "a: args[6] a/Authorization s4",
            "a: args[12] a/token-2 y",
            "a: env API_KEY a/API_KEY s5",
            "b: header Authorization b/Authorization s6",
            "b: header X-Api-Key b/X-Api-Key s7",
        ]
    );
    assert!(!format!("{found:?} {secrets:?}").contains("s1"));
    secrets.iter().for_each(|secret| found.refer(secret));
    assert_eq!(found.plain_secrets(), []);
    let text = to_toml(&found);
    assert!(text.contains("Authorization: Bearer ${keyring:a/Authorization}") && text.contains("\"--token=${keyring:a/token}\""), "{text}");
    assert!(!["s1", "s2", "s3", "s4", "s5", "s6", "s7"].iter().any(|secret| text.contains(&format!("{secret}\""))), "{text}");
}

fn nowhere() -> Places {
    Places {
        home: "/home/ada".into(),
        cwd: "/home/ada/project".into(),
        platform: Platform::Linux,
        env: [("A".to_owned(), "a".to_owned())].into(),
        listen: config::resolved::Config::DEFAULT_LISTEN,
    }
}
