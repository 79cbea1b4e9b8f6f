use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::change::text::Tree;
use crate::dialect::Dialect;
use crate::fault::Code;

fn row(name: &str, more: &Value) -> Value {
    let mut row =
        json!({ "_uuid": ["uuid", format!("id-{name}")], "name": name, "external_ids": ["map", []], "other_config": ["map", []] });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    row
}

/// A bridge with its own port, an access port and a trunk.
fn rows() -> SwitchRows {
    let reference = |name: &str| json!(["uuid", format!("id-{name}")]);
    let port = |name: &str, more: Value| {
        let mut port = row(name, &json!({ "interfaces": ["uuid", format!("id-i-{name}")], "tag": ["set", []], "trunks": ["set", []] }));
        port.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        port
    };
    let interface = |name: &str, kind: &str| {
        let mut one = row(
            name,
            &json!({ "type": kind, "statistics": ["map", [["rx_bytes", 7], ["rx_errors", 1]]], "mtu": 1500, "mac_in_use": "02:00:00:00:00:01" }),
        );
        one["_uuid"] = json!(["uuid", format!("id-i-{name}")]);
        one
    };
    let result = json!([
        { "rows": [{ "_uuid": reference("root"), "bridges": reference("br0"), "external_ids": ["map", [["vlan-name-10", "guests"], ["system-id", "x"]]], "cur_cfg": 3, "next_cfg": 3 }] },
        { "rows": [row("br0", &json!({ "datapath_type": "netdev", "ports": ["set", [reference("br0"), reference("e1"), reference("e2")]] }))] },
        { "rows": [port("br0", json!({})), port("e1", json!({ "tag": 10 })), port("e2", json!({ "trunks": ["set", [10, 20, 21, 22]] }))] },
        { "rows": [interface("br0", "internal"), interface("e1", ""), interface("e2", "")] },
        { "rows": [] },
    ]);
    SwitchRows::from_result(result).unwrap()
}

const TEXT: &str = "bridge br0\n datapath_type netdev\nvlan 10\n name guests\nport e1\n in-bridge br0\n tag 10\nport e2\n in-bridge br0\n trunks 10,20-22\n";

fn changed(commands: &[&str]) -> Result<SwitchConfig, Fault> {
    let running = rows().config();
    let dialect = Dialect::named("ovs").unwrap();
    let mut tree = Tree::read(&running.write());
    tree.merge(commands.iter().copied(), dialect.grammar());
    SwitchConfig::read(&tree.write(dialect.grammar()), &running)
}

#[test]
fn nm_02_rows_of_a_switch_are_lines_and_contexts() {
    let config = rows().config();
    assert_eq!(config.write(), TEXT);
    assert_eq!(SwitchConfig::read(TEXT, &SwitchConfig::default()).unwrap(), config);
}

#[test]
fn nm_09_a_change_of_lines_is_one_transaction() {
    let running = rows().config();
    let wanted =
        changed(&["port e1", "tag 30", "port p9", "in-bridge br0", "tag 30", "interface p9", "type internal", "no port e2"]).unwrap();
    let params = settle(&rows(), &running, &wanted).params.unwrap();
    let text = params.to_string();
    let of = |op: &str, table: &str| params.as_array().unwrap().iter().filter(|one| one["op"] == op && one["table"] == table).count();
    assert_eq!((of("insert", "Port"), of("insert", "Interface"), of("update", "Port"), of("mutate", "Bridge")), (1, 1, 1, 1), "{text}");
    assert!(text.contains(r#""columns":["tag"],"until":"==","rows":[{"tag":10}]"#), "{text}");
    assert!(text.contains(r#"["ports","delete",["set",[["uuid","id-e2"]]]]"#), "{text}");
    assert!(settle(&rows(), &running, &running) == Settlement::default());
    assert!(settle(&rows(), &wanted, &wanted) == Settlement::default());
}

#[test]
fn nm_09_a_restore_leaves_the_work_of_others() {
    let running = rows().config();
    // Somebody else has removed e2 meanwhile: only e1 is brought back.
    let wanted = changed(&["port e1", "tag 30", "port e2", "trunks 40"]).unwrap();
    let mut seen = rows();
    seen.ports.remove("e2");
    let settled = settle(&seen, &wanted, &running);
    let params = settled.params.unwrap().to_string();
    assert!(params.contains(r#""row":{"tag":10}"#) && !params.contains("id-e2"), "{params}");
    assert_eq!(settled.lost, ["port e2 is not there any more: somebody else has removed it"]);
}

#[test]
fn nm_09_a_removed_row_must_be_as_seen() {
    let running = rows().config();
    let mut seen = rows();
    seen.ports.get_mut("e2").unwrap()["qos"] = json!(["set", []]);
    let text = settle(&seen, &running, &changed(&["no port e2"]).unwrap()).params.unwrap().to_string();
    for wait in [
        r#""where":[["_uuid","==",["uuid","id-e2"]]],"columns":["tag","trunks","external_ids","other_config","qos","interfaces"],"until":"==","rows":[{"#,
        r#""table":"Interface","where":[["_uuid","==",["uuid","id-i-e2"]]]"#,
        r#""table":"Mirror","where":[],"columns":["select_src_port","select_dst_port","output_port"],"until":"==","rows":[]"#,
    ] {
        assert!(text.contains(wait), "{wait} in {text}");
    }
    // A mirror that came since the candidate was made.
    let (bare, mut mirrored) = (changed(&["no port e2"]).unwrap(), rows());
    assert!(mirrored.check_removals(&running, &bare).is_ok());
    mirrored.mirrors.push(json!({ "select_src_port": ["uuid", "id-e2"], "select_dst_port": ["set", []], "output_port": ["set", []] }));
    assert_eq!(mirrored.check_removals(&running, &bare).unwrap_err().code, Code::ConfigIncompatible);
}

#[test]
fn nm_09_only_keys_and_values_of_the_change_are_touched() {
    let running = rows().config();
    let wanted = changed(&["port e2", "trunks 10,21-22,30", "external_ids a 1", "vlan_mode trunk"]).unwrap();
    let back = settle(&rows(), &wanted, &running).params.unwrap().to_string();
    assert!(back.contains(r#"[["trunks","delete",["set",[30]]],["trunks","insert",["set",[20]]]"#), "{back}");
    assert!(back.contains(r#"["external_ids","delete",["set",["a"]]],["external_ids","insert",["map",[]]]"#), "{back}");
    assert!(back.contains(r#""row":{"vlan_mode":["set",[]]}"#) && !back.contains(r#""row":{"trunks""#), "{back}");
}

#[test]
fn nm_09_a_port_without_a_bridge_is_told_as_lost() {
    let running = rows().config();
    let wanted = changed(&["no port e2", "port e1", "no tag"]).unwrap();
    let mut seen = rows();
    (seen.bridges, seen.ports, seen.interfaces) = Default::default();
    let settled = settle(&seen, &wanted, &running);
    assert_eq!(settled.params, None);
    let gone = "port e1 is not there any more: somebody else has removed it";
    assert_eq!(settled.lost, ["port e2 can't come back: somebody else has removed its bridge br0", gone]);
}

#[test]
fn nm_08_lines_that_no_switch_has_are_refused() {
    for (commands, why) in [
        (&["port e1", "tag 4096"][..], "no number from 0 to 4095"),
        (&["port e1", "tagg 1"], "is none of in-bridge, interfaces, tag, "),
        (&["port e1", "tagg 1"], "is it `tag`?"),
        (&["port e1", "no tagg"], "is it `tag`?"),
        (&["port e1", "no trunk"], "is it `trunks`?"),
        (&["port e1", "no"], "is none of"),
        (&["bridge br0", "no tag"], "is none of"),
        (&["vlan 10", "no nam"], "is it `name`?"),
        (&["prot e1"], "is it `port`?"),
        (&["port e1", "in-bridge br0 br1"], "has one value"),
        (&["port e7", "tag 1"], "stands in no bridge"),
        (&["port e7", "in-bridge br9"], "not there"),
        (&["interface e7", "type internal"], "no port has this interface"),
        (&["port b", "in-bridge br0", "interfaces e1,e7"], "already"),
        (&["vlan 5000", "name x"], "1 to 4094"),
        (&["hostname x"], "begins no context"),
        (&["port e1", "trunks 9-3"], "ends before"),
        (&["port e1", "tag \"1"], "quote"),
        (&["no port e9"], "none of this"),
    ] {
        let fault = changed(commands).unwrap_err();
        assert!(fault.code == Code::ConfigIncompatible && fault.detail.contains(why), "{commands:?}: {}", fault.detail);
    }
}

#[test]
fn nm_08_a_known_line_that_is_gone_is_no_mistake() {
    for lines in [["port e1", "no trunks"], ["bridge br0", "no external_ids x"], ["vlan 20", "no name"], ["port e2", "no interfaces"]] {
        assert_eq!(changed(&lines), Ok(rows().config()), "{lines:?}");
    }
}

#[test]
fn nm_12_a_line_of_a_switch_has_one_form() {
    for (line, form) in [
        ("port \"uplink\"", "port uplink"),
        ("t\\u0061g 30", "\"t\\\\u0061g\" 30"),
        ("\"t\\u0061g\"  30", "tag 30"),
        ("\"no\" \"p\\u006frt\"\"uplink\"", "no port uplink"),
        (" name \"two words\"", "name \"two words\""),
        ("! it's a \"comment", "! it's a \"comment"),
        ("", ""),
    ] {
        assert_eq!(canonical_line(line), Ok(form.to_owned()), "{line}");
    }
    for line in ["port \"uplink", "\"t\\x61g\" 30"] {
        assert_eq!(canonical_line(line).unwrap_err().code, Code::ConfigIncompatible, "{line}");
    }
    for lines in
        [["port e1", " tag 030"], ["port e1", " tag +30"], ["port e1", " trunks 010"], ["vlan 010", " name x"], ["vlan +10", " name x"]]
    {
        assert_eq!(changed(&lines).unwrap_err().code, Code::ConfigIncompatible, "{lines:?}");
    }
}

#[test]
fn nm_09_ports_go_with_their_bridge() {
    assert_eq!(changed(&["no bridge br0"]).unwrap().write(), "vlan 10\n name guests\n");
    let wanted = changed(&["no port e1"]).unwrap();
    assert!(!wanted.write().contains("e1"));
}

#[test]
fn nm_08_answers_of_the_database_have_a_code() {
    let code = |error: &str| answers(&json!([{}, { "error": error, "details": "why" }])).unwrap_err();
    assert_eq!(code("permission error").code, Code::AccessDenied);
    assert_eq!(code("constraint violation").code, Code::ConfigIncompatible);
    assert_eq!(code("resources exhausted").code, Code::HardwareFailure);
    assert!(code("timed out").may_retry && code("timed out").detail.contains("meanwhile"));
    assert!(answers(&json!([{ "rows": [] }, null])).is_ok());
}

#[test]
fn nm_03_counters_and_vlans_have_the_names_of_openconfig() {
    let all = rows().interfaces();
    let e1 = all.iter().find(|one| one.name == "e1").unwrap();
    assert_eq!(e1.data["state"]["counters"], json!({ "in-octets": 7, "in-errors": 1 }));
    assert_eq!(e1.data["openconfig-vlan:switched-vlan"], json!({ "interface-mode": "ACCESS", "access-vlan": 10 }));
    assert!(vlans(&rows().config()).contains("10    guests                   e1, e2"));
}

#[test]
fn nm_10_messages_of_the_database_come_in_any_pieces() {
    let bytes = br#"{"id":1,"result":[{"a":"}\"{"}],"error":null} {"id":"echo","method":"echo","params":[]}{"id":2,"result":null,"error":{"error":"x"}}"#;
    for length in 1..bytes.len() {
        let mut stream = OvsdbStream::new(2_000);
        let mut told = Vec::new();
        for piece in bytes.chunks(length) {
            stream.receive(piece);
            while let Some(message) = stream.message().unwrap() {
                told.push(message);
            }
        }
        assert_eq!(told.len(), 3, "{length}");
        assert!(
            matches!(&told[0], OvsdbMessage::Answer { id: 1, result: Ok(_) })
                && matches!(&told[2], OvsdbMessage::Answer { id: 2, result: Err(_) })
        );
    }
    let mut stream = OvsdbStream::new(10);
    stream.receive(b"[1,2,3,4,5,6,7,8,9]");
    assert!(stream.message().is_err());
    // Neither many messages nor many elements pass the bound by.
    let mut stream = OvsdbStream::new(1_000);
    let told = std::iter::repeat_with(|| {
        stream.receive(br#"{"method":"x"} "#);
        stream.message()
    });
    assert_eq!(told.take(1_000).filter(Result::is_ok).count(), 2_000 / 15);

    let mut stream = OvsdbStream::new(100);
    stream.receive(format!("[{}]", "[],".repeat(20)).as_bytes());
    assert!(stream.message().is_err());
}

proptest! {
    #[test]
    fn nm_02_any_word_comes_back_out_of_its_line(word in ".{1,40}", other in ".{1,40}") {
        let mut config = rows().config();
        let lines = format!("bridge br0\n external_ids {} {}\n", column::quoted(&word), column::quoted(&other));
        config = SwitchConfig::read(&lines, &config).unwrap();
        prop_assert_eq!(SwitchConfig::read(&config.write(), &SwitchConfig::default()).unwrap(), config);
    }
}
