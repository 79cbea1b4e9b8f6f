use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::capability::{Capabilities, Pattern};
use crate::envelope::{Envelope, RefusedEnvelope};
use crate::kind::Kind;

/// JSON examples of the specification of MEW v0.4, by section, with their translations.
const GOLDEN: &str = include_str!("../../tests/mew.json");

fn golden(member: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    golden[member].as_array().unwrap().clone()
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn inward(translator: &Translator, mew: &Value) -> Result<Value, RefusedEnvelope> {
    match translator.inward(mew.to_string().as_bytes(), 1 << 20)? {
        Inward::Envelope(bytes) => {
            // What comes out is an envelope, whatever went in.
            Envelope::decode(&bytes, usize::MAX)?;
            Ok(value(&bytes))
        }
        Inward::Join => panic!("{mew} asks to join"),
    }
}

fn outward(translator: &mut Translator, mcpx: &Value) -> Option<Value> {
    match translator.outward(mcpx.to_string().as_bytes()) {
        Outward::Envelope(bytes) => Some(value(&bytes)),
        Outward::Held { .. } | Outward::Unknown => None,
    }
}

/// A translator with the messages referred to by the examples.
fn having_heard() -> Translator {
    let mut translator = Translator::default();
    for row in golden("messages") {
        if matches!(row["mew"]["kind"].as_str(), Some(PROPOSAL | REQUEST)) {
            let said = inward(&translator, &row["mew"]).unwrap();
            outward(&mut translator, &said).unwrap();
        }
    }
    translator
}

#[test]
fn examples_of_mew_survive_translation_there_and_back() {
    let mut translator = having_heard();
    for row in golden("messages") {
        let (section, mew) = (&row["section"], &row["mew"]);
        let mcpx = inward(&translator, mew).unwrap_or_else(|refused| panic!("{section}: {refused:?}"));
        assert_eq!(mcpx["kind"], row["kind"], "{section}");
        assert_eq!((&mcpx["protocol"], &mcpx["correlation_id"]), (&json!("mcpx/v0.1"), &mew["correlation_id"][0]), "{section}");
        let mut again = outward(&mut translator, &mcpx).unwrap();
        if mew.get("payload").is_none() {
            assert_eq!(again.as_object_mut().unwrap().remove("payload"), Some(json!({})), "{section}");
        }
        assert_eq!(again, *mew, "{section}");
    }
}

#[test]
fn unserved_mew_requests_are_refused_with_advice() {
    let translator = Translator::default();
    for row in golden("refused") {
        let refused = inward(&translator, &row["mew"]).unwrap_err();
        let said = refused.why.to_string();
        assert_eq!((refused.why.code(), refused.id.as_deref()), ("invalid_envelope", row["mew"]["id"].as_str()));
        assert!(said.contains("/capabilities") || said.contains("`stream/open`"), "{}: {said}", row["section"]);
    }
}

#[test]
fn what_the_gateway_says_has_objects_for_patterns() {
    for row in golden("gateway") {
        assert_eq!(outward(&mut Translator::default(), &row["mcpx"]).as_ref(), Some(&row["mew"]), "{}", row["section"]);
    }
    let system =
        json!({"protocol": "mcpx/v0.1", "id": "1", "from": "system:gateway", "kind": "system/history", "payload": {"messages": []}});
    assert_eq!(outward(&mut Translator::default(), &system), None, "what MEW does not have");
}

#[test]
fn capabilities_are_patterns_here_and_objects_there() {
    let said = |pattern: &Value| serde_json::from_str::<Value>(&object_of(pattern.as_str().unwrap())).unwrap();
    for row in golden("capabilities") {
        let (pattern, object) = (&row[0], &row[1]);
        assert_eq!(said(pattern), *object, "{pattern}");
        assert_eq!(pattern_of(object.to_string().as_bytes()).as_deref(), pattern.as_str(), "{object}");
        Pattern::new(pattern.as_str().unwrap()).unwrap();
    }
    for row in golden("wider") {
        assert_eq!(said(&row[0]), row[1], "what MEW can't say is left out");
    }
    for object in golden("unsaid") {
        assert_eq!(pattern_of(object.to_string().as_bytes()), None, "{object}");
    }
    assert_eq!(pattern_of(br#"{"kind":"chat","kind":"mcp/*"}"#), None, "two readings");
}

fn message(kind: &str, more: &Value) -> Value {
    let mut message = json!({"protocol": "mew/v0.4", "id": "m", "from": "ann", "kind": kind, "payload": {}});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

fn refusal(mew: &Value) -> String {
    let refused = inward(&having_heard(), mew).unwrap_err();
    format!("{}: {}", refused.why.code(), refused.why)
}

#[test]
fn ambiguous_messages_and_hidden_methods_are_refused() {
    let payload = |payload: Value| json!({ "payload": payload });
    for (mew, said) in [
        (message("mcp/request", &payload(json!({"params": {}}))), "no `method`"),
        (message("mcp/request", &payload(json!({"method": "tools/call:read_file", "params": {"name": "rm"}}))), "no `method`"),
        (message("mcp/request:tools/list", &payload(json!({"method": "tools/call"}))), "holds a colon"),
        (message("mcp/response", &json!({"correlation_id": ["nobody asked"]})), "names no request"),
        (message("mcp/response", &json!({"correlation_id": ["env-req-1"]})), "names no request"),
        (message("mcp/withdraw", &json!({"correlation_id": ["env-call-1"]})), "names no proposal"),
        (message("mcp/reject", &json!({})), "names no proposal"),
        (message("chat", &json!({"correlation_id": 1})), "must be a list of ids"),
        (message("chat", &json!({"correlation_id": ["m", 1]})), "must be a string"),
        (message("chat", &json!({"correlation_ids": ["m"]})), "no member of MEW"),
        (message("chat", &json!({"protocol": "mcpx/v0.1"})), "send `mew/v0.4`"),
        (message("chat", &json!({"protocol": "mew/v0.2"})), "send `mew/v0.4`"),
    ] {
        assert!(refusal(&mew).contains(said), "{mew}: {}", refusal(&mew));
    }
    let translator = Translator::default();
    for raw in [
        r#"{"protocol":"mew/v0.4","id":"1","from":"ann","from":"bob","kind":"chat","payload":{"text":"x"}}"#,
        r#"{"protocol":"mew/v0.4","id":"1","from":"ann","kind":"mcp/request","payload":{"method":"tools/list","method":"tools/call"}}"#,
        r#"{"protocol":"mew/v0.4","id":"1","from":"ann","kind":"mcp/request","payload":{"method":"tools/call","params":{"name":"a","\u006eame":"b"}}}"#,
        "[]",
        "#stream-1#data",
    ] {
        assert_eq!(translator.inward(raw.as_bytes(), 1 << 20).unwrap_err().why.code(), "invalid_envelope", "{raw}");
    }
    assert_eq!(translator.inward(b"{}", 1).unwrap_err().why.code(), "payload_too_large");
}

#[test]
fn the_translated_kind_names_the_call_of_the_payload() {
    let translator = Translator::default();
    for (method, params, kind) in [
        ("tools/list", json!({}), "mcp/request:tools/list"),
        ("tools/call", json!({"name": "rm"}), "mcp/request:tools/call:rm"),
        ("tools/call", json!({"name": "a:b"}), "mcp/request:tools/call:a:b"),
        ("tools/call", json!({"name": 1}), "mcp/request:tools/call"),
        ("resources/read", json!({"uri": "file:///a:b"}), "mcp/request:resources/read:file:///a:b"),
        ("notifications/cancelled", json!({"requestId": "x"}), "mcp/request:notifications/cancelled"),
    ] {
        let mew = message("mcp/request", &json!({"payload": {"method": method, "params": params}}));
        let mcpx = inward(&translator, &mew).unwrap();
        assert_eq!(mcpx["kind"], kind);
        let is_asked = !method.starts_with("notifications/");
        assert_eq!(mcpx["payload"].get("id"), is_asked.then_some(&json!("m")), "what wants an answer has an id of JSON-RPC");
        let may = Capabilities::read(["mcp/request:tools/call:read_*"]).unwrap();
        assert!(!may.cover(Kind::new(mcpx["kind"].as_str().unwrap())));
    }
}

#[test]
fn payloads_unlike_their_kind_do_not_reach_mew_peers() {
    let mut translator = Translator::default();
    let mcpx = |kind: &str, payload: Value| json!({"protocol": "mcpx/v0.1", "id": "1", "from": "eve", "kind": kind, "payload": payload});
    let lies = [
        mcpx("mcp/request:tools/list", json!({"method": "tools/call", "params": {"name": "rm"}})),
        mcpx("mcp/request:tools/call:ls", json!({"method": "tools/call", "params": {"name": "rm"}})),
        mcpx("mcp/proposal:tools/list", json!({"method": "tools/call"})),
        mcpx("chat", json!({})),
    ];
    for lie in lies {
        assert!(matches!(translator.outward(lie.to_string().as_bytes()), Outward::Held { from, .. } if from == "eve"), "{lie}");
    }
    for kind in ["mcp/whatever:x", "x/own", "chat/acknowledge:x", "space/invite", "capability/grant", "stream/request", "system/history"] {
        assert_eq!(outward(&mut translator, &mcpx(kind, json!({}))), None, "{kind}");
    }
}

#[test]
fn several_ids_survive_and_mcpx_gets_its_own() {
    let mut translator = having_heard();
    let response = message("mcp/response", &json!({"correlation_id": ["other", "env-call-1"], "payload": {"result": {}}}));
    let fulfils = message("mcp/request", &json!({"correlation_id": ["other", "env-req-1"], "payload": {"id": 1, "method": "tools/list"}}));
    let proposal = message("mcp/proposal", &json!({"correlation_id": ["before"], "payload": {"method": "tools/list"}}));
    let none = message("chat", &json!({"correlation_id": [], "payload": {"text": "hello"}}));
    for (mew, refers) in [(response, json!("env-call-1")), (fulfils, json!("env-req-1")), (proposal, Value::Null), (none, Value::Null)] {
        let mcpx = inward(&translator, &mew).unwrap();
        assert_eq!(mcpx["correlation_id"], refers, "{mew}");
        let mut again = outward(&mut translator, &mcpx).unwrap();
        again.as_object_mut().unwrap().entry("correlation_id").or_insert(json!([]));
        assert_eq!(again, mew);
    }
    let text = message("mcp/response", &json!({"correlation_id": "env-call-1", "payload": {"result": {}}}));
    assert_eq!(inward(&translator, &text).unwrap()["correlation_id"], "env-call-1", "as clients of MEW write a list of one");
    let forged = json!({"protocol": "mcpx/v0.1", "id": "1", "from": "eve", "kind": "chat", "correlation_id": "a", "correlation_ids": ["b"], "payload": {"text": "x"}});
    assert_eq!(outward(&mut translator, &forged).unwrap()["correlation_id"], json!(["a"]), "what does not agree does not count");
}

#[test]
fn a_first_message_asks_to_join_in_either_form() {
    let real = r#"{"type":"join","space":"ops","token":"t","participantId":"ann","capabilities":[]}"#;
    let written = r#"{"protocol":"mew/v0.4","kind":"system/join","payload":{"space":"ops","token":"t","participantId":"ann"}}"#;
    let expected = Join { space: Some("ops".into()), participant: Some("ann".into()), token: Some("t".into()) };
    for text in [real, written] {
        assert!(Join::read(text.as_bytes()).unwrap() == expected);
        assert_eq!(Translator::default().inward(text.as_bytes(), 1 << 20), Ok(Inward::Join), "one who is there");
    }
    for text in ["{}", r#"{"type":"join","kind":"chat"}"#, r#"{"type":"join","token":"a","token":"b"}"#, "join"] {
        assert!(Join::read(text.as_bytes()).is_err(), "{text}");
    }
    let told = value(&error_envelope(std::time::SystemTime::UNIX_EPOCH, 7, "auth_violation", "no"));
    assert_eq!((&told["protocol"], &told["kind"], &told["payload"]["message"]), (&json!("mew/v0.4"), &json!("system/error"), &json!("no")));
}

/// Messages known to both languages.
fn said() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select([&SAME[..], &[PROPOSAL, REQUEST]].concat());
    let name = "[a-zA-Z0-9_:/. \u{e9}\u{1f431}\"\\\\-]{1,12}";
    let ids = prop::collection::vec("[a-z0-9\"é-]{1,8}", 0..4);
    let method = prop::sample::select(vec!["tools/call", "tools/list", "resources/read", "prompts/get", "notifications/progress", "x"]);
    (kind, name, ids, method, prop::option::of("[a-z/]{1,9}"), prop::collection::vec("[a-z]{1,5}", 0..3)).prop_map(
        |(kind, name, ids, method, context, to)| {
            let params = json!({"name": name, "uri": name, "arguments": {"n": 1.5, "deep": [{"a": null}]}});
            let payload = match kind {
                PROPOSAL | REQUEST => json!({"jsonrpc": "2.0", "id": 4, "method": method, "params": params}),
                _ => json!({"text": name, "message": "m", "own": [1, 2]}),
            };
            let mut message = message(kind, &json!({"payload": payload, "ts": "2025-08-26T14:00:00Z", "own": {"x": name}}));
            let members = message.as_object_mut().unwrap();
            members.extend(context.map(|context| ("context".to_owned(), json!(context))));
            if !ids.is_empty() {
                members.insert("correlation_id".to_owned(), json!(ids));
            }
            if !to.is_empty() {
                members.insert("to".to_owned(), json!(to));
            }
            message
        },
    )
}

proptest! {
    #[test]
    fn what_both_know_comes_back_as_it_was(mew in said()) {
        let mut translator = Translator::default();
        let mcpx = inward(&translator, &mew).unwrap();
        prop_assert_eq!(outward(&mut translator, &mcpx).unwrap(), mew);
        // And once more, so that nothing of MCPx is lost either.
        let again = outward(&mut translator, &mcpx).unwrap();
        prop_assert_eq!(inward(&translator, &again).unwrap(), mcpx);
    }

    #[test]
    fn an_object_made_of_a_pattern_says_no_less(class in "(mcp/request|mcp/proposal|mcp/[*]|[*])", method in "(tools/call|tools/[*]|[*]/list|resources/read)?", context in "[a-z:/*]{0,6}") {
        let pattern = match (&*method, &*context) {
            ("", _) if class.contains('*') => class,
            ("", _) => format!("{class}:*"),
            (method, "") => format!("{class}:{method}"),
            (method, context) => format!("{class}:{method}:{context}"),
        };
        let object = object_of(&pattern);
        prop_assert!(serde_json::from_str::<Value>(&object).is_ok());
        let (Some(back), Ok(wanted)) = (pattern_of(object.as_bytes()), Pattern::new(&pattern)) else { return Ok(()) };
        let sample = pattern.replace('*', "x");
        let covers = |pattern: &str| Capabilities::read([pattern]).unwrap().cover(Kind::new(&sample));
        prop_assert!(!covers(wanted.as_str()) || covers(&back), "{pattern} {object} {back}");
    }
}
