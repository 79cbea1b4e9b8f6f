//! Messages between a controller of the draft (section 8) and a gate, which speaks MCP: `close`, and the shapes in which the two differ. All
//! other bytes pass as they came. Reads and writes no stream, and decides about no call.

mod beyond;

use std::collections::HashMap;

use json::{Duplicates, Members};

use crate::fault::Code;

/// Most requests of a controller under way.
const UNDER_WAY: usize = 256;
/// Bytes of the longest id that is kept. A gate refuses longer ones.
const LONGEST_ID: usize = 256;
/// Bytes of the longest URI of a subscription that is kept.
const LONGEST_URI: usize = 8 << 10;

/// Number of JSON-RPC for arguments that are wrong, which tools of the draft say as well.
const INVALID: &[u8] = b"-32602";

/// Choice of the shapes for a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerShapes {
    /// Shapes of the draft for a controller with the capability `network`, MCP's for others.
    ByCapability,
    Draft,
    Mcp,
}

/// Conversation of one controller with its gate.
#[derive(Debug)]
pub struct ControllerConversation {
    shapes: ControllerShapes,
    is_draft: bool,
    /// Requests of the controller without an answer, by raw id.
    open: HashMap<Vec<u8>, Purpose>,
    /// Prompts that were streamed so far.
    streamed: u64,
}

/// Part of a request that its answer depends on.
#[derive(Debug)]
enum Purpose {
    Initialize,
    /// A request whose answer has the same shape in both.
    Other,
    /// A read, whose error has the number of the draft elsewhere.
    Read,
    /// A prompt that goes out in parts.
    Stream,
    /// A subscription to this raw URI.
    Subscribe(Vec<u8>),
    Tool,
}

/// Fate of a message of the controller.
#[derive(Debug, PartialEq, Eq)]
pub enum ControllerMessage {
    /// The gate gets this message.
    Passed(Vec<u8>),
    /// The controller gets this answer; the gate hears nothing.
    Answered(Vec<u8>),
    /// The controller ends the conversation, and gets this answer if it waits for one.
    Closed(Option<Vec<u8>>),
}

impl ControllerConversation {
    /// Begins a conversation.
    pub fn new(shapes: ControllerShapes) -> Self {
        Self { shapes, is_draft: shapes == ControllerShapes::Draft, open: HashMap::new(), streamed: 0 }
    }

    /// Takes a message of the controller.
    pub fn on_controller_message(&mut self, message: &[u8]) -> ControllerMessage {
        let Ok(members) = Members::parse(message, Duplicates::RefuseDeep) else { return ControllerMessage::Passed(message.to_vec()) };
        match (members.str("method").as_deref(), members.get("id")) {
            (Some("close"), id) => ControllerMessage::Closed(id.map(|id| answer(id, "result", b"{}"))),
            (Some(method), Some(id)) => self.requested(message, &members, method, id),
            (Some("notifications/cancelled"), None) => {
                let id = members.object("params").and_then(|params| params.get("requestId"));
                id.map(|id| self.open.remove(id));
                ControllerMessage::Passed(message.to_vec())
            }
            (Some(_) | None, _) => ControllerMessage::Passed(message.to_vec()),
        }
    }

    fn requested(&mut self, message: &[u8], members: &Members<'_>, method: &str, id: &[u8]) -> ControllerMessage {
        if id.len() > LONGEST_ID {
            return ControllerMessage::Passed(message.to_vec());
        }
        if self.open.contains_key(id) {
            return refused(id, -32600, "a request with this id is in flight already");
        }
        if self.open.len() >= UNDER_WAY {
            return refused(id, -32000, "too many requests are under way: wait for the answer to one of them");
        }
        let params = members.object("params").unwrap_or_default();
        if method == "initialize" && self.shapes == ControllerShapes::ByCapability {
            self.is_draft = names_network(&params);
        }
        let (purpose, passed) = match method {
            "prompts/stream" => (Purpose::Stream, beyond::with_method(message, members, "prompts/get")),
            "resources/write" => match beyond::pushed(id, &params) {
                Ok(call) => (Purpose::Tool, call),
                Err(advice) => return refused(id, -32602, advice),
            },
            _ => self.translated(message, members, method, &params),
        };
        self.open.insert(id.to_vec(), purpose);
        ControllerMessage::Passed(passed)
    }

    /// The purpose of a request, and the request in the words of MCP.
    fn translated(&self, message: &[u8], members: &Members<'_>, method: &str, params: &Members<'_>) -> (Purpose, Vec<u8>) {
        let is_session = !params.object("_meta").is_some_and(|meta| meta.has("io.modelcontextprotocol/protocolVersion"));
        if !self.is_draft || !is_session {
            return (Purpose::Other, message.to_vec());
        }
        let with_params = |of: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
            let changed = members.span("params").and_then(|span| Some((span.clone(), of(&message[span])?)));
            changed.map_or_else(|| message.to_vec(), |(span, new)| replaced(message, span, &new))
        };
        match method {
            "initialize" => (Purpose::Initialize, with_params(&with_network)),
            "resources/read" => (Purpose::Read, message.to_vec()),
            "resources/subscribe" => {
                let uri = params.get("uri").filter(|uri| uri.starts_with(b"\"") && uri.len() <= LONGEST_URI);
                (uri.map_or(Purpose::Other, |uri| Purpose::Subscribe(uri.to_vec())), message.to_vec())
            }
            "resources/unsubscribe" if !params.has("uri") => (Purpose::Other, with_params(&unsubscribed)),
            "tools/call" => (Purpose::Tool, message.to_vec()),
            _ => (Purpose::Other, message.to_vec()),
        }
    }

    /// Takes a message of the gate; answers the messages that the controller gets in its place.
    pub fn on_gate_message(&mut self, message: Vec<u8>) -> Vec<Vec<u8>> {
        let members = Members::again(&message);
        if members.has("method") {
            let second = self.is_draft.then(|| second_update(&message, &members)).flatten();
            return second.unwrap_or_else(|| vec![message]);
        }
        let Some((id, purpose)) = members.get("id").and_then(|id| Some((id, self.open.remove(id)?))) else { return vec![message] };
        if matches!(purpose, Purpose::Stream) {
            self.streamed += 1;
            return beyond::streamed(&members, self.streamed, self.is_draft).unwrap_or_else(|| vec![message]);
        }
        let changed = match purpose {
            Purpose::Initialize => in_result(&message, &members, &network_above),
            Purpose::Other | Purpose::Stream => None,
            Purpose::Read => in_error(&message, &members),
            Purpose::Subscribe(uri) => in_result(&message, &members, &|result| Some(with_first(result, "subscriptionId", &uri))),
            Purpose::Tool => fault(&members).map(|error| answer(id, "error", error)),
        };
        vec![changed.unwrap_or(message)]
    }
}

/// Checks that a controller says that it speaks the draft.
fn names_network(params: &Members<'_>) -> bool {
    let named = |holder: Members<'_>| holder.get("network").is_some_and(|network| network != b"null");
    let capabilities = || params.object("capabilities");
    capabilities().is_some_and(named) || capabilities().and_then(|all| all.object("experimental")).is_some_and(named)
}

/// Params of `initialize` with the capability `network`, by which a device knows clients of the draft.
fn with_network(params: &[u8]) -> Option<Vec<u8>> {
    let members = Members::again(params);
    if names_network(&members) {
        return None;
    }
    let span = members.span("capabilities").filter(|span| params[span.clone()].starts_with(b"{"))?;
    let capabilities = &params[span.clone()];
    let free = match Members::again(capabilities).member_span("network") {
        Some(network) => return Some(replaced(params, span.start + network.start..span.start + network.end, b"\"network\":{}")),
        None => with_first(capabilities, "network", b"{}"),
    };
    Some(replaced(params, span, &free))
}

/// Params of `resources/unsubscribe` with the URI that was given as the id of the subscription.
fn unsubscribed(params: &[u8]) -> Option<Vec<u8>> {
    let members = Members::again(params);
    Some(with_first(params, "uri", members.get("subscriptionId")?))
}

/// The result of `initialize` with the capability `network` where the draft has it (section 3.1): a gate gives it as an experimental one.
fn network_above(result: &[u8]) -> Option<Vec<u8>> {
    let members = Members::again(result);
    let (span, capabilities) = (members.span("capabilities")?, members.object("capabilities")?);
    let network = capabilities.object("experimental")?.get("network")?;
    if capabilities.has("network") {
        return None;
    }
    Some(replaced(result, span.clone(), &with_first(&result[span], "network", network)))
}

/// The answer with another result.
fn in_result(message: &[u8], members: &Members<'_>, change: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let span = members.span("result").filter(|span| message[span.clone()].starts_with(b"{"))?;
    let new = change(&message[span.clone()])?;
    Some(replaced(message, span, &new))
}

/// The answer with the number of the draft, which an error of a stateless server has among its data.
fn in_error(message: &[u8], members: &Members<'_>) -> Option<Vec<u8>> {
    let (outer, error) = (members.span("error")?, members.object("error")?);
    let number = error.object("data")?.get("networkCode").filter(|number| is_of_draft(number))?.to_vec();
    let code = error.span("code")?;
    Some(replaced(message, outer.start + code.start..outer.start + code.end, &number))
}

/// The error of the draft in the result of a tool that failed.
fn fault<'a>(members: &Members<'a>) -> Option<&'a [u8]> {
    let result = members.object("result").filter(|result| result.get("isError") == Some(b"true"))?;
    let error = result.get("structuredContent")?;
    let parts = Members::again(error);
    let is_fault = parts.get("code").is_some_and(|code| is_of_draft(code) || code == INVALID) && parts.object("data")?.has("detail");
    is_fault.then_some(error)
}

fn is_of_draft(raw: &[u8]) -> bool {
    let number = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<i32>().ok());
    number.is_some_and(|number| Code::DRAFT.iter().any(|code| code.number() == number))
}

/// An update of a resource in both forms: MCP's, and the draft's (section 8.5), each with the id of the subscription.
fn second_update(message: &[u8], members: &Members<'_>) -> Option<Vec<Vec<u8>>> {
    if members.str("method")? != "notifications/resources/updated" || members.has("id") {
        return None;
    }
    let (span, params) = (members.span("params")?, members.object("params")?);
    let uri = params.get("uri")?;
    let named = match params.span("subscriptionId") {
        Some(id) => replaced(message, span.start + id.start..span.start + id.end, uri),
        None => replaced(message, span.clone(), &with_first(&message[span], "subscriptionId", uri)),
    };
    let method = Members::again(&named).span("method")?;
    let second = replaced(&named, method, b"\"resources/updated\"");
    Some(vec![named, second])
}

/// An object with one more member at the front.
fn with_first(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let begin = object.iter().position(|byte| *byte == b'{').map_or(0, |at| at + 1);
    let comma: &[u8] = if Members::again(object).is_empty() { b"" } else { b"," };
    [&object[..begin], b"\"", key.as_bytes(), b"\":", value, comma, &object[begin..]].concat()
}

fn replaced(text: &[u8], span: std::ops::Range<usize>, new: &[u8]) -> Vec<u8> {
    [&text[..span.start], new, &text[span.end..]].concat()
}

fn answer(id: &[u8], member: &str, content: &[u8]) -> Vec<u8> {
    [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"", member.as_bytes(), b"\":", content, b"}"].concat()
}

fn refused(id: &[u8], code: i32, why: &str) -> ControllerMessage {
    let error = format!("{{\"code\":{code},\"message\":{}}}", json::quote(why));
    ControllerMessage::Answered(answer(id, "error", error.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(conversation: &mut ControllerConversation, message: &str) -> String {
        match conversation.on_controller_message(message.as_bytes()) {
            ControllerMessage::Passed(passed) => String::from_utf8(passed).unwrap(),
            other @ (ControllerMessage::Answered(_) | ControllerMessage::Closed(_)) => panic!("{other:?}"),
        }
    }

    fn heard(conversation: &mut ControllerConversation, message: &str) -> Vec<String> {
        conversation.on_gate_message(message.into()).into_iter().map(|one| String::from_utf8(one).unwrap()).collect()
    }

    fn draft() -> ControllerConversation {
        ControllerConversation::new(ControllerShapes::Draft)
    }

    #[test]
    fn nm_11_the_capability_stands_where_the_draft_has_it() {
        let mut conversation = draft();
        let sent = passed(&mut conversation, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{}}}}"#);
        assert_eq!(sent, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"network":{},"roots":{}}}}"#);
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{},"experimental":{"network":{"maxBulkEdit":7}}}}}"#;
        let shown = r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"network":{"maxBulkEdit":7},"tools":{},"experimental":{"network":{"maxBulkEdit":7}}}}}"#;
        assert_eq!(heard(&mut conversation, answer), [shown]);
        // The answer to another request stays as it is.
        assert_eq!(heard(&mut conversation, answer), [answer]);
    }

    #[test]
    fn nm_11_close_is_answered_and_reaches_no_gate() {
        let closed = draft().on_controller_message(br#"{"jsonrpc":"2.0","id":"x","method":"close"}"#);
        assert_eq!(closed, ControllerMessage::Closed(Some(br#"{"jsonrpc":"2.0","id":"x","result":{}}"#.to_vec())));
        let closed = draft().on_controller_message(br#"{"jsonrpc":"2.0","method":"close"}"#);
        assert_eq!(closed, ControllerMessage::Closed(None));
    }

    #[test]
    fn nm_11_a_failed_tool_is_an_error_of_the_draft() {
        let mut conversation = draft();
        let call = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"network.commit"}}}}"#);
        let failed = |id, code| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"isError":true,"structuredContent":{{"code":{code},"message":"m","data":{{"detail":"d"}}}}}}}}"#
            )
        };
        passed(&mut conversation, &call(1));
        assert_eq!(
            heard(&mut conversation, &failed(1, -32083)),
            [r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32083,"message":"m","data":{"detail":"d"}}}"#]
        );
        passed(&mut conversation, &call(4));
        assert!(heard(&mut conversation, &failed(4, -32602))[0].contains(r#""error":{"code":-32602"#));
        // What a tool says of other numbers is no error of the draft.
        passed(&mut conversation, &call(2));
        assert_eq!(heard(&mut conversation, &failed(2, -32601)), [failed(2, -32601)]);
        passed(&mut conversation, r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"network:///x"}}"#);
        let unread =
            |code| format!(r#"{{"jsonrpc":"2.0","id":3,"error":{{"code":{code},"message":"m","data":{{"networkCode":-32082}}}}}}"#);
        assert_eq!(heard(&mut conversation, &unread(-32000)), [unread(-32082)]);
    }

    #[test]
    fn nm_11_a_subscription_has_its_id_and_both_updates() {
        let mut conversation = draft();
        passed(&mut conversation, r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"network:///a"}}"#);
        let answered = heard(&mut conversation, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(answered, [r#"{"jsonrpc":"2.0","id":1,"result":{"subscriptionId":"network:///a"}}"#]);
        let ended = passed(
            &mut conversation,
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"subscriptionId":"network:///a"}}"#,
        );
        assert!(ended.contains(r#"{"uri":"network:///a","subscriptionId""#), "{ended}");
        for params in [r#"{"uri":"network:///a","contents":[1]}"#, r#"{"uri":"network:///a","subscriptionId":"s-1","contents":[1]}"#] {
            let update = format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{params}}}"#);
            let both = heard(&mut conversation, &update);
            let methods = both.iter().map(|one| Members::again(one.as_bytes()).str("method").unwrap().into_owned());
            assert_eq!(methods.collect::<Vec<_>>(), ["notifications/resources/updated", "resources/updated"]);
            for one in &both {
                let params = Members::again(one.as_bytes()).object("params").unwrap();
                assert_eq!((params.str("subscriptionId").as_deref(), params.get("contents")), (Some("network:///a"), Some(&b"[1]"[..])));
            }
        }
    }

    #[test]
    fn nm_11_a_streamed_prompt_passes_its_gate_as_a_prompt() {
        for (shapes, method, content) in [
            (ControllerShapes::Draft, "prompts/stream", r#""a\n\nb""#),
            (ControllerShapes::Mcp, "notifications/prompts/stream", r#"{"type":"text","text":"a\n\nb"}"#),
        ] {
            let mut conversation = ControllerConversation::new(shapes);
            let sent = passed(&mut conversation, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/stream","params":{"name":"p"}}"#);
            assert_eq!(sent, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#);
            let result = format!(r#""messages":[{{"role":"user","content":{content}}}],"_meta":{{"toolCalls":[]}}"#);
            let told = heard(&mut conversation, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{result}}}}}"#));
            let part = |number: u8, text: &str, rest: &str| {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"handle":"prompt-1","part":{number},"parts":2,"markdown":"{text}"{rest}}}}}"#
                )
            };
            let whole = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"handle":"prompt-1",{result}}}}}"#);
            assert_eq!(told, [part(1, "a", ""), part(2, "b", r#","_meta":{"toolCalls":[]}"#), whole]);
        }
        // A question of the gate is no text.
        let mut conversation = draft();
        passed(&mut conversation, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/stream","params":{"name":"p"}}"#);
        let asked = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#;
        assert_eq!(heard(&mut conversation, asked), [asked]);
    }

    #[test]
    fn nm_11_a_written_resource_passes_its_gate_as_a_tool() {
        let write = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/write","params":{params}}}"#);
        for shapes in [ControllerShapes::Draft, ControllerShapes::Mcp] {
            let mut conversation = ControllerConversation::new(shapes);
            let params = r#"{"uri":"network:\/\/\/file/candidate-config","contents":[{"text":"a\nb"}],"_meta":{"x":1}}"#;
            let sent = passed(&mut conversation, &write(params));
            let params = r#"{"name":"network.file.push","arguments":{"filename":"candidate-config","content":"a\nb"},"_meta":{"x":1}}"#;
            assert_eq!(sent, format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#));
        }
        for params in [
            "{}",
            "[]",
            r#"{"uri":"network:///file/running-config","contents":[{"text":"a"}]}"#,
            r#"{"uri":"network:///file/startup-config","contents":[{"text":"a"},{"text":"b"}]}"#,
            r#"{"uri":"network:///file/startup-config","contents":[{"text":7}]}"#,
            r#"{"uri":"network:///file/startup-config","contents":[{"text":"a","uri":"network:///file/candidate-config"}]}"#,
            r#"{"uri":"network:///file/startup-config","contents":[{"text":"a"}],"more":1}"#,
        ] {
            let answered = draft().on_controller_message(write(params).as_bytes());
            let ControllerMessage::Answered(text) = answered else { panic!("{params}: {answered:?}") };
            assert!(String::from_utf8(text).unwrap().contains("-32602"), "{params}");
        }
    }

    #[test]
    fn nm_11_requests_of_one_id_do_not_pile_up() {
        let mut conversation = draft();
        let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        passed(&mut conversation, &ping(0));
        let again = conversation.on_controller_message(ping(0).as_bytes());
        assert!(matches!(again, ControllerMessage::Answered(text) if text.windows(6).any(|part| part == b"-32600")));
        (1..UNDER_WAY).for_each(|id| drop(passed(&mut conversation, &ping(id))));
        let further = conversation.on_controller_message(ping(UNDER_WAY).as_bytes());
        assert!(matches!(further, ControllerMessage::Answered(text) if text.windows(6).any(|part| part == b"-32000")));
        heard(&mut conversation, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        passed(&mut conversation, &ping(UNDER_WAY));
        passed(&mut conversation, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#);
        passed(&mut conversation, &ping(8));
    }

    #[test]
    fn nm_11_a_controller_of_mcp_keeps_its_shapes() {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{}}}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"experimental":{"network":{}}}}}"#;
        for shapes in [ControllerShapes::Mcp, ControllerShapes::ByCapability] {
            let mut conversation = ControllerConversation::new(shapes);
            assert_eq!(passed(&mut conversation, initialize), initialize);
            assert_eq!(heard(&mut conversation, answer), [answer]);
        }
        let mut conversation = ControllerConversation::new(ControllerShapes::ByCapability);
        let naming = initialize.replace("roots", "network");
        assert_eq!(passed(&mut conversation, &naming), naming);
        assert_ne!(heard(&mut conversation, answer), [answer]);
    }
}
