use super::*;
use crate::dialect::Dialect;

fn allows(role: &Role, command: &str) -> bool {
    let dialect = Dialect::named("frr").unwrap();
    dialect.command(command).is_ok_and(|command| role.permit(DeviceAction::Command(&command), 0).is_ok())
}

fn rule(effect: RuleEffect, words: &str) -> CommandRule {
    CommandRule::new(effect, words)
}

#[test]
fn nm_12_without_rules_commands_that_read_go_through() {
    let role = Role::default();
    assert!(allows(&role, "sh ip route") && allows(&role, "show version"));
    for command in ["conf t", "copy x running-config", "clear ip bgp *", "vanish", "s"] {
        assert!(!allows(&role, command), "{command}");
    }
}

#[test]
fn nm_12_an_allow_list_knows_abbreviations() {
    let role =
        Role { commands: vec![rule(RuleEffect::Allow, "show ip route"), rule(RuleEffect::Allow, "show interface")], ..Role::default() };
    for command in ["show ip route", "sh ip rou 10.0.0.0/8", "sho int eth0"] {
        assert!(allows(&role, command), "{command}");
    }
    for command in ["show running-config", "sh run", "show ip", "sh ip r", "ping 10.0.0.1"] {
        assert!(!allows(&role, command), "{command}");
    }
}

#[test]
fn nm_12_a_forbidden_command_stays_forbidden_when_shortened() {
    let role = Role { commands: vec![rule(RuleEffect::Deny, "show running-config")], ..Role::default() };
    for command in ["show running-config", "sh run", "sh r", "sho running bgp"] {
        assert!(!allows(&role, command), "{command}");
    }
    assert!(allows(&role, "show ip route"));
}

#[test]
fn nm_12_read_only_is_overridden_by_no_rule() {
    let role = Role { is_read_only: true, commands: vec![rule(RuleEffect::Allow, "clear ip bgp")], ..Role::default() };
    assert!(!allows(&role, "clear ip bgp *"));
    assert!(allows(&Role { is_read_only: false, ..role.clone() }, "clear ip bgp *"));
    for action in [DeviceAction::ConfigLine("hostname x"), DeviceAction::EditPath("/a"), DeviceAction::Commit] {
        assert_eq!(role.permit(action, 0).map_err(|fault| (fault.code, fault.may_retry)), Err((Code::AccessDenied, false)));
    }
    let (whole, open) =
        (Dialect::named("frr").unwrap().command("show running-config").unwrap(), Role { commands: Vec::new(), ..role.clone() });
    assert!(role.permit(DeviceAction::ReadPath("/a"), 0).is_ok() && open.permit(DeviceAction::Show(&whole), 0).is_ok());
}

#[test]
fn nm_12_no_resource_shows_what_a_rule_forbids() {
    let dialect = Dialect::named("frr").unwrap();
    let shows = |role: &Role, command: &str| role.permit(DeviceAction::Show(&dialect.command(command).unwrap()), 0).is_ok();
    let denying = Role { commands: vec![rule(RuleEffect::Deny, "show running-config")], ..Role::default() };
    assert!(!shows(&denying, "show running-config no-header") && shows(&denying, "show interface json"));
    let allowing = Role { commands: vec![rule(RuleEffect::Allow, "show interface")], ..Role::default() };
    assert!(!shows(&allowing, "show running-config no-header") && shows(&allowing, "show interface json"));
    assert!(shows(&Role::default(), "vanish"), "a dialect of a user names commands that nobody else knows");
}

#[test]
fn nm_12_no_other_verb_reaches_a_forbidden_line() {
    let role = Role { lines: vec![rule(RuleEffect::Deny, "system services telnet")], ..Role::default() };
    let may = |line| role.permit(DeviceAction::ConfigLine(line), 0).is_ok();
    for line in [
        "set system services telnet",
        "edit system services",
        "edit system",
        "deactivate system services",
        "wildcard delete system services t*",
        "rename system services ssh to telnet",
        "load merge x",
    ] {
        assert!(!may(line), "{line}");
    }
    assert!(may("set system host-name telnet") && may("edit interfaces ge-0/0/0"));
}

#[test]
fn nm_12_a_key_is_held_against_the_rules_as_well() {
    let paths = vec![PathRule::new(RuleEffect::Deny, false, "/interfaces/interface/enabled").unwrap()];
    let role = Role { paths, ..Role::default() };
    let may = |path| [DeviceAction::EditPath(path), DeviceAction::ReadPath(path)].map(|action| role.permit(action, 0).is_ok());
    assert_eq!(may("/interfaces/interface[name='x']/description"), [true, true]);
    assert_eq!(may("/interfaces/interface[name='x'][oc:enabled='false']/description"), [false, false]);
}

#[test]
fn nm_12_lines_are_allowed_in_full_and_forbidden_in_part() {
    let lines =
        vec![rule(RuleEffect::Allow, "interface"), rule(RuleEffect::Allow, "description"), rule(RuleEffect::Deny, "interface mgmt0")];
    let role = Role { lines, ..Role::default() };
    let may = |line| role.permit(DeviceAction::ConfigLine(line), 0).is_ok();
    assert!(may("interface eth0") && may(" description x") && may("no interface eth0"));
    assert!(!may("interface mgmt0") && !may("int mg") && !may("router bgp 1") && !may("no interface"));
}

#[test]
fn nm_12_a_list_is_forbidden_for_each_of_its_values() {
    let denies = |pattern: &str, line: &str| {
        let role = Role { lines: vec![rule(RuleEffect::Deny, pattern)], ..Role::default() };
        role.permit(DeviceAction::ConfigLine(line), 0).is_err()
    };
    for (pattern, line) in [
        ("trunks 15", "trunks 10-20"),
        ("trunks 15", "trunks 1,15"),
        ("trunks 15-17", "trunks 10-15"),
        ("trunks", "trunks 10-20"),
        ("switchport trunk allowed vlan 15", "switchport trunk allowed vlan 10-20"),
        ("switchport trunk allowed vlan 15", "sw tr al vl add 1,14-16"),
        ("switchport trunk allowed vlan 15", "switchport trunk allowed vlan all"),
        ("switchport trunk allowed vlan 15", "switchport trunk allowed vlan except 3"),
        ("switchport trunk allowed vlan 15", "no switchport trunk allowed vlan 10-20"),
        ("vlan 15", "vlan 10,12-18"),
        ("vlan 15", "vlan batch 10 to 20"),
        ("port trunk allow-pass vlan 15", "port trunk allow-pass vlan 2 10 to 20"),
        ("port trunk allow-pass vlan 15", "undo port trunk allow-pass vlan all"),
        ("vlans * vlan-id-list 15", "set vlans x vlan-id-list [ 10-20 40 ]"),
        ("vlans * vlan-id-list 15", "set vlans x vlan-id-list 10-20"),
        ("vlan 15 name", "vlan 10-20"),
        ("interface gigabitethernet0/2", "interface range gigabitethernet0/1 - 4"),
        ("interface gigabitethernet0/2", "int ran gi0/1-4"),
        ("interface gigabitethernet0/0/2", "port-group group-member gigabitethernet0/0/1 to gigabitethernet0/0/4"),
    ] {
        assert!(denies(pattern, line), "{pattern}: {line}");
    }
    for (pattern, line) in [
        ("trunks 15", "trunks 10-14,16"),
        ("tag 30", "tag 3"),
        ("vlan 15", "vlan 150"),
        ("port trunk allow-pass vlan 15", "port trunk allow-pass vlan 16 to 20"),
        ("vlans * vlan-id-list 15", "set vlans x vlan-id-list [ 16 17 ]"),
        ("description", "interface range gigabitethernet0/1 - 4"),
    ] {
        assert!(!denies(pattern, line), "{pattern}: {line}");
    }
}

#[test]
fn nm_12_paths_are_held_against_all_above_and_below() {
    let paths = vec![
        PathRule::new(RuleEffect::Allow, false, "/interfaces").unwrap(),
        PathRule::new(RuleEffect::Deny, true, "/interfaces/interface/config/enabled").unwrap(),
    ];
    let role = Role { paths: paths.clone(), ..Role::default() };
    let edit = |path| role.permit(DeviceAction::EditPath(path), 0).is_ok();
    assert!(edit("/oc:interfaces/oc:interface[name='a/b']/config/description"));
    assert!(!edit("/interfaces/interface/config/enabled") && !edit("/interfaces/interface[name='x']") && !edit("/system"));
    assert!(role.permit(DeviceAction::ReadPath("/interfaces/interface"), 0).is_ok());
    assert!(role.permit(DeviceAction::ReadPath("//enabled"), 0).is_err() && role.permit(DeviceAction::ReadPath("/"), 0).is_err());
    let narrow = PathRule::new(RuleEffect::Allow, true, "/interfaces/interface/config/description").unwrap();
    let role = Role { paths: [paths, vec![narrow]].concat(), ..Role::default() };
    let edit = |path| role.permit(DeviceAction::EditPath(path), 0).is_ok();
    assert!(edit("/interfaces/interface[name='x']/config/description") && !edit("/interfaces/interface/config/mtu"));
}

#[test]
fn nm_12_freezes_and_closed_windows_may_be_over_later() {
    let freeze = Freeze { from: 100, until: Some(200), by: "ann".into(), reason: Some("end of the year".into()) };
    let window = Window::read("00:00-00:01").unwrap();
    let role = Role { freezes: vec![freeze], windows: vec![window], ..Role::default() };
    let at = |now| {
        role.permit(DeviceAction::Commit, now).map(|_| ()).map_err(|fault| (fault.may_retry, fault.detail.contains("end of the year")))
    };
    assert_eq!([at(10), at(150), at(300)], [Err((true, true)), Err((true, true)), Err((true, false))], "the clock may have gone back");
    assert!(role.permit(DeviceAction::Commit, 300).unwrap_err().detail.contains("begins at 1970-01-02T00:00:00Z"));
    assert!(role.permit(DeviceAction::Confirm, 300).is_ok() && role.permit(DeviceAction::Confirm, 150).is_ok());
}
