//! `banyan ca`: files, output, and changes of `banyan.toml`. A gate's reception of the certificates is not tried here.

use std::os::unix::fs::PermissionsExt;

use crate::home::Home;

const FILE: &str = "# ours\nlisten = \"0.0.0.0:7000\"\nallowed_hosts = [\"gate.example.com\"]\n[[token]]\nname = \"ci\"\n";

fn file() -> String {
    format!("{FILE}sha256 = \"{}\"\n", "ab".repeat(32))
}

#[test]
fn an_authority_is_made_with_one_command_and_the_configuration_takes_it() {
    let home = Home::new();
    home.write("banyan.toml", &file());
    let made = home.run(&["ca", "init"]).exits(0);
    let join = made.out.trim().to_owned();
    assert!(join.starts_with("banyan join https://gate.example.com:7000 --token banyan1."), "{join}");
    let text = home.read("banyan.toml");
    assert!(text.starts_with(&file()) && text.contains("[tls]\ncertificate = \"") && !text.contains("banyan1."), "{text}");
    assert!(text.contains("[registry]"), "{text}");
    home.run(&["check"]).exits(0);
    let key = home.path().join(".local/state/banyan/ca/ca.key");
    assert_eq!(std::fs::metadata(key).expect("a key").permissions().mode() & 0o777, 0o600);
    assert!(home.run(&["ca", "init"]).exits(4).err.contains("banyan ca token"));
}

#[test]
fn where_there_is_no_configuration_one_is_made() {
    let home = Home::new();
    let made = home.run(&["ca", "init", "--name", "192.0.2.1", "--ttl", "10m"]).exits(0);
    assert!(made.err.contains("names no server") && made.err.contains("within 10 minutes"), "{}", made.err);
    assert!(home.read(".config/banyan/banyan.toml").contains("[tls]\ncertificate = "));
    home.run(&["check"]).exits(0);
    assert!(made.err.contains("listen = \"0.0.0.0:7411\""), "others can't reach it yet: {}", made.err);
    assert!(made.out.contains("https://192.0.2.1:7411"), "{}", made.out);
}

#[test]
fn tokens_are_made_and_names_are_taken_back() {
    let home = Home::new();
    assert!(home.run(&["ca", "token"]).exits(3).err.contains("banyan ca init"));
    home.run(&["ca", "init", "--name", "gate.example.com"]).exits(0);
    let token = home.run(&["ca", "token", "--for", "edge", "--json"]).exits(0).json();
    assert!(token["join"].as_str().expect("a command").ends_with(token["token"].as_str().expect("a token")));
    assert_eq!(home.run(&["ca", "list", "--json"]).exits(0).json(), serde_json::json!({ "certificates": [] }));
    assert!(home.run(&["ca", "revoke", "edge"]).exits(3).err.contains("banyan ca list"));
    home.run(&["ca", "token", "--for", "not a name"]).exits(2);
    home.run(&["ca", "token", "--ttl", "31d"]).exits(2);
}
