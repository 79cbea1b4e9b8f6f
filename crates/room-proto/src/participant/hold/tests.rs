use super::*;

fn message(kind: &str, payload: &str) -> String {
    let refers = if kind.starts_with("mcp/response") { r#","correlation_id":"c""# } else { "" };
    format!(r#"{{"protocol":"mcpx/v0.1","id":"1","from":"a","kind":"{kind}","payload":{payload}{refers}}}"#)
}

fn checked(kind: &str, payload: &str) -> Result<(), Mismatch> {
    check(&Envelope::decode(message(kind, payload).as_bytes(), 1 << 16).unwrap())
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe_tool","arguments":{"name":"other"}}}"#;

/// Findings of a table shared with participants in other languages: kind, payload, finding.
fn findings(fine: bool) -> usize {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../../../tests/golden.json")).unwrap();
    let rows: Vec<(String, String, String)> = serde_json::from_value(golden["messages"].clone()).unwrap();
    let wanted = rows.iter().filter(|(_, _, expected)| (expected == "fine") == fine);
    let judged = wanted.map(|(kind, payload, expected)| {
        let finding = match checked(kind, payload) {
            Ok(()) => "fine",
            Err(mismatch) => {
                assert!(mismatch.to_string().contains("drop"), "{mismatch}");
                word(&mismatch)
            }
        };
        assert_eq!(finding, expected, "{kind} {payload}");
    });
    judged.count()
}

fn word(mismatch: &Mismatch) -> &'static str {
    match mismatch {
        Mismatch::Chat => "chat",
        Mismatch::Context { .. } => "context",
        Mismatch::Method { .. } => "method",
        Mismatch::Reserved { .. } => "reserved",
        Mismatch::Response => "response",
        Mismatch::Unreadable(_) => "unreadable",
    }
}

#[test]
fn mx_20_kind_and_payload_must_agree() {
    assert!(findings(true) >= 15 && findings(false) >= 15);
}

#[test]
fn mx_20_a_call_that_hides_behind_another_kind_is_dropped() {
    let hidden = checked("mcp/request:tools/call:dangerous", CALL).unwrap_err();
    assert_eq!(hidden, Mismatch::Context { kind: "dangerous".into(), payload: Some("safe_tool".into()) });
}

#[test]
fn mx_20_mismatches_are_counted_by_sender_within_a_bound() {
    let mut watch = Watch::default();
    let mut send = |from: &str, kind: &str| {
        let text = message(kind, CALL).replace("\"from\":\"a\"", &format!("\"from\":\"{from}\""));
        watch.check(&Envelope::decode(text.as_bytes(), 1 << 16).unwrap()).is_ok()
    };
    assert!(send("good", "mcp/request:tools/call:safe_tool"));
    assert!(!send("bad", "mcp/request:tools/call:x") && !send("bad", "mcp/request:tools/list"));
    for n in 0..1_500 {
        assert!(!send(&format!("s{n}"), "mcp/request:tools/list"));
    }
    assert!(!send("bad", "mcp/request:tools/list"));
    assert_eq!((watch.mismatches_of("good"), watch.mismatches_of("bad"), watch.mismatches_of("s1400")), (0, 3, 0));
    assert_eq!(watch.mismatches(), 1_503);
}
