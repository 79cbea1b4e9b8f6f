//! Inventories as their tools write them. No file is opened.

use proptest::prelude::*;

use super::*;

fn read(name: &str, text: &str) -> Result<Inventory, InventoryError> {
    Inventory::read(&[InventoryFile { name, text }])
}

fn device(inventory: &Inventory, name: &str) -> InventoryDevice {
    inventory.devices.iter().find(|device| device.name == name).cloned().unwrap_or_else(|| panic!("{inventory:?}"))
}

const INI: &str = r#"
[all:vars]
ansible_user=netops
ansible_network_os=cisco.ios.ios

[edge]
r[1:2].example.net ansible_port=2222  # both
sw1 ansible_host=10.0.0.9 ansible_password='s3cr3t x' ansible_network_os=junipernetworks.junos.junos

[edge:vars]
ansible_connection=ansible.netcommon.network_cli

[site:children]
edge
[site:vars]
ansible_user=site
"#;

#[test]
fn a_short_file_makes_no_endless_inventory() {
    let twice = (0..30).map(|group| format!("[g{group}:children]\ng{0}\ng{0}\n", group + 1)).collect::<String>() + "[g30]\nr1\n";
    let again = "[a]\n".to_owned() + &"r[1:10000]\n".repeat(1_000);
    for text in [&twice, &again] {
        assert_eq!(read("hosts", text), Err(InventoryError::TooMany));
    }
    let wide = format!("[a]\nr[{}1:3]\nlong{}[1:10000]\n", "0".repeat(70_000), "x".repeat(2_000));
    assert_eq!(read("hosts", &wide).unwrap().devices.len(), 2, "names as they stand there");
}

#[test]
fn an_inventory_of_ansible_in_ini() {
    let inventory = read("hosts", INI).unwrap();
    assert_eq!(
        inventory.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(),
        ["r1.example.net", "r2.example.net", "sw1"]
    );
    let r1 = device(&inventory, "r1.example.net");
    assert_eq!((r1.address.as_str(), r1.port, r1.dialect), ("r1.example.net", Some(2222), Some("ios")));
    assert_eq!(r1.user.as_deref(), Some("site"));
    let switch = device(&inventory, "sw1");
    assert_eq!((switch.address.as_str(), switch.dialect), ("10.0.0.9", Some("junos")));
    assert_eq!(inventory.notes, ["Passwords were left out (1 devices): give Banyan credentials of its own for each."]);
    assert!(!format!("{inventory:?}").contains("s3cr3t"));
}

#[test]
fn an_inventory_of_ansible_in_yaml() {
    let text = "---\nall:\n  vars: {ansible_user: ops}\n  children:\n    core:\n      vars: {ansible_network_os: frr.frr.frr}\n      hosts:\n        r1: {ansible_host: 10.0.0.1, ansible_ssh_pass: !vault 'x'}\n        r2:\n    pe:\n      vars:\n        ansible_network_os: huawei.cloudengine.ce\n        ansible_connection: ansible.netcommon.netconf\n        ansible_host: '{{ lookup(\"x\") }}'\n      hosts:\n        p[a:b]:\n        r2:\n          ansible_network_os: vyos\n";
    let inventory = read("inventory.yml", text).unwrap();
    assert_eq!(device(&inventory, "r1").dialect, Some("frr"));
    assert_eq!(device(&inventory, "r1").user.as_deref(), Some("ops"));
    let pa = device(&inventory, "pa");
    assert_eq!((pa.address.as_str(), pa.access, pa.dialect), ("pa", InventoryAccess::Netconf, Some("vrp")));
    assert_eq!(device(&inventory, "r2").groups, ["core", "pe"]);
    assert!(inventory.notes.iter().any(|note| note.contains("`vyos` (1 devices)")), "{:?}", inventory.notes);
}

#[test]
fn an_inventory_of_nornir_inherits_from_groups_and_defaults() {
    let hosts = "---\nr1:\n  hostname: 10.0.0.1\n  groups: [frr]\nr2:\n  groups: [edge]\n  port: 2022\n";
    let groups = "---\nfrr:\n  platform: frr\nedge:\n  platform: cisco_ios\n  groups: [base]\nbase:\n  username: base\n  groups: [edge]\n";
    let defaults = "---\nusername: admin\npassword: s3cr3t\n";
    let files =
        [("hosts.yaml", hosts), ("groups.yaml", groups), ("defaults.yaml", defaults)].map(|(name, text)| InventoryFile { name, text });
    let inventory = Inventory::read(&files).unwrap();
    assert_eq!(inventory.kind, InventoryKind::Nornir);
    let (r1, r2) = (device(&inventory, "r1"), device(&inventory, "r2"));
    assert_eq!((r1.address.as_str(), r1.dialect, r1.user.as_deref()), ("10.0.0.1", Some("frr"), Some("admin")));
    assert_eq!((r2.address.as_str(), r2.port, r2.dialect, r2.user.as_deref()), ("r2", Some(2022), Some("ios"), Some("base")));
    assert_eq!(r2.groups, ["base", "edge"]);
    assert!(!format!("{inventory:?}").contains("s3cr3t"));
}

#[test]
fn devices_of_netbox_in_both_forms() {
    let json = r#"{"count":2,"results":[{"name":"r1","platform":{"slug":"cisco-ios"},"primary_ip":{"address":"10.0.0.1/24"},"site":{"slug":"ams"},"role":{"slug":"core"}},{"name":"r2","primary_ip":null}]}"#;
    let csv = "Name,Status,Site,Role,Platform,IP Address\nr1,Active,ams,core,Cisco IOS,10.0.0.1/24\n\"r2\",Active,,,,\n";
    for (name, text) in [("devices.json", json), ("netbox_devices.csv", csv)] {
        let inventory = read(name, text).unwrap();
        let r1 = device(&inventory, "r1");
        assert_eq!((r1.address.as_str(), r1.dialect, inventory.devices.len()), ("10.0.0.1", Some("ios"), 1), "{name}");
        assert_eq!(r1.groups, ["ams", "core"]);
        assert_eq!(inventory.notes, ["1 devices without a primary address were left out."]);
    }
}

#[test]
fn a_topology_of_containerlab() {
    let text = "name: lab\ntopology:\n  kinds:\n    linux: {image: quay.io/frrouting/frr:10.3}\n  nodes:\n    r1: {kind: linux, mgmt-ipv4: 172.20.20.2}\n    r2: {kind: linux}\n    j1: {kind: juniper_crpd}\n    br0: {kind: bridge}\n  links:\n    - endpoints: [r1:eth1, r2:eth1]\n";
    let inventory = read("lab.clab.yml", text).unwrap();
    assert_eq!(inventory.devices.len(), 3);
    assert_eq!((device(&inventory, "r1").address.as_str(), device(&inventory, "r1").dialect), ("172.20.20.2", Some("frr")));
    assert_eq!(device(&inventory, "r2").address, "clab-lab-r2");
    assert_eq!(device(&inventory, "j1").dialect, Some("junos"));
    assert_eq!(inventory.notes, ["1 bridges and hosts were left out."]);
}

#[test]
fn a_text_of_another_kind_is_refused() {
    for (name, text) in [("x.yaml", "a: 1\n"), ("x.json", "[1]"), ("x", ""), ("x.yml", "")] {
        let error = read(name, text).unwrap_err();
        assert!(error.to_string().contains("Nornir (hosts.yaml)"), "{name}: {error}");
    }
    let error = read("hosts", "[a]\nr1\n[b\n").unwrap_err();
    assert_eq!(error.to_string(), "hosts can't be read: line 3: a group has no `]`");
    assert!(matches!(read("x.yaml", "a: [1\n"), Err(InventoryError::Syntax { .. })));
}

#[test]
fn an_inventory_is_bounded() {
    for text in ["[a]\nr[1:20000]\n", "[a]\nr[1:200][1:200]\n", "[a]\nr[0:4294967295]\n"] {
        assert_eq!(read("hosts", text), Err(InventoryError::TooMany), "{text}");
    }
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e]\n";
    assert!(read("x.yaml", bomb).is_err());
    let circle = "[a]\nr1\n[a:children]\nb\n[b:children]\na\n";
    assert_eq!(device(&read("hosts", circle).unwrap(), "r1").groups, ["a"]);
}

proptest! {
    #[test]
    fn nothing_stops_the_reader(text in "(\\[[a-z:\\[\\]]{0,8}\\]|[a-z0-9=:'\" \\[\\]{},-]{0,30}|\n){0,30}", name in "(hosts|x\\.ya?ml|x\\.json|x\\.csv)") {
        let first = read(&name, &text);
        prop_assert_eq!(first, read(&name, &text));
    }
}
