//! `banyan doctor` on a machine with something broken. Findings are tested in detail beside the code, not here.

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

#[test]
fn every_broken_thing_comes_with_its_fix() {
    let home = Home::new();
    let hidden = home.write(".local/bin/hidden-server", "#!/bin/sh\n");
    std::fs::set_permissions(&hidden, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    home.write(
        "banyan.toml",
        "listen = '127.0.0.1:0'\n[mount.a]\ncommand = 'no-such-server'\n[mount.b]\ncommand = 'hidden-server'\n[mount.c]\ncommand = 'sh'\n",
    );
    let ran = home.run(&["doctor"]).exits(1);
    assert!(ran.out.contains("server a: `no-such-server` is not installed\n          fix: install it"), "{}", ran.out);
    assert!(ran.out.contains(&format!("it is at {}\n          fix: write command = ", hidden.display())), "{}", ran.out);
    assert!(ran.out.contains("server c: /") && ran.out.contains("it was not started"), "{}", ran.out);
    assert!(ran.err.contains("2 problems found"), "{}", ran.err);

    let report = home.run(&["doctor", "--json"]).exits(1).json();
    assert_eq!((&report["problems"], &report["findings"][2]["level"]), (&2.into(), &"problem".into()));
}

#[test]
fn a_taken_port_is_blamed_on_its_holder() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    home.write("banyan.toml", &format!("listen = '{address}'\n"));
    let ran = home.run(&["doctor"]).exits(1);
    assert!(ran.out.contains(&format!("{address} is taken")), "{}", ran.out);
    if cfg!(target_os = "linux") {
        assert!(ran.out.contains(&format!("(process {})", std::process::id())), "{}", ran.out);
    }
}

#[test]
fn a_configuration_that_cant_be_read_is_the_first_finding() {
    let home = Home::new();
    home.write("banyan.toml", "[mount.files]\nagrs = []\n");
    assert!(home.run(&["doctor"]).exits(1).out.contains("did you mean `args`?"));
    let home = Home::new();
    assert!(home.run(&["doctor"]).exits(0).out.contains("banyan up"));
}

#[test]
fn a_running_gate_is_asked_what_it_knows_and_start_asks_one_of_our_own() {
    let home = home_with_server();
    let broken = "[mount.broken]\ncommand = 'sh'\nargs = ['-c', 'echo no key >&2; exit 3']\n";
    home.write("banyan.toml", &format!("{}{broken}", home.read("banyan.toml")));
    assert!(!home.run(&["doctor"]).exits(0).out.contains("ready with"), "nothing is started unless asked for");
    let started = home.run(&["doctor", "--start"]).exits(1);
    assert!(started.out.contains("server shell: ready with 2 tools"), "{}", started.out);
    assert!(started.out.contains("broken    server broken: failed") && started.out.contains("no key"), "{}", started.out);

    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let told = home.run(&["doctor"]).exits(1);
    assert!(told.out.contains("server shell: ready with 2 tools"));
    assert_eq!((told.out.matches("server shell").count(), told.out.matches("server broken").count()), (1, 1), "each once: {}", told.out);
    assert!(told.err.contains("1 problem found"), "{}", told.err);
    gate.end().exits(0);
}

#[test]
fn an_address_is_called_reached_only_when_a_connection_was_taken_there() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let (taken, free) = (listener.local_addr().expect("an address"), std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
    let refusing = free.local_addr().expect("an address");
    drop(free);
    let mounts = format!("[mount.a]\nurl = 'http://{taken}/mcp'\n[mount.b]\nurl = 'http://{refusing}/mcp'\n");
    home.write(
        "banyan.toml",
        &format!("listen = '127.0.0.1:0'\n{mounts}[node]\nsegment = 'edge'\n[[parent]]\nurl = 'http://{refusing}'\n"),
    );
    let ran = home.run(&["doctor"]).exits(1);
    for said in [
        format!("ok        server a: {taken} takes connections; the server there was not asked"),
        format!("broken    server b: {refusing} takes no connection"),
        format!("broken    parent http://{refusing}/: {refusing} takes no connection"),
    ] {
        assert!(ran.out.contains(&said), "{said}: {}", ran.out);
    }
    assert!(ran.err.contains("2 problems found"), "{}", ran.err);
}

#[test]
fn the_worst_states_of_a_gate_are_told_with_what_mends_them() {
    let home = home_with_server();
    let good = home.read("banyan.toml");
    Gate::up(&home, &[]).end().exits(0);
    let entries = std::process::Command::new("find").arg(home.path().join(".local/state/banyan/audit")).args(["-name", "*.jsonl"]).output();
    let file = String::from_utf8(entries.expect("find runs").stdout).expect("UTF-8");
    let text = std::fs::read_to_string(file.trim()).expect("the record");
    std::fs::write(file.trim(), text.replacen("\"node\":\"", "\"node\":\"0", 1)).expect("somebody changes it");

    home.write("banyan.toml", &format!("{good}[node]\nsegment = 'edge'\n[[parent]]\nurl = 'http://127.0.0.1:1'\n"));
    let mut gate = Gate::up(&home, &[]);
    assert_eq!(gate.until("parent")["state"], "unreachable");
    home.write("banyan.toml", "agrs = 1\n");
    gate.until("kept");
    let parts =
        ["record: broken for ", "`banyan audit verify`", "configuration on disk: not in force for ", "agrs", "as soon as it is saved"];
    let (status, doctor) = (home.run(&["status"]).exits(0).out, home.run(&["doctor"]).exits(1).out);
    for part in parts {
        assert!(status.contains(part) && doctor.contains(part), "{part}: {status}\n{doctor}");
    }
    assert!(
        status.contains("can't reach http://127.0.0.1:1/") && doctor.contains("parent http://127.0.0.1:1/: unreachable for"),
        "{doctor}"
    );
    let told = home.run(&["status", "--json"]).exits(0).json();
    assert!(told["audit"]["broken"]["why"].is_string() && told["not_in_force"]["error"].is_string(), "{told}");
    home.run(&["audit", "verify"]).exits(1);
    home.write("banyan.toml", &good);
    gate.until("reloaded");
    assert!(!home.run(&["status"]).exits(0).out.contains("not in force"));
    gate.end().exits(0);
    // It is not forgotten by starting again.
    let gate = Gate::up(&home, &[]);
    let is_told = || home.run(&["status"]).exits(0).out.contains("record: broken for ");
    // The record is opened beside whoever asks.
    assert!((0..200).any(|_| is_told()));
    gate.end().exits(0);
}
