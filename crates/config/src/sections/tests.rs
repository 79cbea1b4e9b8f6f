//! Readings of whole files. Starts nothing.

use std::io;
use std::time::Duration;

use banyan_model::Segment;
use proptest::prelude::*;

use super::*;
use crate::resolved::{Demand, Hosts, Keys, Mount, OAuth, Process, Remote, Search, Sharing, Transport};
use crate::secret::{KeyringError, SecretRef};
use crate::{Problem, diff, parse};

mod slips;

pub(super) struct Fixed;

impl Sources for Fixed {
    fn env(&self, name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/ada".into()),
            "REGION" => Some("eu".into()),
            _ => None,
        }
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn keyring(&self, _: &str) -> Result<Option<String>, KeyringError> {
        Ok(None)
    }
}

fn read(text: &str) -> Config {
    parse(text, Path::new("/etc/banyan/banyan.toml"), &Fixed).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    parse(text, Path::new("banyan.toml"), &Fixed).unwrap_err().to_string()
}

fn problems(text: &str) -> Vec<Problem> {
    match parse(text, Path::new("banyan.toml"), &Fixed).unwrap_err() {
        ConfigError::Invalid { problems, .. } => problems,
        error @ (ConfigError::Empty { .. } | ConfigError::Read { .. }) => panic!("{error}"),
    }
}

fn mount(config: &Config, name: &str) -> Mount {
    Mount::clone(&config.mounts[&Segment::new(name).unwrap()])
}

#[test]
fn an_empty_file_is_the_default_configuration() {
    assert_eq!(read(""), Config::default());
}

#[test]
fn a_file_full_of_mistakes_shows_the_first_hundred() {
    let text = format!("[mount.a]\ncommand = 'x'\nargs = [{}]\n", "1,".repeat(2500));
    let error = parse(&text, Path::new("banyan.toml"), &Fixed).unwrap_err();
    assert!(error.to_string().ends_with("\n\nand 2400 more: mend these first"), "{}", error.to_string().len());
    let ConfigError::Invalid { problems, more, .. } = error else { panic!("{error}") };
    assert_eq!((problems.len(), more), (100, 2400));
}

#[test]
fn the_terms_of_registrations_are_lowered_with_those_of_single_segments() {
    let config =
        read("[registry]\nsticky = \"always\"\ngrace = \"0s\"\nhosts = [\"*.Plant.example\"]\n[registry.segment.lab]\nproof = \"never\"\n");
    let registry = config.registry.unwrap();
    assert_eq!((registry.principals, &registry.hosts), (None, &Hosts::of(["*.plant.example"])), "nobody is named by default");
    assert_eq!((registry.grace, registry.policy.proof, registry.policy.sticky), (Duration::ZERO, Demand::ForChanges, Demand::Always));
    let lab = registry.policies[&Segment::nearest("lab")];
    assert_eq!((lab.proof, lab.sticky), (Demand::Never, Demand::Always));
    let flaws = refused("[registry.segment.Lab]\nproof = \"never\"\n");
    assert!(flaws.contains("[registry.segment.lab]"), "{flaws}");
}

#[test]
fn a_child_process_is_lowered_with_its_secrets_as_references() {
    let config = read(
        r#"
        [mount.files]
        command = "npx"
        args = ["-y", "server", "--key=${env:KEY}"]
        env = { TOKEN = "${keyring:files}", DEBUG = "1" }
        pass_env = ["AWS_*"]
        cwd = "~/project"
        era = "stateless"
        sharing = "never"
        timeout = "1m30s"
        include = ["read_*"]
        rename = { getUser = "user" }
        "#,
    );
    let files = mount(&config, "files");
    let Transport::Stdio(process) = files.transport else { panic!("{files:?}") };
    let reference = |text| SecretRef::parse(text).unwrap();
    assert_eq!(
        process,
        Process {
            command: "npx".into(),
            args: ["-y", "server", "--key=${env:KEY}"].map(reference).into(),
            env: [("DEBUG".to_owned(), reference("1")), ("TOKEN".to_owned(), reference("${keyring:files}"))].into(),
            pass_env: vec!["AWS_*".into()],
            cwd: Some("/home/ada/project".into()),
            shared: None,
        }
    );
    assert_eq!((files.era, files.sharing), (Some(banyan_model::Era::Stateless), Sharing::Never));
    assert_eq!((files.timeout, files.start_timeout), (Duration::from_secs(90), Duration::from_secs(60)));
    let error = process.args[2].resolve(&Fixed).unwrap_err().to_string();
    assert!(error.contains("`KEY` (used by mount.files.args[2]) is not set"), "{error}");
}

#[test]
fn a_directory_that_is_not_absolute_starts_beside_the_file() {
    let config = read("mount.a = { command = \"x\", cwd = \"tools\" }");
    let Transport::Stdio(process) = mount(&config, "a").transport else { panic!() };
    assert_eq!(process.cwd, Some("/etc/banyan/tools".into()));
}

#[test]
fn sign_in_is_on_for_https_unless_a_header_or_the_file_says_otherwise() {
    let oauth = |keys: &str| match mount(&read(&format!("[mount.a]\n{keys}")), "a").transport {
        Transport::Http(Remote { oauth, .. }) | Transport::Sse(Remote { oauth, .. }) => oauth,
        other @ (Transport::Family(_) | Transport::Stdio(_)) => panic!("{other:?}"),
    };
    assert_eq!(oauth("url = \"https://x/mcp\""), Some(OAuth::default()));
    assert_eq!(oauth("url = \"http://x/mcp\""), None);
    assert_eq!(oauth("url = \"https://x/mcp\"\nheaders = { authorization = \"Bearer ${env:T}\" }"), None);
    assert_eq!(oauth("url = \"https://x/mcp\"\noauth = false"), None);
    assert_eq!(oauth("url = \"http://x/mcp\"\noauth = true"), Some(OAuth::default()));
    let given = oauth("url = \"https://x/mcp\"\noauth = { client_id = \"me\", scopes = [\"a\"], redirect_port = 9000 }");
    let expected = OAuth { client_id: Some("me".into()), scopes: vec!["a".into()], redirect_port: Some(9000), ..OAuth::default() };
    assert_eq!(given, Some(expected));
}

#[test]
fn an_address_takes_variables() {
    let config = read("[mount.a]\nurl = \"https://${env:REGION}.x/${env:PART:-mcp}\"\ntransport = \"sse\"");
    let Transport::Sse(remote) = mount(&config, "a").transport else { panic!() };
    assert_eq!(remote.url.as_str(), "https://eu.x/mcp");
}

#[test]
fn a_disabled_mount_is_left_out_but_still_checked() {
    assert!(read("[mount.a]\ncommand = \"x\"\ndisabled = true").mounts.is_empty());
    assert!(refused("[mount.a]\ndisabled = true").contains("neither `command` nor `url`"));
}

#[test]
fn approvals_are_read_under_one_of_two_names() {
    let named = |section: &str| read(&format!("[{section}]\nmode = \"mutable\"")).gate;
    assert!(named("approvals").is_some() && named("approvals") == named("gate"));
    assert!(refused("[approvals]\nmode = \"mutable\"\n[gate]\nmode = \"off\"").contains("former name of `[approvals]`"));
}

#[test]
fn variables_named_at_the_top_pass_to_every_program() {
    let config = read("pass_env = [\"AWS_*\"]\n[mount.a]\ncommand = \"x\"\npass_env = [\"B\"]\n[mount.b]\nurl = \"http://h/mcp\"");
    let passed = config.mounts.values().map(|mount| match &mount.transport {
        Transport::Stdio(process) => process.pass_env.clone(),
        Transport::Family(_) | Transport::Http(_) | Transport::Sse(_) => Vec::new(),
    });
    assert_eq!(passed.collect::<Vec<_>>(), [vec!["B".to_owned(), "AWS_*".to_owned()], vec![]]);
}

#[test]
fn mistakes_of_form_and_meaning_come_in_one_round() {
    let text = "[mount.a]\ncommand = \"x\"\ntimeout = \"5 minutes\"\nstart_timeout = 30\n\
                [mount.b]\nurl = \"ftp://x\"\ntransport = \"smoke\"\n[mount.c]\ncomand = \"y\"\n";
    let told = refused(text);
    for part in ["5 minutes", "start_timeout", "not an http:// or https:// address", "smoke", "did you mean `command`?"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("neither `command` nor `url`"), "a mistake that follows from another: {told}");
}

#[test]
fn a_clients_file_is_known_as_such() {
    let told = refused("{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
    assert!(told.contains("this is JSON") && told.contains("banyan import FILE --write"), "{told}");
}

#[test]
fn profiles_keep_the_order_of_the_file() {
    let config = read("[profile.z]\nsearch = \"never\"\n[profile.a]\nsearch = 7\n[profile.m]\nnames = \"dotted\"");
    let found: Vec<_> = config.profiles.iter().map(|profile| (&*profile.name, profile.search)).collect();
    assert_eq!(found, [("z", Search::Never), ("a", Search::Above(7)), ("m", Search::default())]);
}

#[test]
fn all_wrong_keys_and_types_are_reported_at_once() {
    let text = "\
listn = \"127.0.0.1:1\"

[mount.files]
comand = \"npx\"
args = [1]
transport = \"htp\"

[limits]
calls = 0
request_size = 5
";
    assert_eq!(
        refused(text),
        "\
unknown key `listn` at the top
 --> banyan.toml:1:1
  |
1 | listn = \"***\"
  | ^^^^^
  = did you mean `listen`?

unknown key `comand` in `mount.files`
 --> banyan.toml:4:1
  |
4 | comand = \"***\"
  | ^^^^^^
  = did you mean `command`?

`mount.files.args` is a number, and must be a string
 --> banyan.toml:5:9
  |
5 | args = [***]
  |         ^^^

`mount.files.transport` is \"htp\", and must be one of `http`, `sse`, `a2a`
 --> banyan.toml:6:13
  |
6 | transport = \"htp\"
  |             ^^^^^
  = did you mean `http`?

`limits.calls` must be at least 1
 --> banyan.toml:9:9
  |
9 | calls = 0
  |         ^

`limits.request_size` is a number, and must be a string
  --> banyan.toml:10:16
   |
10 | request_size = 5
   |                ^
   = for example \"16MiB\"

1 more mistake may only follow from these, and is left out"
    );
}

#[test]
fn what_the_values_say_is_reported_at_once_too() {
    let text = "\
[mount.\"My Server\"]
command = \"x\"
timeout = \"30\"
[mount.b]
command = \"x\"
url = \"http://x\"
";
    assert_eq!(
        refused(text),
        "\
`My Server` is not a legal name: use 1 to 63 of a-z, 0-9, `_` and `-`
 --> banyan.toml:1:8
  |
1 | [mount.\"My Server\"]
  |        ^^^^^^^^^^^
  = for example [mount.my-server]

\"30\" is not a duration of 1ms to 365d
 --> banyan.toml:3:11
  |
3 | timeout = \"30\"
  |           ^^^^
  = write whole numbers with ms, s, m, h or d, for example \"30s\" or \"1h30m\"

mount `b` has both `command` and `url`
 --> banyan.toml:6:7
  |
6 | url = \"***\"
  |       ^^^^^
  = keep `command` for a program to start, or `url` for a server that runs elsewhere"
    );
}

#[test]
fn an_open_address_without_a_token_is_refused() {
    let open = "listen = \"0.0.0.0:7411\"\n";
    assert_eq!(
        refused(open),
        "\
0.0.0.0:7411 can be reached from other machines, and no token is configured: anybody could call every tool
 --> banyan.toml:1:10
  |
1 | listen = \"0.0.0.0:7411\"
  |          ^^^^^^^^^^^^^^
  = make a token with `banyan token add NAME`, or listen on 127.0.0.1"
    );
    let token = format!("[[token]]\nname = \"ci\"\nsha256 = \"{}\"\n", "Ab".repeat(32));
    let config = read(&format!("{open}{token}"));
    assert_eq!((config.listen.port(), config.tokens[0].sha256), (7411, [0xab; 32]));
    for loopback in ["127.0.0.1:0", "[::1]:80", "localhost:80", "127.8.8.8:1"] {
        assert!(read(&format!("listen = \"{loopback}\"")).listen.ip().is_loopback());
    }
}

#[test]
fn text_that_is_not_toml_is_shown_where_it_breaks() {
    assert_eq!(
        refused("[mount.a]\ntimeout = 30s\n"),
        "\
this is not TOML: string values must be quoted, expected literal string
 --> banyan.toml:2:11
  |
2 | timeout = 30s
  |           ^^^
  = put the text between quotes"
    );
}

/// Wrong files, a line each: a text, and message and advice of the only problem.
#[test]
fn each_mistake_has_its_own_advice() {
    for (text, message, help) in [
        ("[mcpServers.x]\ncommand = \"a\"", "unknown key `mcpServers`", "`banyan import FILE.json --write` turns"),
        ("[mount.a]\ncommand = \"x\"\ntype = \"http\"", "unknown key `type`", "did you mean `transport`?"),
        ("colour = 1", "unknown key `colour`", "known here: $schema, listen"),
        ("listen = \"7411\"", "must be an IP address with a port", "\"0.0.0.0:7411\" for all interfaces"),
        ("allowed_hosts = [\"https://x/\"]", "is not the name of a host", "without scheme, port and path"),
        ("[[token]]\nname = \"a\"", "`token` needs `sha256`", ""),
        ("[[token]]\nname = \"a\"\nsha256 = \"sk-plain\"", "is not a SHA-256 hash", "`banyan token add NAME`"),
        ("mount.a = { command = \"\" }", "`command` is empty", "name the program"),
        ("mount.a = {}", "has neither `command` nor `url`", "add command = \"PROGRAM\""),
        ("mount.a = { url = \"ftp://x\" }", "is not an http:// or https:// address", "for example \"https://"),
        ("mount.a = { url = \"https://${env:NONE}/\" }", "`NONE` is not set", "secrets belong into `headers`"),
        ("mount.a = { url = \"https://x/${keyring:k}\" }", "takes ${env:NAME} only", "secrets belong into `headers`"),
        ("mount.a = { command = \"x\", headers = {} }", "`headers` of mount `a` has no meaning beside `command`", "`url`"),
        ("mount.a = { url = \"http://x\", cwd = \"/\" }", "`cwd` of mount `a` has no meaning beside `url`", "`command`"),
        ("mount.a = { command = \"x\", env = { \"A=B\" = \"\" } }", "can't be the name of a variable", "env = {"),
        ("mount.a = { command = \"x\", env = { A = \"${B}\" } }", "`${B}` is not a reference", ""),
        ("mount.a = { command = \"x\", include = [\"\"] }", "an empty text matches nothing", "`*` for all"),
        ("mount.a = { command = \"x\", rename = { b = \"B\" } }", "`B` is not a legal name", "for example \"b\""),
        ("mount.a = { command = \"x\", rename = { b = \"x\", c = \"x\" } }", "would both be named `x`", "of its own"),
        ("mount.a = { url = \"http://x\", headers = { \"a b\" = \"\" } }", "can't be the name of a header", ""),
        ("mount.a = { url = \"http://x\", headers = { Mcp-Name = \"\" } }", "is written by Banyan itself", "leave it out"),
        ("mount.a = { url = \"http://x\", headers = { A = \"\", a = \"\" } }", "is there twice", ""),
        ("mount.a = { url = \"http://x\", headers = { A = \"a\\nb\" } }", "one line of text", ""),
        ("mount.a = { url = \"http://x\", oauth = { client_metadata_url = \"x\" } }", "has an https:// address", "leave it out"),
        ("mount.a = { url = \"http://x\", oauth = 3 }", "must be true or false or a table", ""),
        ("mount.a = { url = \"http://x\", oauth = { redirect_port = 70000 } }", "must be at most 65535", ""),
        ("[limits]\nrequest_size = \"5M\"", "\"5M\" is not a size", "\"16MiB\""),
        ("[limits]\nsession_idle = \"366d\"", "is not a duration of 1ms to 365d", "\"1h30m\""),
        ("[limits]\nsession_idle = \"0s\"", "\"0s\" is not a duration of 1ms to 365d", "\"1h30m\""),
        ("[profile.a]\nsearch = \"alwys\"", "must be one of `always`, `never`", "did you mean `always`?"),
        ("[profile.a]\nsearch = 1.5", "is a fraction, and must be a string or a whole number", ""),
        ("[profile.a]\nrename = { \"a.b\" = \"a b\" }", "can't be the name of a tool", "1 to 128 letters"),
        ("[telemetry]\notlp = \"x:4318\"", "is not an http:// or https:// address", ""),
    ] {
        let found = problems(text);
        let [problem] = found.as_slice() else { panic!("{text}: {found:#?}") };
        assert!(problem.message.contains(message), "{text}: {problem:#?}");
        assert!(problem.help.as_deref().unwrap_or_default().contains(help), "{text}: {problem:#?}");
    }
}

#[test]
fn a_token_names_a_profile_that_exists_and_is_named_once() {
    let hash = "0".repeat(64);
    let token = |profile: &str| format!("[[token]]\nname = \"a\"\nsha256 = \"{hash}\"\nprofile = \"{profile}\"\n");
    let unknown = &problems(&format!("{}[profile.reader]\n", token("readr")))[0];
    assert_eq!(unknown.help.as_deref(), Some("did you mean `reader`?"));
    let twice = problems(&format!("{0}{0}[profile.reader]\n", token("reader")));
    assert_eq!(twice[0].message, "there are two tokens named `a`");
}

#[test]
fn carets_stand_under_the_right_characters() {
    let text = "[mount.a]\n\tenv = { \"ä\" = \"ö\", \"=\" = 'x' }\ncommand = \"x\"";
    let problem = &problems(text)[0];
    assert_eq!((problem.line, problem.column), (2, 21));
    assert_eq!(problem.snippet, "2 | \tenv = { \"***\" = \"***\", \"=\" = '***' }\n  | \t                       ^^^");
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "[\\[\\]{}\"'\\\\=.,#a-cmount0-9äö€ \t\r\n$:-]{0,80}") {
        if let Err(error) = parse(&text, Path::new("banyan.toml"), &Fixed) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn who_others_are_is_read_with_paths_beside_the_file() {
    let config = read(
        "resource = \"https://gate.example.com/mcp\"\n\
         [tls]\ncertificate = \"gate.pem\"\nkey = \"/k\"\nclient_ca = \"ca.pem\"\nclients = \"required\"\n\
         [issuer.login]\nissuer = \"https://l\"\nkeys = \"https://l/jwks\"\nscopes = [\"a\"]\n\
         [authority.factory]\nkeys = \"factory.jwks\"\nnames = [\"*.x\"]\n",
    );
    let tls = config.trust.tls.as_ref().unwrap();
    assert_eq!((tls.certificate.to_str(), tls.key.to_str(), tls.required), (Some("/etc/banyan/gate.pem"), Some("/k"), true));
    assert_eq!(config.trust.issuers[0].keys, Keys::Url("https://l/jwks".parse().unwrap()));
    assert_eq!(config.trust.authorities[0].keys, Keys::File("/etc/banyan/factory.jwks".into()));
    assert!(config.wants_credential());
    assert!(read("listen = \"0.0.0.0:1\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\nclient_ca = \"a\"").tokens.is_empty());
}

#[test]
fn what_would_not_protect_is_refused() {
    let keys = "keys = \"k\"\n";
    for (text, why, fix) in [
        (format!("[issuer.a]\nissuer = \"i\"\n{keys}"), "`resource` is missing", "resource = \"https://"),
        (format!("resource = \"https://g/\"\n[authority.a]\n{keys}names = []\n"), "prove no name", "names = ["),
        ("resource = \"https://g/#x\"".into(), "no fragment", "leave out"),
        (format!("resource = \"https://g/\"\n[issuer.\"a b\"]\nissuer = \"i\"\n{keys}"), "can't be the name", "letters"),
        ("resource = \"https://g/\"\n[issuer.a]\nissuer = \"i\"\nkeys = \"http://x/jwks\"".into(), "exchanged on the way", "https://"),
        ("[tls]\ncertificate = \"c\"\nkey = \"k\"\nclients = \"required\"".into(), "no authority for them", "client_ca"),
        ("listen = \"0.0.0.0:1\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"".into(), "anybody could call", "banyan token add"),
        ("[mount.a]\nurl = \"http://x/\"\ntls = {}".into(), "no meaning for an http://", "https://"),
        ("[mount.a]\nurl = \"https://x/\"\ntls = { key = \"k\" }".into(), "not both", "give `certificate` and `key`"),
        ("[mount.a]\ncommand = \"x\"\ninsecure = true".into(), "`insecure` of mount `a` has no meaning", "`url`"),
    ] {
        let told = refused(&text);
        assert!(told.contains(why) && told.contains(fix), "{text}\n{told}");
    }
}

/// Every key at the top with a value other than the default.
const EACH: [(&str, &str); 26] = [
    ("listen", "listen = \"127.0.0.1:1\""),
    ("allowed_hosts", "allowed_hosts = [\"a.example\"]"),
    (
        "behind_proxy",
        "behind_proxy = true\n[[token]]\nname = \"a\"\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"",
    ),
    ("tls", "tls = { certificate = \"a\", key = \"b\" }"),
    ("resource", "resource = \"https://a.example\""),
    ("issuer", "resource = \"https://a.example\"\n[issuer.a]\nissuer = \"x\"\nkeys = \"k\""),
    ("authority", "resource = \"https://a.example\"\n[authority.a]\nkeys = \"k\"\nnames = [\"*\"]"),
    ("token", "[[token]]\nname = \"a\"\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\""),
    ("group", "[group.a]\nmembers = [\"x\"]"),
    ("budget", "[budget.a]\nmax_calls_per_minute = 1"),
    ("limits", "[limits]\ncalls = 1"),
    ("mount", "[mount.a]\ncommand = \"x\""),
    ("approvals", "[approvals]"),
    ("gate", "[gate]"),
    ("pass_env", "pass_env = [\"A\"]\n[mount.a]\ncommand = \"x\""),
    ("pins", "[pins]\nmode = \"hold\""),
    ("registry", "[registry]"),
    ("rooms", "[rooms]\nopen = true"),
    ("room", "[room.a]"),
    ("participant", "[room.r]\n[participant.a]\ntoken = \"${env:A}\"\nrooms = [\"r\"]"),
    ("node", "[node]\nsegment = \"a\"\n[[parent]]\nurl = \"https://a.example\""),
    ("parent", "[node]\nsegment = \"a\"\n[[parent]]\nurl = \"https://a.example\""),
    ("names", "names = \"dotted\""),
    ("profile", "[profile.a]"),
    ("telemetry", "[telemetry]\notlp = \"http://localhost:4318\""),
    ("audit", "[audit]\nenabled = false"),
];

#[test]
fn every_key_of_the_file_makes_a_difference() {
    // Rules stand in a file of their own.
    let untried = ["$schema", "policy"];
    let sections = Sections::default();
    let keys = sections.schema()["properties"].as_object().unwrap().keys();
    let tried: Vec<&str> = EACH.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys.filter(|key| !tried.contains(&key.as_str())).collect::<Vec<_>>(), untried);
    for (key, text) in EACH {
        assert_ne!(diff::diff(&Config::default(), &read(text)), [], "{key}");
    }
}
