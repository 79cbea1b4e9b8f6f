//! `banyan service`: the file of the service and what is said where no service manager runs. No service manager
//! is asked to run the unit.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use crate::bridge::eventually;
use crate::home::{Home, Ran};
use crate::serving::{Gate, home_with_server};

const UNIT: &str = ".config/systemd/user/banyan.service";

#[test]
fn a_users_unit_is_written_shown_and_removed() {
    let home = home_with_server();
    let installed = home.run(&["service", "install", "--no-start"]).exits(0);
    assert!(installed.out.contains(UNIT), "{installed:?}");
    let unit = home.read(UNIT);
    let config = home.path().join("banyan.toml");
    for part in ["Type=notify", &format!("up --config \"{}\"", config.display()), "Environment=\"PATH=", "WantedBy=default.target"] {
        assert!(unit.contains(part), "{part}: {unit}");
    }
    assert_eq!(home.run(&["service", "install", "--print"]).exits(0).out, unit);
    let status = home.run(&["service", "status", "--json"]).exits(0).json();
    assert_eq!((&status["installed"], &status["url"]), (&true.into(), &serde_json::Value::Null));
    home.run(&["service", "uninstall"]).exits(0);
    assert!(!home.path().join(UNIT).exists());
    assert!(home.run(&["service", "status"]).exits(0).out.contains("banyan service install"));
    home.run(&["service", "uninstall"]).exits(3);
}

#[test]
fn a_services_file_holds_no_password_of_a_proxy() {
    let mut home = home_with_server();
    home.env.push(("HTTPS_PROXY", "http://anna:hunter2@proxy:3128".into()));
    home.env.push(("HTTP_PROXY", "http://proxy:3128".into()));
    let installed = home.run(&["service", "install", "--no-start"]).exits(0);
    assert!(installed.err.contains("leaves out HTTPS_PROXY") && !installed.err.contains("hunter2"), "{installed:?}");
    let unit = home.read(UNIT);
    assert!(unit.contains("HTTP_PROXY=http://proxy:3128") && !unit.contains("hunter2"), "{unit}");
    let mode = std::fs::metadata(home.path().join(UNIT)).expect("the unit").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn systemd_finds_no_fault_with_either_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return;
    }
    let home = home_with_server();
    for kind in [&["service", "install", "--print"][..], &["service", "install", "--system", "--print", "--config", "banyan.toml"]] {
        let unit = home.write("units/banyan.service", &home.run(kind).exits(0).out);
        let checked = Command::new("systemd-analyze").args(["verify", "--man=no", "--recursive-errors=no"]).arg(unit).output();
        let checked = Ran::of(checked.expect("systemd-analyze runs"));
        assert!(!checked.err.contains("banyan.service:"), "{kind:?}: {}", checked.err);
    }
}

#[test]
fn a_service_of_others_is_refused() {
    let home = Home::new();
    assert!(home.run(&["service", "install", "--no-start"]).exits(3).err.contains("banyan add NAME"));
    home.write("banyan.toml", "# none\n");
    home.write(UNIT, "[Service]\nExecStart=/bin/true\n");
    assert!(home.run(&["service", "install", "--no-start"]).exits(4).err.contains("left alone"));
    assert!(home.run(&["service", "uninstall"]).exits(4).err.contains("left alone"));
}

#[test]
fn a_gate_tells_its_service_manager_of_both_ends() {
    let mut home = home_with_server();
    let socket = home.path().join("notify");
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    home.env.push(("NOTIFY_SOCKET", socket));
    let heard = || {
        let mut text = [0; 64];
        let length = manager.recv(&mut text).expect("news");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let gate = Gate::up(&home, &[]);
    assert_eq!(heard(), "READY=1");
    home.run(&["stop"]).exits(0);
    assert_eq!(heard(), "STOPPING=1");
    gate.wait().exits(0);
}

#[test]
fn a_backup_comes_back_whole_and_overwrites_nothing() {
    let home = home_with_server();
    home.write("policy.cedar", "permit (principal, action, resource);\n");
    home.write("banyan.toml", &format!("policy = {{ file = 'policy.cedar' }}\n{}", home.read("banyan.toml")));
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    home.run(&["call", "shell.fail"]).exits(5);
    // A gate answers before the disk has the entry.
    eventually("the call is recorded", || home.run(&["audit", "list"]).exits(0).out.contains("shell.fail"));
    home.run(&["backup", "kept.tar"]).exits(0);
    home.run(&["backup", "kept.tar"]).exits(4);
    let config = home.read("banyan.toml");
    assert!(home.run(&["restore", "kept.tar", "--config", "new.toml"]).exits(4).err.contains("banyan stop"));
    home.run(&["stop"]).exits(0);
    gate.wait().exits(0);
    assert!(home.run(&["restore", "kept.tar", "--config", "new.toml"]).exits(4).err.contains("nothing is overwritten"));
    assert!(home.run(&["restore", "kept.tar", "--dry-run"]).exits(0).out.contains("config/policy.cedar  "));
    let inside = home.run(&["backup", ".local/state/banyan/kept.tar"]).exits(4);
    assert!(inside.err.contains("name a place elsewhere"), "{inside:?}");

    let mut other = Home::new();
    other.env.push(("XDG_STATE_HOME", other.path().join("elsewhere")));
    let tar = home.path().join("kept.tar").display().to_string();
    let restored = other.run(&["restore", &tar]).exits(0);
    assert!(restored.err.contains("the state lay in"), "{restored:?}");
    assert_eq!(other.read(".config/banyan/banyan.toml"), config);
    assert_eq!(other.read(".config/banyan/policy.cedar"), home.read("policy.cedar"));
    assert!(other.run(&["audit", "verify"]).exits(0).out.contains("the record is sound"));
    assert!(other.run(&["audit", "list"]).exits(0).out.contains("shell.fail"));

    let mut bytes = std::fs::read(&tar).expect("the backup");
    let at = bytes.windows(6).position(|text| text == b"permit").expect("the rules");
    bytes[at] = b'f';
    std::fs::write(other.path().join("bad.tar"), bytes).expect("a file");
    assert!(other.run(&["restore", "bad.tar", "--dry-run"]).exits(1).err.contains("not those of its list"));
}
