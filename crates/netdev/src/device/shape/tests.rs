//! Arguments that look like those of a tool and are none.

use equipment::{DeviceSecrets, DeviceSettings};
use serde_json::json;

use super::*;
use crate::device::tools;
use crate::site::Site;

/// Words of schemas that are held against arguments, and those that say nothing about their shape.
const WORDS: [&str; 10] =
    ["type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "minimum", "enum", "description"];

fn site(dir: &tempfile::TempDir) -> Site {
    Site::open(DeviceSettings::new("r1"), &DeviceSecrets::default(), dir.path()).unwrap()
}

fn check_words(schema: &Value) {
    for word in schema.as_object().unwrap().keys() {
        assert!(WORDS.contains(&word.as_str()), "{word} in {schema}");
    }
    schema.get("items").into_iter().for_each(check_words);
    schema.get("properties").into_iter().flat_map(|all| all.as_object().unwrap().values()).for_each(check_words);
    let is_closed = schema["type"] != "object" || schema["additionalProperties"] == false;
    assert!(is_closed, "{schema}");
}

#[test]
fn schemas_of_devices_use_no_unknown_word() {
    let dir = tempfile::tempdir().unwrap();
    let all = tools::definitions(&site(&dir));
    assert!(all.len() >= 8, "{all:#?}");
    all.iter().for_each(|tool| check_words(&tool["inputSchema"]));
    check_words(&tools::write_schema());
}

#[tokio::test]
async fn nm_12_tools_take_arguments_of_their_schema_alone() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(&dir);
    for (tool, arguments, path, why) in [
        ("network.cli.exec", json!({ "command": "show version" }), "command", "which takes `cmd`"),
        ("network.cli.exec", json!({ "cmd": ["show version"] }), "cmd", "a text, and was given a list of 1"),
        ("network.cli.exec", json!({ "cmd": "show version", "CMD": "x" }), "CMD", "is no argument"),
        ("network.cli.exec", json!({}), "cmd", "is missing"),
        ("network.cli.configure", json!({ "lines": ["hostname x"] }), "lines", "which takes"),
        ("network.cli.configure", json!({ "commands": "hostname x" }), "commands", "a list with at least one item, each a text"),
        ("network.cli.configure", json!({ "commands": ["hostname x", 7] }), "commands[1]", "a text, and was given the number 7"),
        ("network.cli.configure", json!({ "commands": ["x", ["y"]] }), "commands[1]", "a list of 1"),
        ("network.cli.configure", json!({ "commands": [] }), "commands", "given a list of 0"),
        ("network.cli.configure", json!({ "commands": ["x"], "chunked": 1 }), "chunked", "true or false"),
        ("network.commit", json!({ "confirm": "true" }), "confirm", "true or false, and was given a text of 4 bytes"),
        ("network.commit", json!({ "confirm": 1 }), "confirm", "true or false"),
        ("network.commit", json!({ "confirmed": 0 }), "confirmed", "a whole number from 1 on"),
        ("network.commit", json!({ "confirmed": -1 }), "confirmed", "given the number -1"),
        ("network.commit", json!({ "confirmed": 60.5 }), "confirmed", "a whole number"),
        ("network.commit", json!({ "confirmed": "60" }), "confirmed", "a whole number"),
        ("network.commit", json!({ "hash": 7 }), "hash", "a text"),
        ("network.commit", json!({ "hash": null }), "hash", "given null"),
        ("network.commit", json!({ "confirm": true, "confirmed": 60 }), "confirmed", "leave one of them out"),
        ("network.rollback", json!({ "confirm": true }), "confirm", "which takes `confirmed`"),
        ("network.rollback", json!({ "confirmed": "true" }), "confirmed", "true or false"),
        ("network.file.push", json!({ "filename": "candidate-config", "content": { "text": "x" } }), "content", "an object of 1"),
        ("network.yang.edit", json!({ "edit": [{ "path": "/a", "op": "delete" }] }), "edit[0].op", "is no argument of `edit[0]`"),
        ("network.yang.edit", json!({ "edit": [{ "path": "/a", "operation": "wipe" }] }), "edit[0].operation", "delete"),
        ("network.yang.edit", json!({ "edit": [{ "value": 1 }] }), "edit[0].path", "is missing"),
        ("network.yang.edit", json!({ "edit": { "path": "/a" } }), "edit", "a list"),
        ("network.yang.edit", json!({ "edit": [{ "path": "/a" }], "target": "running" }), "target", "candidate"),
        ("network.yang.get", json!({ "path": "/", "datastore": "startup" }), "datastore", "running or operational"),
    ] {
        let fault = tools::call(&site, tool, arguments.as_object().unwrap()).await.unwrap_err();
        let is_it = fault.code == Code::InvalidParams && fault.path.as_deref() == Some(path) && fault.detail.contains(why);
        assert!(is_it, "{tool} {arguments}: {fault:?}");
    }
}

#[test]
fn nm_12_previews_take_what_their_changes_take() {
    let schema = json!({ "type": "object", "properties": { "hash": { "type": "string" } }, "required": [], "additionalProperties": false });
    let mut all = vec![json!({ "name": "network.commit", "inputSchema": schema })];
    crate::device::preview::offer(&mut all);
    assert_eq!(all[1]["inputSchema"], all[0]["inputSchema"]);
}

#[test]
fn nm_12_faults_about_huge_arguments_are_short() {
    let schema = json!({ "properties": { "commands": { "type": "array", "items": { "type": "string" } }, "value": {} } });
    let mut deep = Value::Null;
    for _ in 0..10_000 {
        deep = Value::Array(vec![deep]);
    }
    let fault = |arguments: &Arguments| check("a tool", &schema, arguments).unwrap_err();
    let long = fault(&Arguments::from_iter([("ä".repeat(4 << 20), Value::Null)]));
    let wide = fault(&Arguments::from_iter([("commands".to_owned(), json!({ "x": vec!["y"; 100_000] }))]));
    let nested = Arguments::from_iter([("commands".to_owned(), json!(["a"])), ("value".to_owned(), deep.take())]);
    assert!(check("a tool", &schema, &nested).is_ok());
    for fault in [long, wide] {
        assert!(fault.detail.len() < 400 && fault.path.as_ref().unwrap().len() < 200, "{fault:?}");
    }
}

#[tokio::test]
async fn nm_12_a_resource_is_written_in_one_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(&dir);
    let uri = "network:///file/candidate-config";
    for (params, why) in [
        (json!({ "uri": uri, "text": "hostname x" }), "`text` is no argument of resources/write, which takes"),
        (json!({ "uri": uri, "content": "hostname x" }), "`content` is no argument"),
        (json!({ "uri": uri }), "`contents` is missing"),
        (json!({ "uri": uri, "contents": { "text": "hostname x" } }), "`contents` is a list with one item"),
        (json!({ "uri": uri, "contents": [{ "data": "hostname x" }] }), "`contents[0].data` is no argument"),
        (json!({ "uri": uri, "contents": [{ "text": "a" }, { "text": "b" }] }), "given a list of 2"),
        (json!({ "uri": uri, "contents": [{ "uri": "network:///file/running-config", "text": "a" }] }), "another `uri`"),
    ] {
        let fault = tools::write(&site, params.as_object().unwrap()).await.unwrap_err();
        assert!(fault.code == Code::InvalidParams && fault.detail.contains(why), "{params}: {}", fault.detail);
    }
}
