use super::*;

fn message(kind: &str, payload: &str) -> String {
    let refers = if kind.starts_with("mcp/response") { r#","correlation_id":"c""# } else { "" };
    format!(r#"{{"protocol":"mcpx/v0.1","id":"1","from":"a","kind":"{kind}","payload":{payload}{refers}}}"#)
}

fn checked(kind: &str, payload: &str) -> Result<(), Mismatch> {
    check(&Envelope::decode(message(kind, payload).as_bytes(), 1 << 16).unwrap())
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe_tool","arguments":{"name":"other"}}}"#;

#[test]
fn mx_20_what_the_kind_says_and_the_payload_does_must_be_one() {
    let fine = [
        ("mcp/request:tools/call:safe_tool", CALL),
        ("mcp/request:tools/call", CALL),
        ("mcp/proposal:tools/call:safe_tool", CALL),
        ("mcp/request:resources/read:file:///a:b", r#"{"method":"resources/read","params":{"uri":"file:///a:b"}}"#),
        ("mcp/request:resources/subscribe:x", r#"{"method":"resources/subscribe","params":{"uri":"x"}}"#),
        ("mcp/request:prompts/get:p", r#"{"method":"prompts/get","params":{"name":"p"}}"#),
        ("mcp/request:completion/complete:p", r#"{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"}}}"#),
        ("mcp/request:completion/complete:u", r#"{"method":"completion/complete","params":{"ref":{"uri":"u"}}}"#),
        ("mcp/request:tools/list", r#"{"method":"tools/list"}"#),
        ("mcp/request:notifications/progress", r#"{"method":"notifications/progress","params":{}}"#),
        ("mcp/response:tools/call:safe_tool", r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
        ("mcp/response:tools/call", r#"{"error":{"code":1,"message":"no"}}"#),
        ("chat", r#"{"text":"hello"}"#),
        ("mcp/withdraw:tools/call", "{}"),
        ("x-anything", "{}"),
    ];
    for (kind, payload) in fine {
        assert_eq!(checked(kind, payload), Ok(()), "{kind} {payload}");
    }
}

/// Whether a mismatch is the one that is meant.
type Is = fn(&Mismatch) -> bool;

#[test]
fn mx_20_a_call_that_hides_behind_another_kind_is_dropped() {
    use Mismatch::{Chat, Context, Method, Reserved, Response, Unreadable};
    let cases: [(&str, &str, Is); 15] = [
        ("mcp/request:tools/call:dangerous", CALL, |m| matches!(m, Context { payload: Some(name), .. } if name == "safe_tool")),
        ("mcp/proposal:tools/call:safe_tool:x", CALL, |m| matches!(m, Context { .. })),
        ("mcp/request:tools/list", CALL, |m| matches!(m, Method { payload: Some(method), .. } if method == "tools/call")),
        ("mcp/request:tools/call", "{}", |m| matches!(m, Method { payload: None, .. })),
        ("mcp/request:tools/call", r#"{"method":["tools/call"]}"#, |m| matches!(m, Method { payload: None, .. })),
        ("mcp/request:tools/call:x", r#"{"method":"tools/call"}"#, |m| matches!(m, Context { payload: None, .. })),
        ("mcp/request:tools/call:x", r#"{"method":"tools/call","params":{"uri":"x"}}"#, |m| matches!(m, Context { payload: None, .. })),
        ("mcp/request:resources/read:x", r#"{"method":"resources/read","params":{"name":"x"}}"#, |m| matches!(m, Context { .. })),
        ("mcp/request:tools/list:x", r#"{"method":"tools/list","params":{"name":"x"}}"#, |m| matches!(m, Context { payload: None, .. })),
        ("mcp/request:tools/call:x", r#"{"method":"tools/call","params":{"name":"x","name":"y"}}"#, |m| matches!(m, Unreadable(_))),
        ("mcp/request:tools/call:x", r#"{"method":"tools/call","method":"x","params":{}}"#, |m| matches!(m, Unreadable(_))),
        ("mcp/response:tools/call", "{}", |m| matches!(m, Response)),
        ("mcp/response:tools/call", r#"{"result":{},"error":{}}"#, |m| matches!(m, Response)),
        ("chat", r#"{"text":7}"#, |m| matches!(m, Chat)),
        ("system/welcome", r#"{"you":{"id":"a","capabilities":["*"]},"participants":[]}"#, |m| matches!(m, Reserved { .. })),
    ];
    for (kind, payload, is) in cases {
        let mismatch = checked(kind, payload).unwrap_err();
        assert!(is(&mismatch), "{kind} {payload}: {mismatch:?}");
        assert!(mismatch.to_string().contains("drop"), "{mismatch}");
    }
}

#[test]
fn mx_20_misbehaviour_is_counted_by_sender_and_the_count_is_bounded() {
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
