//! Possible contents of any client's file. Files written by real clients are in the tests beside this. Nothing here touches a network.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::*;
use super::{assert_reads_back, nowhere};

fn any_text() -> impl Strategy<Value = Value> {
    let known =
        ["${A}", "${env:A}", "${A:-b}", "${input:i}", "$A", "$${A}", "https://x/mcp", "http://y/sse?${A}", "stdio", "npx", "./a", "/"];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(str::to_owned), "[ -~ä\n\u{7f}]{0,10}"].prop_map(Value::from)
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any_text(),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null)
    ];
    let texts = proptest::collection::vec(any_text(), 0..4).prop_map(Value::from);
    let pairs =
        proptest::collection::btree_map("[a-zA-Z=_ä-]{0,6}", any_text(), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect()));
    prop_oneof![3 => leaf, 2 => texts, 2 => pairs]
}

fn any_entry() -> impl Strategy<Value = Value> {
    let keys = [
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "httpUrl",
        "serverUrl",
        "headers",
        "http_headers",
        "type",
        "timeout",
        "startup_timeout_sec",
        "disabled",
        "enabled",
        "alwaysAllow",
        "trust",
        "tools",
        "includeTools",
        "disabledTools",
        "oauth",
        "scopes",
        "bearer_token_env_var",
        "env_http_headers",
        "env_vars",
        "source",
        "x",
    ];
    let members = proptest::collection::vec((proptest::sample::select(keys.to_vec()), any_value()), 0..8);
    let good = prop_oneof![
        any_text().prop_map(|command| json!({ "command": command })),
        Just(json!({ "url": "https://x/mcp" })),
        proptest::collection::vec(any_text(), 0..3).prop_map(|args| json!({ "command": "x", "args": args })),
    ];
    (good, members).prop_map(|(good, members)| {
        let mut entry: Map<String, Value> = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        entry.extend(good.as_object().cloned().unwrap_or_default());
        Value::Object(entry)
    })
}

proptest! {
    #[test]
    fn whatever_is_taken_can_be_written_and_read_back(entries in proptest::collection::btree_map(".{0,8}", any_entry(), 0..5), client in proptest::sample::select(Client::ALL.to_vec())) {
        let places = nowhere();
        let location = client::Location { path: "/home/ada/project/servers.json".into(), project: Some("/home/ada/project".into()) };
        for key in ["mcpServers", "servers", "context_servers"] {
            let mut reading = Reading::new(&places, Some(client), &location);
            let text = json!({ key: entries.clone() }).to_string();
            prop_assert!(client == Client::Codex || (client.reader())(&mut reading, &text).is_ok());
            let mut found = Found::default();
            found.take(reading);
            assert_reads_back(&found, &places);
        }
    }

    #[test]
    fn no_text_breaks_a_reader(text in "[\\[\\]{}\",:/*a-c0-9= \n]{0,60}", client in proptest::sample::select(Client::ALL.to_vec())) {
        let places = nowhere();
        let location = client::Location { path: "x".into(), project: None };
        let mut reading = Reading::new(&places, Some(client), &location);
        let told = (client.reader())(&mut reading, &text);
        prop_assert!(told.is_err() || reading.servers.is_empty());
    }
}
