//! The prompts over all dialects, with answers as devices give them. No device is asked.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;
use crate::dialect::{CommandClass, StepCommand};

fn dialect(name: &str) -> Arc<Dialect> {
    Dialect::named(name).unwrap()
}

fn device(dialect: &Dialect) -> PromptDevice<'_> {
    PromptDevice { dialect, confirmed: Some(120), running: None }
}

fn given(arguments: &Value) -> Map<String, Value> {
    arguments.as_object().unwrap().clone()
}

fn ping() -> PromptState {
    PromptState::begin(PING, &given(&json!({ "src": "192.168.1.1", "dst": "10.0.0.5" }))).unwrap()
}

fn vlan() -> PromptState {
    PromptState::begin(VLAN, &given(&json!({ "vlan_id": "100", "name": "office", "ports": "Gi0/1,Gi0/2" }))).unwrap()
}

/// Follows the steps with these answers; the last step.
fn walked(state: PromptState, dialect: &Dialect, answers: &[&str]) -> PromptStep {
    let mut step = state.first(device(dialect)).unwrap();
    for answer in answers {
        let handle = step.next.unwrap().to_handle();
        step = PromptState::from_handle(&handle).unwrap().follow(&CallAnswer::from_text(answer), device(dialect)).unwrap();
    }
    step
}

#[test]
fn nm_07_a_ping_that_fails_for_want_of_a_route() {
    let cases = [("ios", "% Subnet not in table"), ("junos", "\n"), ("vrp", "Info: The route does not exist.")];
    for (name, answer) in cases {
        let step = walked(ping(), &dialect(name), &[answer]);
        assert!(step.markdown.contains("There is no route to 10.0.0.5."), "{name}: {}", step.markdown);
        assert!(step.markdown.ends_with("Diagnosis complete.") && step.next.is_none());
    }
}

#[test]
fn nm_07_without_a_route_interfaces_nearby_are_looked_at() {
    let dialect = dialect("frr");
    let all = "Interface eth0 is up, line protocol is up\n  inet 10.0.0.1/8\nInterface lan0 is down\n  inet 10.0.0.9/29\n  vrf: default\n";
    for unrouted in ["{\n}\n", "{\n  \"0.0.0.0/0\":[\n  ]\n}\n"] {
        let step = walked(ping(), &dialect, &[unrouted, all]);
        assert!(step.markdown.contains("There is no route to 10.0.0.5.") && step.next.is_none(), "{}", step.markdown);
        let step = walked(ping(), &dialect, &[unrouted, &all.replace("10.0.0.9", "10.0.0.1")]);
        assert!(step.markdown.contains("lan0 is shut down by configuration."), "{}", step.markdown);
        assert_eq!(step.calls[0].arguments, json!({ "commands": ["interface lan0", " no shutdown"] }));
        let step = walked(ping(), &dialect, &[unrouted, &all.replace("lan0", "lan0;reload")]);
        assert!(step.next.is_none(), "{}", step.markdown);
    }
}

#[test]
fn nm_12_a_name_that_a_device_says_becomes_no_command() {
    for name in ["eth0;reload", "eth0 | redirect x", "et\\u000b0", "eth0\\nreload"] {
        let route = format!("{{\"10.0.0.0/24\":[{{\"interfaceName\":\"{name}\"}}]}}");
        let step = walked(ping(), &dialect("frr"), &[&route]);
        assert!(!step.calls.iter().any(|call| call.arguments["cmd"].as_str().unwrap_or_default().contains("eth0")), "{:?}", step.calls);
        assert!(!step.calls.iter().any(|call| call.arguments["cmd"].as_str().unwrap_or_default().contains("et\u{b}")), "{:?}", step.calls);
    }
}

#[test]
fn nm_07_a_ping_that_fails_at_an_interface_shut_down() {
    let routes = [
        ("frr", r#"{"10.0.0.0/24":[{"nexthops":[{"ip":"10.0.12.2","interfaceName":"eth0"}]}]}"#, "eth0"),
        ("ios", "  * 10.0.12.2, via GigabitEthernet0/0, from 10.0.12.2", "GigabitEthernet0/0"),
        ("junos", "10.0.0.0/24 *[OSPF/10] 01:02\n  > to 10.0.12.2 via ge-0/0/1.0", "ge-0/0/1.0"),
        ("vrp", "10.0.0.0/24 OSPF 10 2 D 10.0.12.2 GigabitEthernet0/0/1", "GigabitEthernet0/0/1"),
    ];
    let states = [
        ("frr", "Interface eth0 is down\n  Link ups: 1"),
        ("ios", "GigabitEthernet0/0 is administratively down, line protocol is down"),
        ("junos", "ge-0/0/1.0  down  down"),
        ("vrp", "GigabitEthernet0/0/1 current state : Administratively DOWN"),
    ];
    for ((name, route, interface), (_, state)) in routes.into_iter().zip(states) {
        let step = walked(ping(), &dialect(name), &[route, state]);
        assert!(step.markdown.contains(&format!("{interface} is shut down by configuration.")), "{name}: {}", step.markdown);
        assert!(step.markdown.contains("network.cli.configure"), "{name}");
    }
}

#[test]
fn nm_07_a_ping_is_followed_to_its_end() {
    let dialect = dialect("ios");
    let route = "via GigabitEthernet0/0, from 10.0.12.2";
    let up = "GigabitEthernet0/0 is up, line protocol is up";
    let arp = "Internet  10.0.0.55  1 0000.0000.0001 ARPA G\nInternet  10.0.0.5  1 0050.56ab.cdef ARPA G";
    let step = walked(ping(), &dialect, &[route, up, arp]);
    assert_eq!(step.calls[0].arguments, json!({ "cmd": "ping 10.0.0.5 source 192.168.1.1 repeat 5" }));
    assert!(step.markdown.contains("answers on the link, as 0050.56ab.cdef."), "{}", step.markdown);
    let step = walked(ping(), &dialect, &[route, up, arp, "Success rate is 60 percent (3/5)"]);
    assert!(step.markdown.contains("60 % of the pings are answered") && step.next.is_none(), "{}", step.markdown);
}

#[test]
fn nm_07_each_command_of_a_prompt_only_reads() {
    for name in Dialect::NAMES {
        let dialect = dialect(name);
        let values = [("src", "10.0.0.1"), ("dst", "10.0.0.5"), ("vrf", "mgmt"), ("interface", "eth0"), ("ip", "ip")];
        for command in [
            StepCommand::Route,
            StepCommand::Interfaces,
            StepCommand::Interface,
            StepCommand::Neighbour,
            StepCommand::Ping,
            StepCommand::Vlans,
        ] {
            for in_vrf in [false, true] {
                let Some(text) = dialect.step_command(command, in_vrf, &values) else { continue };
                assert!(!text.contains(['{', '}']), "{name}: {text}");
                assert_eq!(dialect.command(&text).unwrap().class, CommandClass::Read, "{name}: {text}");
            }
        }
        assert!(dialect.step_command(StepCommand::Route, false, &values).is_some(), "{name}");
    }
}

#[test]
fn nm_07_a_vlan_is_committed_only_after_a_person_agreed() {
    for name in ["ios", "junos", "vrp"] {
        let dialect = dialect(name);
        let step = walked(vlan(), &dialect, &["1 default active"]);
        assert_eq!((step.calls[0].tool, step.calls[0].needs_approval), ("network.cli.configure", false), "{name}");
        let step = walked(vlan(), &dialect, &["1 default active", "+ vlan 100"]);
        assert_eq!(step.calls[0].arguments, json!({ "confirmed": 120 }));
        assert!(step.calls[0].needs_approval && step.markdown.contains("Ask the user") && step.markdown.contains("+ vlan 100"));
        assert_eq!(step.meta(None)["toolCalls"][0]["needsApproval"], json!(true));
        let step = walked(vlan(), &dialect, &["1 default active", "+ vlan 100", "Applied"]);
        assert_eq!(step.calls[0].arguments, json!({ "confirm": true }));
        assert!(step.calls[0].needs_approval && step.markdown.contains("Ask the user"));
        let step = walked(vlan(), &dialect, &["1 default active", "+ vlan 100", "Applied", "Confirmed"]);
        assert!(step.next.is_none() && step.markdown.ends_with("Diagnosis complete."));
    }
}

#[test]
fn nm_07_a_vlan_that_is_there_is_not_made_again() {
    let step = walked(vlan(), &dialect("ios"), &["VLAN Name\n1 default\n100 old  active"]);
    assert!(step.markdown.contains("VLAN 100 is there already."), "{}", step.markdown);
    let fault = vlan().first(device(&dialect("frr"))).unwrap_err();
    assert_eq!(fault.code, Code::ConfigIncompatible);
}

#[test]
fn nm_07_ports_go_into_their_vlan() {
    let lines = dialect("ios").vlan_lines(100, "office", &["Gi0/1".into()]);
    assert_eq!(lines, ["vlan 100", " name office", "interface Gi0/1", " switchport access vlan 100"]);
    assert_eq!(dialect("junos").vlan_lines(100, "office", &[]), ["set vlans office vlan-id 100"]);
}

#[test]
fn nm_07_arguments_are_checked() {
    let begin = |name: &str, arguments: Value| PromptState::begin(name, &given(&arguments));
    let vlan = |id: Value| begin(VLAN, json!({ "vlan_id": id, "name": "x" })).map_err(|fault| (fault.code, fault.detail));
    assert!(vlan(json!(4094)).is_ok() && vlan(json!(" 7 ")).is_ok());
    assert_eq!(vlan(json!(4095)), Err((Code::ConfigIncompatible, "VLAN 4095 > maximum 4094".into())));
    assert_eq!(vlan(json!("0")).unwrap_err().0, Code::ConfigIncompatible);
    assert_eq!(vlan(json!(1.5)).unwrap_err().0, Code::InvalidParams);
    let ports = |ports: Value| begin(VLAN, json!({ "vlan_id": 1, "name": "x", "ports": ports })).is_ok();
    assert!(ports(json!(["eth1"])) && ports(json!("eth1, eth2")) && ports(json!("[\"eth1\"]")) && ports(json!("")));
    assert!(!ports(json!(["eth1\nreload"])) && !ports(json!("eth1;x")) && !ports(json!([1])) && !ports(json!(5)));
    for bad in ["a b", "", "x\nend", "-x", &"x".repeat(33)] {
        assert!(begin(VLAN, json!({ "vlan_id": 1, "name": bad })).is_err(), "{bad:?}");
        assert!(bad.is_empty() || begin(PING, json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "vrf": bad })).is_err(), "{bad:?}");
    }
    assert!(begin(PING, json!({ "src": "10.0.0.1", "dst": "10.0.0.2; reload" })).is_err());
    assert!(begin(AUDIT, json!({ "profile": "other" })).is_err());
    assert_eq!(begin("network.x", json!({})).unwrap_err().code, Code::InvalidParams);
}

#[test]
fn a_handle_holds_no_more_than_a_step_put() {
    let state = ping();
    assert_eq!(PromptState::from_handle(&state.to_handle()).unwrap(), state);
    let forged = |from: &str, to: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(state.to_handle()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(from), "{text}");
        PromptState::from_handle(&URL_SAFE_NO_PAD.encode(text.replace(from, to)))
    };
    assert!(forged("\"interface\":null", "\"interface\":\"eth0\"").is_ok());
    assert!(forged("\"interface\":null", "\"interface\":\"eth0\\nreload\"").is_err());
    assert!(forged("\"vrf\":null", "\"vrf\":\"a b\"").is_err());
    let wide = PromptState::Vlan(VlanState::new(5000, "x".into(), vec![]));
    assert!(PromptState::from_handle(&wide.to_handle()).is_err());
    for other in ["", "x", "!", &"A".repeat(20_000)] {
        assert!(PromptState::from_handle(other).is_err());
    }
}

#[test]
fn nm_07_an_audit_finds_weak_lines_and_shows_none() {
    let running = "hostname r1\nenable password s3cr3t\nsnmp-server community public RO\nline vty 0 4\n transport input telnet ssh\n";
    let dialect = dialect("ios");
    let device = PromptDevice { running: Some(running), ..device(&dialect) };
    let begin = |profile: &str| PromptState::begin(AUDIT, &given(&json!({ "profile": profile }))).unwrap().first(device).unwrap();
    let basic = begin("basic").markdown;
    for found in
        ["**high** `enable-password`, line 2", "**high** `snmp-default`, line 3", "**high** `telnet`, line 5", "**medium** `aaa`: "]
    {
        assert!(basic.contains(found), "{found}: {basic}");
    }
    assert!(!basic.contains("s3cr3t") && !basic.contains("public") && !basic.contains("`time`"), "{basic}");
    assert!(begin("detailed").markdown.contains("**low** `time`"));
    assert!(basic.ends_with("Diagnosis complete."));
    let unread = PromptState::begin(AUDIT, &given(&json!({ "profile": "basic" }))).unwrap().first(self::device(&dialect));
    assert_eq!(unread.unwrap_err().code, Code::ConfigIncompatible);
}

#[test]
fn nm_07_an_audit_of_a_sound_configuration_finds_nothing() {
    let frr = "log syslog informational\nrouter bgp 65001\n neighbor 10.0.0.2 remote-as 65002\n neighbor 10.0.0.2 password x\n";
    assert_eq!(dialect("frr").findings(frr, true), []);
    let vrp = "info-center loghost 10.0.0.9\nntp-service unicast-server 10.0.0.9\n";
    assert_eq!(dialect("vrp").findings(vrp, true), []);
}

#[test]
fn nm_07_descriptions_carry_types_for_forms() {
    let all = descriptors(&dialect("ios"));
    assert_eq!(all.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect::<Vec<_>>(), [PING, VLAN, AUDIT]);
    assert_eq!(all[1]["arguments"][0]["maximum"], json!(4094));
    assert_eq!(all[1]["required"], json!(["vlan_id", "name"]));
    assert_eq!(all[1]["arguments"][2]["required"], json!(false));
    let frr = descriptors(&dialect("frr"));
    assert_eq!(
        (&frr[1]["name"], &frr[1]["_meta"]["available"], &frr[0]["_meta"]["available"]),
        (&json!(VLAN), &json!(false), &Value::Null)
    );
}

#[test]
fn nm_07_completion_knows_the_last_port_of_several() {
    let complete = |argument: &str, typed: &str| completions(argument, typed, &["Gi0/1", "Gi0/2", "Te1/1"], &["10.0.0.1"], &["mgmt"]);
    assert_eq!(complete("ports", "Te1/1,gi"), ["Te1/1,Gi0/1", "Te1/1,Gi0/2"]);
    assert_eq!(complete("src", "10."), ["10.0.0.1"]);
    assert_eq!(complete("profile", ""), ["basic", "detailed"]);
    assert_eq!(complete("dst", "1"), [] as [&str; 0]);
}

#[test]
fn nm_07_a_person_agrees_before_an_interface_is_switched_on() {
    let dialect = dialect("frr");
    let route = r#"{"10.0.0.0/24":[{"nexthops":[{"ip":"10.0.12.2","interfaceName":"eth0"}]}]}"#;
    let down = "Interface eth0 is down\n  Link ups: 1";
    let step = walked(ping(), &dialect, &[route, down]);
    assert_eq!((step.calls[0].tool, step.asks_person()), ("network.cli.configure", false));
    let step = walked(ping(), &dialect, &[route, down, "+ no shutdown"]);
    assert_eq!((step.calls[0].tool, &step.calls[0].arguments), ("network.commit", &json!({ "confirmed": 120 })));
    assert!(step.asks_person() && step.markdown.contains("+ no shutdown"), "{}", step.markdown);
    assert!(step.declined().markdown.ends_with("Diagnosis complete.") && step.declined().calls.is_empty());
    let step = walked(ping(), &dialect, &[route, down, "+ no shutdown", "Applied"]);
    assert!(step.asks_person() && step.calls[0].arguments == json!({ "confirm": true }));
    let step = walked(ping(), &dialect, &[route, down, "+ no shutdown", "Applied", "Confirmed"]);
    assert!(step.next.is_none() && step.markdown.contains("is switched on now"), "{}", step.markdown);
}

#[test]
fn nm_07_a_diagnosis_ends_where_the_device_rolls_nothing_back() {
    let dialect = dialect("frr");
    let without = PromptDevice { confirmed: None, ..device(&dialect) };
    let route = r#"{"10.0.0.0/24":[{"nexthops":[{"interfaceName":"eth0"}]}]}"#;
    let step = ping().follow(&CallAnswer::from_text(route), without).unwrap();
    let step = step.next.unwrap().follow(&CallAnswer::from_text("Interface eth0 is down"), without).unwrap();
    assert!(step.next.is_none() && step.calls.is_empty() && step.markdown.contains("shut down by configuration"), "{}", step.markdown);
}

#[test]
fn nm_07_a_call_that_failed_ends_the_prompt() {
    let answer = CallAnswer::read(&json!({ "isError": true, "content": [{ "type": "text", "text": "no right" }] }));
    let step = vlan().follow(&answer, device(&dialect("ios"))).unwrap();
    assert!(
        step.next.is_none() && step.markdown.contains("no right") && step.markdown.ends_with("Diagnosis complete."),
        "{}",
        step.markdown
    );
}

#[test]
fn nm_12_prompts_take_their_own_arguments_alone() {
    for (prompt, arguments, why) in [
        (PING, json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "vrf": 7 }), "`vrf` is a text"),
        (PING, json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "vrf": ["red"] }), "`vrf` is a text"),
        (PING, json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "VRF": "red" }), "`VRF` is no argument of network.troubleshoot.ping-fail"),
        (VLAN, json!({ "vlan_id": 1.5, "name": "x" }), "`vlan_id` is a whole number"),
        (VLAN, json!({ "vlan_id": 5, "name": { "x": 1 } }), "`name` is a text"),
        (VLAN, json!({ "vlan_id": 5, "name": "x", "ports": ["e1", 2] }), "`ports` is a list of interface names"),
        (VLAN, json!({ "vlan_id": 5, "name": "x", "port": "e1" }), "which takes vlan_id, name, ports"),
        (AUDIT, json!({ "profile": true }), "`profile` is a text"),
    ] {
        let fault = PromptState::begin(prompt, &given(&arguments)).unwrap_err();
        assert!(fault.code == Code::InvalidParams && fault.detail.contains(why), "{prompt} {arguments}: {fault}");
    }
    let long = Map::from_iter([("x".repeat(1 << 20), Value::Null)]);
    assert!(check_names(PING, &long).unwrap_err().detail.len() < 300);
    assert!(PromptState::begin(PING, &given(&json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "vrf": null, "results": "" }))).is_ok());
}
