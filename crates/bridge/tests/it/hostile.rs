//! Input that tries to say two things at once, or too much. Nothing here is translated.

use bridge::{BindingId, BridgeError, MOST_BYTES, MOST_DEPTH, MOST_ELEMENTS, decode};

fn call(extension: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read","arguments":{{"a":1}},"_meta":{{"io.banyan/aepb":{extension}}}}}}}"#
    )
}

fn refused(text: &str) -> BridgeError {
    decode(BindingId::Mcp, text.as_bytes()).err().unwrap_or_else(|| panic!("read: {text:.200}"))
}

#[test]
fn an_extension_sets_no_native_field() {
    let text = call(r#"{"op":"delete","stream":true,"parts":[{"text":"x"}],"id":"m"}"#);
    let message = decode(BindingId::Mcp, text.as_bytes()).unwrap().message;
    assert_eq!((message.op.unwrap().text().as_ref(), message.wants.stream, message.parts.len()), ("read", false, 1));
    assert_eq!(message.id.unwrap().text(), "m");
}

#[test]
fn residue_hides_no_member_that_a_codec_reads() {
    for (binding, place, key) in [
        ("a2a-v1", "message", "role"),
        ("a2a-v1", "push", "token"),
        ("mcp-v1", "params", "x"),
        ("mcp-v1", "result", "isError"),
        ("a2a-v1", "elsewhere", "x"),
        ("x", "message", "x"),
    ] {
        let text = call(&format!(r#"{{"residue":[{{"binding":"{binding}","at":"{place}","members":{{"{key}":1}}}}]}}"#));
        assert!(matches!(refused(&text), BridgeError::Malformed { .. }), "{binding} {place} {key}");
    }
    let connection = r#"{"jsonrpc":"2.0","id":1,"method":"CancelTask","params":{"id":"t","metadata":{"io.banyan/aepb":{"residue":[{"binding":"mcp-v1","at":"meta","members":{"io.modelcontextprotocol/protocolVersion":"1"}}]}}}}"#;
    assert!(matches!(decode(BindingId::A2a, connection.as_bytes()), Err(BridgeError::Malformed { .. })));
}

#[test]
fn parts_are_not_disguised() {
    let disguised = r#"{"parts":[{"data":{"text":"x"},"metadata":{"io.banyan/aepb":{"form":"a2a-v1"}}}]}"#;
    let text = call(r#"{"made":["parts"]}"#).replace(r#"{"a":1}"#, disguised);
    assert!(matches!(refused(&text), BridgeError::Malformed { at: "part", .. }));
    let made_up = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"real"}],"metadata":{"io.banyan/aepb":{"made":["parts"]}}}}}"#;
    assert!(matches!(decode(BindingId::A2a, made_up.as_bytes()), Err(BridgeError::Malformed { .. })));
}

#[test]
fn a_message_has_bounds() {
    let nested = format!("{}{}", "[".repeat(MOST_DEPTH), "]".repeat(MOST_DEPTH));
    assert_eq!(refused(&call(&format!(r#"{{"x":{nested}}}"#))), BridgeError::TooLarge);
    assert_eq!(refused(&" ".repeat(MOST_BYTES + 1)), BridgeError::TooLarge);
    let many = vec!["{}"; MOST_ELEMENTS + 1].join(",");
    let result = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{many}]}}}}"#);
    assert_eq!(refused(&result), BridgeError::TooLarge);
}

#[test]
fn two_readings_are_refused() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","text":"x","data":"","mimeType":""}]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{","_meta":{"io.banyan/aepb":{"form":"json"}}}]}}"#,
    ] {
        assert!(matches!(refused(text), BridgeError::Malformed { .. }), "{text}");
    }
}
