//! `banyan token`: what it writes into `banyan.toml`, and what it never writes. Whether a gate takes the token is not tried here.

use std::os::unix::fs::PermissionsExt;

use crate::home::Home;

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

    home.run(&["token", "rm", "ci"]).exits(0);
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
fn the_file_keeps_its_permissions() {
    let home = Home::new();
    let path = home.write("banyan.toml", FILE);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a mode");
    home.run(&["token", "add", "ci"]).exits(0);
    assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
}

#[test]
fn without_a_configuration_there_is_nowhere_to_keep_a_token() {
    assert!(Home::new().run(&["token", "add", "ci"]).exits(3).err.contains("banyan import --write"));
}
