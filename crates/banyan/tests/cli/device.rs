//! `banyan device` without a device: inventories that become sections, and the list of devices.

use crate::home::Home;

const INVENTORY: &str = "[all:vars]\nansible_network_os=frr.frr.frr\n[edge]\nr[1:3] ansible_host=10.0.0.1 ansible_user=ops ansible_password=c4nary\n\
    odd ansible_network_os=vyos ansible_user=ops\nnobody\n";
const CONFIG: &str = "# a comment stays\n[mount.r2]\ncommand = \"cat\"\n\n[device_template.pe]\nuser = \"netadm\"\nkey = \"~/.ssh/id\"\nbackend = \"netconf\"\n";

#[test]
fn an_inventory_is_added_to_what_is_there() {
    let home = Home::new();
    home.write("hosts.ini", INVENTORY);
    home.write("banyan.toml", CONFIG);
    let shown = home.run(&["device", "import", "hosts.ini"]).exits(0);
    assert!(shown.out.contains("[device.r1]") && shown.out.contains("${keyring:r1}") && !shown.out.contains("device.r2"), "{shown:#?}");
    assert!(shown.err.contains("r2 stays as it is") && shown.err.contains("banyan secret set r1"), "{shown:#?}");
    assert!(shown.err.contains("odd is left out: no dialect") && shown.err.contains("nobody is left out"), "{shown:#?}");
    assert_eq!(home.read("banyan.toml"), CONFIG);
    let written = home.run(&["device", "import", "hosts.ini", "--write", "--json"]).exits(0).json();
    assert_eq!(written["secrets"], serde_json::json!(["r1", "r3"]));
    let text = home.read("banyan.toml");
    assert!(text.starts_with(CONFIG) && text.contains("[device_group.edge]"), "{text}");
    assert!(![&text, &shown.out, &shown.err, &written.to_string()].iter().any(|text| text.contains("c4nary")));
    home.run(&["check"]).exits(0);
    let again = home.run(&["device", "import", "hosts.ini", "--write"]).exits(0);
    assert_eq!(home.read("banyan.toml"), text, "{again:#?}");
}

#[test]
fn devices_of_an_inventory_share_a_template() {
    let home = Home::new();
    home.write("hosts.ini", INVENTORY);
    home.write("banyan.toml", CONFIG);
    assert!(home.run(&["device", "import", "hosts.ini", "--template", "pee"]).exits(3).err.contains("did you mean `pe`?"));
    home.run(&["device", "import", "hosts.ini", "--template", "pe", "--write"]).exits(0);
    let listed = home.run(&["device", "list", "--json"]).exits(0).json();
    let devices = listed["devices"].as_array().unwrap();
    let names: Vec<&str> = devices.iter().filter_map(|device| device["device"].as_str()).collect();
    assert_eq!(names, ["nobody", "odd", "r1", "r3"]);
    assert_eq!(
        (&devices[2]["backend"], &devices[2]["address"], &devices[2]["groups"][0]),
        (&"netconf".into(), &"10.0.0.1".into(), &"edge".into())
    );
    assert!(!home.read("banyan.toml").contains("password"));
}

#[test]
fn a_group_named_like_a_server_gets_an_ending() {
    let home = Home::new();
    home.write("hosts.ini", "[r2]\nr1 ansible_user=ops ansible_network_os=frr\n[r1]\nr3 ansible_user=ops ansible_network_os=frr\n");
    home.write("banyan.toml", CONFIG);
    let written = home.run(&["device", "import", "hosts.ini", "--write", "--json"]).exits(0).json();
    assert_eq!(written["groups"], serde_json::json!(["r1-group", "r2-group"]));
    home.run(&["check"]).exits(0);
}

#[test]
fn an_inventory_that_is_none_is_refused() {
    let home = Home::new();
    home.write("x.yaml", "a: 1\n");
    assert!(home.run(&["device", "import", "x.yaml"]).exits(4).err.contains("containerlab"));
    assert!(home.run(&["device", "import", "absent.yaml"]).exits(3).err.contains("absent.yaml"));
}

#[test]
fn no_device_hides_the_others_from_the_list() {
    let home = Home::new();
    home.write("banyan.toml", "[device.r1]\n[device.r2]\n[device.r3]\n");
    home.run(&["device", "freeze", "r1"]).exits(0);
    for file in ["device-freezes/device.r1.json", "devices/r2/change.json"] {
        home.write(&format!(".local/state/banyan/{file}"), "{");
    }
    let listed = home.run(&["device", "list", "--json"]).exits(0).json();
    let phases: Vec<_> =
        listed["devices"].as_array().unwrap().iter().map(|one| (one["phase"].as_str(), one["frozen"][0].is_string())).collect();
    assert_eq!(phases, [(Some("none"), true), (Some("unreadable"), true), (Some("none"), false)]);
}

#[test]
fn nm_12_a_freeze_shows_until_it_ends() {
    let home = Home::new();
    home.write("banyan.toml", "[device_group.edge]\n[device.r1]\ngroups = [\"edge\"]\n[device.r2]\n");
    let frozen = || -> Vec<usize> {
        let listed = home.run(&["device", "list", "--json"]).exits(0).json();
        listed["devices"].as_array().unwrap().iter().map(|device| device["frozen"].as_array().map_or(0, Vec::len)).collect()
    };
    assert!(home.run(&["device", "freeze", "--group", "egde"]).exits(3).err.contains("did you mean `edge`?"));
    home.run(&["device", "freeze"]).exits(2);
    home.run(&["device", "freeze", "--group", "edge", "--reason", "audit"]).exits(0);
    assert_eq!(frozen(), [1, 0]);
    assert!(home.run(&["device", "status", "r1"]).exits(0).out.contains("froze the group edge: audit"));
    home.run(&["device", "freeze", "--all", "--for", "12h", "--json"]).exits(0);
    assert_eq!(frozen(), [2, 1]);
    home.run(&["device", "unfreeze", "--all"]).exits(0);
    home.run(&["device", "unfreeze", "--group", "edge"]).exits(0);
    assert_eq!(frozen(), [0, 0]);
    home.run(&["device", "unfreeze", "r1"]).exits(3);
}
