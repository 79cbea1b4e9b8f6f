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
    assert!(role.permit(DeviceAction::ReadPath("/a"), 0).is_ok() && role.permit(DeviceAction::ReadFile, 0).is_ok());
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
    assert_eq!([at(10), at(150), at(300)], [Ok(()), Err((true, true)), Err((true, false))]);
    assert!(role.permit(DeviceAction::Commit, 300).unwrap_err().detail.contains("begins at 1970-01-02T00:00:00Z"));
    assert!(role.permit(DeviceAction::Confirm, 300).is_ok() && role.permit(DeviceAction::Confirm, 150).is_ok());
}
