//! Messages as peers send them, and the bytes that come out. No message here is made by a codec.

use std::borrow::Cow;

use bridge::{BindingId, Hop, LossFate, QuotedText, Severity, decode, translate, warnings};

const A2A_TO_MCP: (BindingId, BindingId) = (BindingId::A2a, BindingId::Mcp);
const MCP_TO_A2A: (BindingId, BindingId) = (BindingId::Mcp, BindingId::A2a);

fn hop(id: &'static str) -> Hop<'static> {
    Hop { id: Some(Cow::Borrowed(id.as_bytes())), token: Some(Cow::Borrowed(b"\"t\"")), stateless: true, ..Hop::default() }
}

const SEND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[{"data":{"amount": 1.50,"big":12345678901234567890}}],"messageId":"9229e770-767c-417b-a0b0-f0741243c589","contextId":"c-1","futureMember":[1e400]},"metadata":{"trace":"x"}}}"#;

#[test]
fn ae_11_a_message_of_a2a_is_a_call_of_mcp() {
    let sent = translate(A2A_TO_MCP, SEND.as_bytes(), &hop("7"), |message| message.op = Some(QuotedText::quote("pay"))).unwrap();
    let text = String::from_utf8(sent.text).unwrap();
    let native = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"amount": 1.50,"big":12345678901234567890},"_meta":{"io.banyan/aepb":{"#;
    assert!(text.starts_with(native), "{text}");
    for carried in
        [r#""id":"9229e770-767c-417b-a0b0-f0741243c589""#, r#""conversation":"c-1""#, r#""futureMember":[1e400]"#, r#""trace":"x""#]
    {
        assert!(text.contains(carried), "{carried} in {text}");
    }
    let carried: Vec<&str> = sent.losses.iter().filter(|loss| loss.fate == LossFate::Carried).map(|loss| loss.path).collect();
    assert_eq!(carried, ["/params/message/messageId", "/params/message/contextId", "residue"]);
    assert!(warnings(&sent.losses).is_empty());
}

#[test]
fn ae_11_a_result_of_mcp_is_a_message_of_a2a() {
    let result = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"72\u00b0F"},{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":{"temperature":22.50}}}"#;
    let sent = translate(MCP_TO_A2A, result.as_bytes(), &hop("1"), |message| message.id = Some(QuotedText::quote("m"))).unwrap();
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"72\u00b0F"},{"raw":"AA==","mediaType":"image/png"},{"data":{"temperature":22.50}}]}}}"#;
    assert_eq!(String::from_utf8(sent.text).unwrap(), expected);
    assert!(sent.losses.is_empty(), "{:?}", sent.losses);
}

#[test]
fn ae_11_a_failed_tool_is_a_failed_task() {
    let result = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#;
    let sent = translate(MCP_TO_A2A, result.as_bytes(), &hop("1"), |message| {
        (message.task, message.id) = (Some(QuotedText::quote("t")), Some(QuotedText::quote("m")));
    });
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_FAILED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"no"}]}}}}}"#;
    assert_eq!(String::from_utf8(sent.unwrap().text).unwrap(), expected);
}

#[test]
fn ae_18_a_status_of_a2a_is_progress_of_mcp() {
    let update = r#"{"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"half"}]}}}}}"#;
    let sent = translate(A2A_TO_MCP, update.as_bytes(), &Hop { count: 3, ..hop("1") }, |_| {}).unwrap();
    let text = String::from_utf8(sent.text).unwrap();
    let native =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":3,"message":"half","_meta":"#;
    assert!(text.starts_with(native), "{text}");
}

#[test]
fn ae_18_a_cancelled_request_of_mcp_cancels_the_task() {
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"9","reason":"late"}}"#;
    assert_eq!(decode(BindingId::Mcp, cancelled.as_bytes()).unwrap().hop.target.as_deref(), Some(&b"\"9\""[..]));
    let sent = translate(MCP_TO_A2A, cancelled.as_bytes(), &hop("2"), |message| message.task = Some(QuotedText::quote("t"))).unwrap();
    let expected =
        r#"{"jsonrpc":"2.0","id":2,"method":"CancelTask","params":{"id":"t","metadata":{"io.banyan/aepb":{"parts":[{"text":"late"}]}}}}"#;
    assert_eq!(String::from_utf8(sent.text).unwrap(), expected);
    assert_eq!(sent.losses.iter().map(|loss| loss.severity).max(), Some(Severity::Warn));
}

#[test]
fn ae_15_credentials_of_a_callback_never_travel() {
    let asking = SEND.replace(
        r#""metadata":"#,
        r#""configuration":{"taskPushNotificationConfig":{"url":"https://a/hook","token":"CANARY","authentication":{"scheme":"Bearer","credentials":"CANARY"}}},"metadata":"#,
    );
    for to in [BindingId::A2a, BindingId::Mcp] {
        let sent =
            translate((BindingId::A2a, to), asking.as_bytes(), &hop("7"), |message| message.op = Some(QuotedText::quote("pay"))).unwrap();
        assert!(!String::from_utf8(sent.text).unwrap().contains("CANARY"));
        assert!(sent.losses.iter().any(|loss| loss.fate == LossFate::Dropped && loss.severity == Severity::Warn));
    }
}
