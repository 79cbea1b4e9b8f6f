//! State of a client's conversation that outlives a gate: requests without an answer, and the session to open again at the next gate. Reads
//! no byte and writes none.

use std::collections::{BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use mcp_proto::envelope::{self, Answer, Message, Notification, RESPONSE_HEAD, Request};
use mcp_proto::json::{Duplicates, quote};

/// Most requests without an answer, and most subscriptions, remembered. Further requests are passed on all the same.
const MOST: usize = 4096;
/// Most bytes of params remembered for the next gate. Further requests are passed on all the same.
const MOST_PARAMS: usize = 4 << 20;

/// Error for a call in flight when its gate ended.
const LOST: &str = "the gate ended before it answered: the outcome of this request is not known";
const LOST_DATA: &[u8] =
    br#"{"reason":"outcome_unknown","hint":"whether it took effect is not known: look before you repeat it. `banyan doctor` says more"}"#;

/// Conversation of one client.
#[derive(Debug, Default)]
pub struct Conversation {
    /// Requests of the client without an answer, by raw id.
    open: HashMap<Bytes, Purpose>,
    /// Raw ids of requests from the present gate without an answer.
    asked: HashSet<Bytes>,
    session: Option<Session>,
    /// Bytes of params in open requests and in the session.
    params: usize,
    /// Requests made by the bridge in the client's name, whose answers stay hidden from the client.
    own: HashSet<Bytes>,
    last_own: u64,
}

/// Effect of a request on the session.
#[derive(Debug)]
enum Purpose {
    /// Opens the session, with these params.
    Initialize(Bytes),
    Level(Bytes),
    Other,
    Subscribe(Bytes),
    Unsubscribe(Bytes),
}

impl Purpose {
    /// Bytes of params kept.
    fn bytes(&self) -> usize {
        match self {
            Self::Initialize(params) | Self::Level(params) | Self::Subscribe(params) | Self::Unsubscribe(params) => params.len(),
            Self::Other => 0,
        }
    }
}

/// A session of the initialize era, as the client opened it.
#[derive(Debug)]
struct Session {
    opening: Bytes,
    level: Option<Bytes>,
    /// Params of subscriptions, each as the client wrote them.
    subscribed: BTreeSet<Bytes>,
}

impl Session {
    fn bytes(&self) -> usize {
        self.opening.len() + self.level.as_ref().map_or(0, Bytes::len) + self.subscribed.iter().map(Bytes::len).sum::<usize>()
    }
}

/// Fate of a message from the gate.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageFate {
    /// The client gets the message.
    Passed,
    /// The client gets these messages instead.
    Replaced(Vec<Bytes>),
}

impl Conversation {
    /// Checks for a session, which the next gate must open again.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Takes a message of the client; `false` for an answer to a gate that is gone.
    pub fn on_client_message(&mut self, message: &Message) -> bool {
        match message {
            Message::Request(request) => self.requested(request),
            Message::Notification(notification) => {
                if let Some(purpose) = cancelled(notification).and_then(|id| self.open.remove(&id)) {
                    self.params -= purpose.bytes();
                }
            }
            // The gate that asked may have ended.
            Message::Response(response) => return self.asked.remove(&response.id),
        }
        true
    }

    fn requested(&mut self, request: &Request) {
        if self.open.len() >= MOST {
            return;
        }
        // A copy, since a slice of the message would keep all of it.
        let params = || Bytes::copy_from_slice(request.params.text());
        let purpose = match &*request.method {
            "initialize" => Purpose::Initialize(params()),
            "logging/setLevel" => Purpose::Level(params()),
            "resources/subscribe" => Purpose::Subscribe(params()),
            "resources/unsubscribe" => Purpose::Unsubscribe(params()),
            _ => Purpose::Other,
        };
        let fits = self.params + purpose.bytes() <= MOST_PARAMS;
        let purpose = if fits { purpose } else { Purpose::Other };
        self.params += purpose.bytes();
        if let Some(before) = self.open.insert(Bytes::copy_from_slice(&request.id), purpose) {
            self.params -= before.bytes();
        }
    }

    /// Takes a message of the gate.
    pub fn on_gate_line(&mut self, line: &Bytes) -> MessageFate {
        if let Some((id, is_result)) = response(line) {
            return self.answered(&id, is_result, line);
        }
        match Message::parse(line, Duplicates::RefuseTop) {
            Ok(Message::Request(request)) if self.asked.len() < MOST => {
                self.asked.insert(Bytes::copy_from_slice(&request.id));
            }
            Ok(Message::Notification(notification)) => {
                if let Some(id) = cancelled(&notification) {
                    self.asked.remove(&id);
                }
            }
            Ok(Message::Response(response)) => return self.answered(&response.id, matches!(response.answer, Answer::Result(_)), line),
            Ok(Message::Request(_)) | Err(_) => {}
        }
        MessageFate::Passed
    }

    fn answered(&mut self, id: &Bytes, is_result: bool, line: &Bytes) -> MessageFate {
        if self.own.remove(id) {
            return MessageFate::Replaced(changes(line));
        }
        let Some(purpose) = self.open.remove(id) else { return MessageFate::Passed };
        if matches!(purpose, Purpose::Other) {
            return MessageFate::Passed;
        }
        let before = purpose.bytes() + self.session.as_ref().map_or(0, Session::bytes);
        if is_result {
            self.changed(purpose);
        }
        self.params = self.params - before + self.session.as_ref().map_or(0, Session::bytes);
        MessageFate::Passed
    }

    /// A request of the client has changed the session.
    fn changed(&mut self, purpose: Purpose) {
        match (purpose, &mut self.session) {
            (Purpose::Initialize(opening), session) => *session = Some(Session { opening, level: None, subscribed: BTreeSet::new() }),
            (Purpose::Level(params), Some(session)) => session.level = Some(params),
            (Purpose::Subscribe(params), Some(session)) if session.subscribed.len() < MOST => {
                session.subscribed.insert(params);
            }
            (Purpose::Unsubscribe(params), Some(session)) => {
                session.subscribed.remove(&params);
            }
            (Purpose::Level(_) | Purpose::Other | Purpose::Subscribe(_) | Purpose::Unsubscribe(_), _) => {}
        }
    }

    /// Notes the loss of the gate; returns the messages by which the client learns of it: errors for open requests, and withdrawals of the
    /// gate's own.
    pub fn lost(&mut self) -> Vec<Bytes> {
        self.own.clear();
        self.params = self.session.as_ref().map_or(0, Session::bytes);
        let failed = Answer::Error(envelope::error_object(-32004, LOST, Some(LOST_DATA)));
        let answers = self.open.drain().map(|(id, _)| envelope::response(&id, &failed)).collect::<Vec<_>>();
        let taken_back = self.asked.drain().map(|id| {
            let params = format!("{{\"requestId\":{},\"reason\":\"the gate that asked has ended\"}}", String::from_utf8_lossy(&id));
            envelope::notification("notifications/cancelled", params.as_bytes())
        });
        answers.into_iter().chain(taken_back).collect()
    }

    /// Makes the messages that open the session again at a gate without knowledge of the client.
    pub fn resumed(&mut self) -> Vec<Bytes> {
        let Some(session) = &self.session else { return Vec::new() };
        let mut requests = vec![("initialize", session.opening.clone())];
        requests.extend(session.level.iter().map(|level| ("logging/setLevel", level.clone())));
        requests.extend(session.subscribed.iter().map(|params| ("resources/subscribe", params.clone())));
        let mut lines = Vec::new();
        for (method, params) in requests {
            self.last_own += 1;
            let id = Bytes::from(quote(&format!("banyan-stdio-{}", self.last_own)));
            lines.push(envelope::request(&id, method, &params));
            if method == "initialize" {
                lines.push(envelope::notification("notifications/initialized", b"{}"));
            }
            self.own.insert(id);
        }
        lines
    }
}

/// Answers a request that reached no gate.
pub fn unreached(id: &[u8], why: &str) -> Bytes {
    let data = format!("{{\"reason\":\"gate_unreachable\",\"hint\":{}}}", quote("the request was not passed on: repeat it later"));
    envelope::response(id, &Answer::Error(envelope::error_object(-32002, why, Some(data.as_bytes()))))
}

/// Raw id of a cancelled request.
fn cancelled(notification: &Notification) -> Option<Bytes> {
    if notification.method != "notifications/cancelled" {
        return None;
    }
    notification.params.members().get("requestId").map(Bytes::copy_from_slice)
}

/// Raw id of a response in a gate's spelling, and `true` for a result; reads only the head.
fn response(line: &Bytes) -> Option<(Bytes, bool)> {
    let rest = line.strip_prefix(RESPONSE_HEAD)?;
    let end = if rest.first() == Some(&b'"') {
        let mut bytes = rest.iter().enumerate().skip(1);
        loop {
            match bytes.next()? {
                (at, b'"') => break at + 1,
                (_, b'\\') => drop(bytes.next()?),
                _ => {}
            }
        }
    } else {
        rest.iter().position(|byte| *byte == b',')?
    };
    let (id, rest) = rest.split_at(end);
    let is_result = rest.starts_with(b",\"result\":");
    (is_result || rest.starts_with(b",\"error\":")).then(|| (line.slice_ref(id), is_result))
}

/// Announces changed lists to a client whose next gate may list other things.
fn changes(line: &Bytes) -> Vec<Bytes> {
    let Ok(Message::Response(response)) = Message::parse(line, Duplicates::RefuseTop) else { return Vec::new() };
    let Answer::Result(result) = response.answer else { return Vec::new() };
    let result = result.members();
    let Some(capabilities) = result.object("capabilities") else { return Vec::new() };
    let tells = |kind: &&str| capabilities.object(kind).and_then(|kind| kind.get("listChanged")) == Some(b"true");
    let changed = |kind: &str| envelope::notification(&format!("notifications/{kind}/list_changed"), b"{}");
    ["tools", "prompts", "resources"].iter().filter(|kind| tells(kind)).map(|kind| changed(kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn says(conversation: &mut Conversation, text: &str) -> bool {
        conversation.on_client_message(&Message::parse(&line(text), Duplicates::RefuseTop).unwrap())
    }

    fn opened() -> Conversation {
        let mut conversation = Conversation::default();
        says(&mut conversation, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
        assert_eq!(conversation.on_gate_line(&line(r#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{}}}"#)), MessageFate::Passed);
        conversation
    }

    #[test]
    fn a_response_shows_its_id_without_being_read() {
        for (text, found) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(("1", true))),
            (r#"{"jsonrpc":"2.0","id":"a\",\"b","error":{}}"#, Some((r#""a\",\"b""#, false))),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":"open"#, None),
            (r#"{"id":1,"jsonrpc":"2.0","result":{}}"#, None),
        ] {
            let found = found.map(|(id, is_result)| (line(id), is_result));
            assert_eq!(response(&line(text)), found, "{text}");
        }
    }

    #[test]
    fn losing_the_gate_fails_each_open_request() {
        let mut conversation = opened();
        for id in ["1", "\"two\"", "3", "4"] {
            says(&mut conversation, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#));
        }
        conversation.on_gate_line(&line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        conversation.on_gate_line(&line(r#"{"id":4,"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#));
        says(&mut conversation, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
        let told = conversation.lost();
        assert_eq!(told.len(), 1, "{told:?}");
        let text = String::from_utf8_lossy(&told[0]);
        assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":"two","error":{"code":-32004"#) && text.contains("outcome_unknown"), "{text}");
        assert_eq!(conversation.lost(), Vec::<Bytes>::new());
    }

    #[test]
    fn questions_of_a_lost_gate_are_taken_back() {
        let mut conversation = opened();
        conversation.on_gate_line(&line(r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}"#));
        conversation.on_gate_line(&line(r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":{}}"#));
        assert!(says(&mut conversation, r#"{"jsonrpc":"2.0","id":8,"result":{}}"#));
        let told = conversation.lost();
        assert!(String::from_utf8_lossy(&told[0]).contains(r#""requestId":7"#) && told.len() == 1, "{told:?}");
        assert!(!says(&mut conversation, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
    }

    #[test]
    fn the_next_gate_gets_the_session_as_opened() {
        let mut conversation = opened();
        for (id, method, params) in [
            (1, "logging/setLevel", r#"{"level":"error"}"#),
            (2, "resources/subscribe", r#"{"uri":"a:b"}"#),
            (3, "resources/subscribe", r#"{"uri":"c:d"}"#),
            (4, "resources/unsubscribe", r#"{"uri":"a:b"}"#),
        ] {
            says(&mut conversation, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
            conversation.on_gate_line(&line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)));
        }
        assert_eq!(conversation.lost(), Vec::<Bytes>::new());
        let lines = conversation.resumed();
        let text: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        assert_eq!(text.len(), 4, "{text:?}");
        assert!(text[0].contains(r#""method":"initialize","params":{"protocolVersion":"2025-11-25"}"#), "{text:?}");
        assert!(text[1].contains("notifications/initialized") && text[2].contains(r#"{"level":"error"}"#), "{text:?}");
        assert!(text[3].contains(r#""resources/subscribe","params":{"uri":"c:d"}"#), "{text:?}");
    }

    #[test]
    fn answers_to_the_bridge_itself_become_changes_of_lists() {
        let mut conversation = opened();
        conversation.resumed();
        let welcome = r#"{"jsonrpc":"2.0","id":"banyan-stdio-1","result":{"capabilities":{"tools":{"listChanged":true},"prompts":{}}}}"#;
        let MessageFate::Replaced(told) = conversation.on_gate_line(&line(welcome)) else { panic!("it is not the client's") };
        assert_eq!(told, [envelope::notification("notifications/tools/list_changed", b"{}")]);
    }

    #[test]
    fn a_greedy_client_is_bounded_in_number_and_bytes() {
        let mut conversation = opened();
        let opening = conversation.params;
        for id in 0..2 * MOST {
            says(&mut conversation, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"x":"{:100}"}}}}"#, ""));
        }
        assert_eq!((conversation.open.len(), conversation.params), (MOST, opening), "params of a call are not kept");
        assert_eq!(conversation.lost().len(), MOST);
        for id in 0..1000 {
            let uri = format!("{id:8192}");
            says(&mut conversation, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#));
            conversation.on_gate_line(&line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)));
        }
        let session = conversation.session.as_ref().map_or(0, Session::bytes);
        assert!(conversation.params == session && session <= MOST_PARAMS && session > MOST_PARAMS / 2, "{session}");
        for id in 0..2 * MOST {
            conversation.on_gate_line(&line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{}}}}"#)));
        }
        assert_eq!(conversation.asked.len(), MOST);
    }

    #[test]
    fn bytes_that_are_kept_no_more_make_room() {
        let mut conversation = opened();
        let opening = conversation.params;
        for (id, method, params) in [
            (1, "logging/setLevel", r#"{"level":"error"}"#),
            (1, "logging/setLevel", r#"{"level":"info"}"#),
            (2, "resources/subscribe", r#"{"uri":"a:b"}"#),
            (3, "resources/subscribe", r#"{"uri":"a:b"}"#),
            (4, "resources/unsubscribe", r#"{"uri":"a:b"}"#),
        ] {
            says(&mut conversation, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        }
        says(&mut conversation, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
        for id in [1, 2, 4] {
            conversation.on_gate_line(&line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)));
        }
        assert_eq!(conversation.params, opening + r#"{"level":"info"}"#.len());
        conversation.lost();
        assert_eq!(conversation.params, opening + r#"{"level":"info"}"#.len());
    }

    #[test]
    fn a_client_without_a_session_leaves_nothing_to_resume() {
        let mut conversation = Conversation::default();
        says(&mut conversation, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
        conversation.on_gate_line(&line(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#));
        assert!(!conversation.has_session() && conversation.resumed().is_empty());
    }
}
