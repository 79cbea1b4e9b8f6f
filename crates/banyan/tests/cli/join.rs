//! `banyan join` and `banyan leave`: changes of `banyan.toml`, files beside it, and a gate's report. A parent's reception of the
//! gate is not tried here.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::home::Home;
use crate::serving::Gate;

const FILE: &str = "# ours\nlisten = \"127.0.0.1:0\" # any\n";

#[test]
fn a_parent_is_written_behind_what_is_there_and_its_token_into_a_file_of_its_own() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let secret = format!("banyan_{}", "5".repeat(64));
    let joined = home.run(&["join", "https://root.example/", "--token", &secret, "--segment", "edge", "--json"]).exits(0).json();
    assert_eq!((&joined["url"], &joined["segment"]), (&json!("https://root.example"), &json!("edge")));
    let text = home.read("banyan.toml");
    assert!(text.starts_with(FILE) && text.contains("segment = \"edge\"") && !text.contains(&secret), "{text}");
    let token = home.path().join(".local/state/banyan/parents/https---root.example.token");
    assert_eq!(std::fs::read_to_string(&token).expect("the token"), secret);
    assert_eq!(std::fs::metadata(&token).expect("the token").permissions().mode() & 0o777, 0o600);

    assert!(home.run(&["join", "https://root.example"]).exits(4).err.contains("banyan leave"));
    home.run(&["join", "https://backup.example"]).exits(0);
    assert!(home.read("banyan.toml").contains("segment = \"edge\""), "the segment stays");
    assert!(home.run(&["leave"]).exits(2).err.contains("https://backup.example"));
    home.run(&["leave", "https://root.example"]).exits(0);
    assert!(!token.exists() && !home.read("banyan.toml").contains("root.example"));
    home.run(&["leave"]).exits(0);
    assert!(home.run(&["leave"]).exits(3).err.contains("names no parent"));
}

#[test]
fn ax_42_a_parent_is_not_written_that_no_gate_would_join() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    let refused = home.run(&["join", "http://root.example", "--segment", "edge", "--token", "tttttttttttttttt"]).exits(1);
    assert!(refused.err.contains("insecure = true"), "{}", refused.err);
    assert_eq!(home.read("banyan.toml"), FILE);
    home.run(&["join", "http://root.example", "--insecure"]).exits(0);
    assert!(home.read("banyan.toml").contains("insecure = true"));
}

#[test]
fn a_gate_without_a_configuration_gets_one_and_says_how_it_stands() {
    let home = Home::new();
    home.run(&["join", "http://127.0.0.1:1", "--segment", "edge"]).exits(0);
    let mut gate = Gate::up(&home, &["--listen", "127.0.0.1:0"]);
    let told = gate.until("parent");
    assert_eq!((&told["state"], &told["segment"]), (&json!("unreachable"), &json!("edge")));
    let status = home.run(&["status"]).exits(0).out;
    assert!(status.contains("http://127.0.0.1:1/") && status.contains("can't reach"), "{status}");
    let parents = &home.run(&["tree", "--json"]).exits(0).json()["joined"]["parents"];
    assert_eq!(parents[0]["url"], "http://127.0.0.1:1/");
    home.run(&["leave"]).exits(0);
    assert!(gate.until("reloaded")["changes"][0].as_str().is_some_and(|change| change.contains("parents")));
    gate.end().exits(0);
}

#[test]
fn ax_12_a_gate_that_takes_registrations_does_not_start_where_it_cannot_keep_whose_a_segment_is() {
    let home = Home::new();
    home.write(".local/state/banyan/banyan.db", &"this is no database, whatever its name says".repeat(100));
    home.write("banyan.toml", &format!("{FILE}[registry]\n"));
    let refused = home.run(&["up"]).exits(1);
    assert!(refused.err.contains("banyan.db") && refused.err.contains("moved away"), "{}", refused.err);
    home.write("banyan.toml", FILE);
    Gate::up(&home, &[]).end().exits(0);
}

#[test]
fn a_token_that_was_cut_short_is_refused_before_anything_is_written() {
    let home = Home::new();
    home.write("banyan.toml", FILE);
    for cut in [format!("banyan_{}", "5".repeat(63)), "banyan1.QUJD.x".into(), "bad".into(), " ".into()] {
        let refused = home.run(&["join", "https://root.example", "--segment", "edge", "--token", &cut]).exits(2).err;
        assert!(refused.contains("this token is not whole"), "{refused}");
        assert_eq!(home.read("banyan.toml"), FILE);
    }
    assert!(!home.path().join(".local/state/banyan/parents").exists());
}
