//! Signing for a call or a grant from a script: nothing is signed without agreement. The weight of a signature is not tried here.

use std::process::Command;

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

/// Makes a home with a gate that asks for every change, and the key of an approver.
fn asking() -> (Home, Gate) {
    let home = home_with_server();
    home.write("banyan.toml", &format!("{}[gate]\nmode = 'mutable'\n", home.read("banyan.toml")));
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(home.path().join("key")).status();
    assert!(made.expect("ssh-keygen runs").success());
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    home.run(&["operator", "enroll", "anna", "--key", "key.pub"]).exits(0);
    (home, gate)
}

#[test]
fn l11_approve_signs_nothing_where_nobody_is_at_a_terminal_and_nothing_says_yes() {
    let (home, gate) = asking();
    home.run(&["call", "shell.say_hello"]).exits(4);
    let waiting = || home.run(&["approvals", "--json"]).exits(0).json()["approvals"][0].clone();
    let id = waiting()["id"].as_str().expect("a call waits").to_owned();
    let refused = home.run(&["approve", &id, "--key", "key"]).exits(4).err;
    assert!(refused.contains("nothing was signed") && refused.contains("`--yes`") && refused.contains("shell.say_hello"), "{refused}");
    assert_eq!((waiting()["standing"].clone(), waiting()["votes"].clone()), ("pending".into(), serde_json::json!([])));
    home.run(&["approve", &id, "--key", "key", "--yes"]).exits(0);
    gate.end().exits(0);
}

#[test]
fn l11_a_grant_is_signed_only_where_somebody_agrees() {
    let (home, gate) = asking();
    let add = ["grants", "add", "shell.*", "--caller", "*", "--any-other", "--key", "key"];
    let refused = home.run(&add).exits(4).err;
    assert!(refused.contains("nothing was signed") && refused.contains("shell.*"), "{refused}");
    home.run(&["grants", "propose", "shell.*", "--caller", "*", "--out", "grant.json"]).exits(0);
    let proposed = home.read("grant.json");
    assert!(home.run(&["grants", "sign", "grant.json", "--key", "key"]).exits(4).err.contains("nothing was signed"));
    assert_eq!(home.read("grant.json"), proposed);
    assert_eq!(home.run(&["grants", "list", "--json"]).exits(0).json()["grants"], serde_json::json!([]));
    home.run(&["grants", "sign", "grant.json", "--key", "key", "--yes"]).exits(0);
    home.run(&["grants", "give", "grant.json"]).exits(0);
    gate.end().exits(0);
}

#[test]
fn ax_46_a_restore_voids_approvals_open_in_the_backup() {
    let (home, gate) = asking();
    home.run(&["call", "shell.say_hello"]).exits(4);
    assert_eq!(home.run(&["approvals", "--json"]).exits(0).json()["approvals"].as_array().map(Vec::len), Some(1));
    home.run(&["backup", "kept.tar"]).exits(0);
    home.run(&["stop"]).exits(0);
    gate.wait().exits(0);
    std::fs::remove_dir_all(home.path().join(".local/state/banyan")).expect("the state");
    for name in ["banyan.toml", "server.sh"] {
        std::fs::remove_file(home.path().join(name)).expect("a file");
    }
    let restored = home.run(&["restore", "kept.tar", "--config", "banyan.toml"]).exits(0);
    assert!(restored.err.contains("void (1)"), "{restored:?}");
    let gate = Gate::up(&home, &[]);
    assert_eq!(home.run(&["approvals", "--json"]).exits(0).json()["approvals"], serde_json::json!([]));
    gate.end().exits(0);
}
