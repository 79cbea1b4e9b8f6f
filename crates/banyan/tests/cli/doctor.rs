//! `banyan doctor` on a machine with something broken. What it finds in detail is tested beside the code, not here.

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
    assert!(ran.out.contains("server c: starts /"), "{}", ran.out);
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
    assert!(!home.run(&["doctor"]).exits(0).out.contains("running"), "nothing is started unless asked for");
    let started = home.run(&["doctor", "--start"]).exits(1);
    assert!(started.out.contains("server shell, running: ready with 2 tools"), "{}", started.out);
    assert!(started.out.contains("broken    server broken, running: failed") && started.out.contains("no key"), "{}", started.out);

    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    assert!(home.run(&["doctor"]).exits(1).out.contains("server shell, running: ready with 2 tools"));
    gate.end().exits(0);
}
