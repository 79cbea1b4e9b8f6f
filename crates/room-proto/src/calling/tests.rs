use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::capability::Pattern;
use crate::company::{Company, Who};
use crate::name::ConnectionId;
use crate::room::{Change, Preferences, Routing};

const WHO: Who = [
    ("gate", &["mcp/request:*", "mcp/response:*"]),
    ("files", &["mcp/response:*"]),
    ("ann", &["mcp/request:*", "chat"]),
    ("bot", &["mcp/response:*", "mcp/request:notifications/*", "chat"]),
    ("carl", &["mcp/response:*", "chat"]),
];

/// A room in which the gate calls, with a record of the driver's work.
struct Table {
    company: Company,
    calling: RoomCaller,
    outputs: Vec<Output>,
    /// Messages of the gate.
    said: Vec<Value>,
}

impl Table {
    fn new() -> Self {
        let own = BTreeSet::from(["gate", "files"].map(|id| ParticipantId::new(id).unwrap()));
        let calling = RoomCaller::new(Bounds { own, calls: 2, entries: 3, message_bytes: 600 }, 7);
        let company = Company::new(&WHO, Preferences { routing: Routing::Directed, ..Preferences::default() });
        let mut table = Self { company, calling, outputs: Vec::new(), said: Vec::new() };
        (0..WHO.len()).for_each(|place| table.join(place));
        table
    }

    fn join(&mut self, place: usize) {
        self.company.join(place);
        self.deliver();
    }

    /// Hands the gate its messages, and sends the gate's own.
    fn deliver(&mut self) {
        loop {
            while let Some(bytes) = self.company.next() {
                self.calling.handle_message(self.company.now, &bytes);
            }
            match self.calling.poll_output() {
                Some(Output::Send(bytes)) => {
                    self.said.push(serde_json::from_slice(&bytes).unwrap());
                    self.company.room.handle_message(self.company.now, ConnectionId(0), &bytes);
                }
                Some(output) => self.outputs.push(output),
                None => return,
            }
        }
    }

    fn say(&mut self, who: &str, kind: &str, of: Option<&str>, payload: &str) {
        self.company.say(who, &["gate"], kind, of, payload);
        self.deliver();
    }

    /// Message id of the gate's last request for a participant's list.
    fn asked(&self, who: &str) -> Option<String> {
        let of = |said: &&Value| said["to"] == json!([who]) && said["kind"] == "mcp/request:tools/list";
        self.said.iter().rev().find(of).map(|said| said["id"].as_str().unwrap().to_owned())
    }

    fn call(&mut self, call: u64, to: &str, params: &str) -> Option<String> {
        let before = self.said.len();
        let asked = Call { method: "tools/call", params: Some(params.as_bytes()) };
        self.calling.handle_call(self.company.now, CallId(call), to, asked);
        self.deliver();
        self.said.get(before).map(|said| said["id"].as_str().unwrap().to_owned())
    }

    fn answer(&mut self, who: &str, kind: &str, of: &str, result: &str) {
        self.say(who, &format!("mcp/response:{kind}"), Some(of), &format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#));
    }

    /// Checks that nothing of any call is left behind.
    fn has_no_calls(&self) -> bool {
        self.calling.calls.is_empty() && self.calling.asked.values().all(|asked| asked.call.is_none())
    }

    fn told(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }
}

fn offered(id: &str, tools: &[&str]) -> Output {
    offered_of(ListKind::Tools, id, tools)
}

fn offered_of(kind: ListKind, id: &str, entries: &[&str]) -> Output {
    Output::Offered { id: id.into(), kind, entries: entries.iter().map(|entry| Bytes::copy_from_slice(entry.as_bytes())).collect() }
}

fn failed(call: u64, why: Failure) -> Output {
    Output::Failed { call: CallId(call), why }
}

const WIPE: &str = r#"{"name":"wipe","arguments":{"disk" : 1.0}}"#;

#[test]
fn mx_21_only_foreign_participants_able_to_answer_are_asked() {
    let mut table = Table::new();
    let asked = |table: &Table| table.said.iter().map(|said| said["to"][0].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(asked(&table), ["bot", "carl"], "ann may not answer, files stands in the tree");
    let first = table.asked("bot").unwrap();
    // Another one's answer is nobody's.
    table.answer("carl", "tools/list", &first, r#"{"tools":[{"name":"evil"}]}"#);
    table.answer("bot", "tools/list", &first, r#"{"tools":[{"name":"a", "v":1.0},7],"nextCursor":"n"}"#);
    assert_eq!(table.told(), []);
    let second = table.asked("bot").unwrap();
    assert_eq!(table.said.last().unwrap()["payload"]["params"], json!({"cursor": "n"}));
    table.answer("bot", "tools/list", &second, r#"{"tools":[{"name":"b"}]}"#);
    assert_eq!(table.told(), [offered("bot", &[r#"{"name":"a", "v":1.0}"#, r#"{"name":"b"}"#])]);
    // A list is cut where it is too long, and is another one when its owner says so or comes back.
    table.say("bot", "mcp/request:notifications/tools/list_changed", None, r#"{"method":"notifications/tools/list_changed"}"#);
    let third = table.asked("bot").unwrap();
    table.answer("bot", "tools/list", &second, r#"{"tools":[]}"#);
    table.answer("bot", "tools/list", &third, r#"{"tools":[{},{},{},{}],"nextCursor":"more"}"#);
    assert_eq!(table.told(), [offered("bot", &["{}", "{}", "{}"])]);
    table.join(3);
    let fourth = table.asked("bot").unwrap();
    assert_ne!(fourth, third);
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    table.say("bot", "mcp/response:tools/list", Some(&fourth), error);
    assert_eq!(table.told(), [offered("bot", &[])]);
    // Who never had any is nothing to tell of.
    table.company.room.handle_leave(table.company.now, ConnectionId(4));
    table.deliver();
    assert_eq!(table.told(), []);
}

#[test]
fn mx_21_who_answers_is_asked_for_every_list() {
    let mut table = Table::new();
    let kinds = |said: &[Value]| said.iter().map(|said| said["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let (first, before) = (table.asked("bot").unwrap(), table.said.len());
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    table.say("bot", "mcp/response:tools/list", Some(&first), error);
    let asked = ["mcp/request:prompts/list", "mcp/request:resources/list", "mcp/request:resources/templates/list"];
    assert_eq!(kinds(&table.said[before..]), asked, "carl has not answered yet");
    let id = |said: &Value| said["id"].as_str().unwrap().to_owned();
    let [prompts, resources, templates] = [0, 1, 2].map(|at| id(&table.said[before + at]));
    table.answer("bot", "prompts/list", &prompts, r#"{"prompts":[{"name":"p"}]}"#);
    table.answer("bot", "resources/list", &resources, r#"{"resources":[{"uri":"file:///a"}]}"#);
    table.answer("bot", "resources/templates/list", &templates, r#"{"resourceTemplates":[{"uriTemplate":"file:///{x}"}]}"#);
    let lists = [
        offered_of(ListKind::Prompts, "bot", &[r#"{"name":"p"}"#]),
        offered_of(ListKind::Resources, "bot", &[r#"{"uri":"file:///a"}"#]),
        offered_of(ListKind::Templates, "bot", &[r#"{"uriTemplate":"file:///{x}"}"#]),
    ];
    assert_eq!(table.told(), lists);
    let before = table.said.len();
    let changed = "notifications/resources/list_changed";
    table.say("bot", &format!("mcp/request:{changed}"), None, &format!(r#"{{"method":"{changed}"}}"#));
    assert_eq!(kinds(&table.said[before..]), asked[1..]);
    table.company.room.handle_leave(table.company.now, ConnectionId(3));
    table.deliver();
    assert_eq!(table.told(), [ListKind::Prompts, ListKind::Resources, ListKind::Templates].map(|kind| offered_of(kind, "bot", &[])));
}

#[test]
fn mx_21_calls_of_the_tree_are_answered_byte_for_byte() {
    let mut table = Table::new();
    let first = table.call(1, "bot", r#"{"name":"wipe","arguments":{},"_meta":{"progressToken":1}}"#).unwrap();
    let request = table.said.last().unwrap().clone();
    assert_eq!(
        (&request["kind"], &request["to"], &request["from"]),
        (&json!("mcp/request:tools/call:wipe"), &json!(["bot"]), &json!("gate"))
    );
    assert!(request.get("correlation_id").is_none());
    let second = table.call(2, "bot", WIPE).unwrap();
    let progress = |token: &str| format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":0.50}}}}"#);
    let kind = "mcp/request:notifications/progress";
    table.say("bot", kind, None, &progress("1"));
    table.say("bot", kind, None, &progress("9"));
    let line = r#"{"method":"notifications/message","params":{"level":"info","data":1}}"#;
    // Of which of two is not said once, and said once.
    table.say("bot", "mcp/request:notifications/message", None, line);
    let notified = |call, method: &str, params: &'static str| Output::Notified {
        call: CallId(call),
        method: method.into(),
        params: Bytes::from_static(params.as_bytes()),
    };
    assert_eq!(table.told(), [notified(1, "notifications/progress", r#"{"progressToken":1,"progress":0.50}"#)]);
    for (who, kind, of) in [("carl", "tools/call:wipe", &first), ("bot", "tools/list", &first), ("bot", "tools/call:wipe", &"?".to_owned())]
    {
        table.answer(who, kind, of, "{}");
    }
    assert_eq!(table.told(), [], "nobody else answers, and nothing else is an answer");
    table.answer("bot", "tools/call:wipe", &second, r#"{ "content":[ ],"n":1.0,"n2":{"a":1,"a":2} }"#);
    let result = CallAnswer::Result(Bytes::from_static(br#"{ "content":[ ],"n":1.0,"n2":{"a":1,"a":2} }"#));
    assert_eq!(table.told(), [Output::Answered { call: CallId(2), answer: result }]);
    table.answer("bot", "tools/call:wipe", &second, "{}");
    table.say("bot", "mcp/request:notifications/message", None, line);
    assert_eq!(table.told(), [notified(1, "notifications/message", r#"{"level":"info","data":1}"#)]);
    table.say("bot", "mcp/response:tools/call", Some(&first), r#"{"id":1,"error":{"code":-1,"message":"x"}}"#);
    let error = CallAnswer::Error(Bytes::from_static(br#"{"code":-1,"message":"x"}"#));
    assert_eq!(table.told(), [Output::Answered { call: CallId(1), answer: error }]);
}

#[test]
fn mx_21_a_call_not_made_into_a_room_says_why() {
    let mut table = Table::new();
    assert_eq!(table.call(1, "files", WIPE), None);
    assert_eq!(table.call(2, "nobody", WIPE), None);
    assert_eq!(table.call(3, "bot", &format!(r#"{{"name":"{}"}}"#, "w".repeat(400))), None);
    assert_eq!(table.call(4, "bot", r#"{"name":"wipe","arguments":{"a":1,"a":2}}"#), None);
    let told = table.told();
    assert_eq!(told[..2], [failed(1, Failure::Absent), failed(2, Failure::Absent)]);
    assert!(matches!(&told[2], Output::Failed { why: Failure::TooLong { bytes: 600.., most: 600 }, .. }), "{told:?}");
    assert!(matches!(&told[3], Output::Failed { why: Failure::Unsaid(_), .. }), "{told:?}");
    // Whoever runs the room may take from the gate what it may say: then it says nothing.
    let gone = Pattern::new("mcp/request:*").unwrap();
    let change = Change { add: &[], remove: std::slice::from_ref(&gone), by: "ann" };
    table.company.room.handle_capabilities(table.company.now, &ParticipantId::new("gate").unwrap(), change).unwrap();
    table.call(10, "bot", WIPE);
    assert!(matches!(&table.told()[..], [Output::Failed { why: Failure::Refused(_) | Failure::Unsaid(_), .. }]));
    assert!(table.has_no_calls());
}

#[test]
fn mx_21_every_early_end_of_a_call_has_a_reason() {
    let mut table = Table::new();
    let first = table.call(5, "bot", WIPE).unwrap();
    let second = table.call(6, "bot", WIPE).unwrap();
    table.call(7, "bot", WIPE);
    assert_eq!(table.told(), [failed(7, Failure::Busy { most: 2 })]);
    let third = table.call(8, "carl", WIPE).unwrap();
    table.calling.handle_cancel(table.company.now, CallId(5), "its caller \"left\"");
    table.deliver();
    let said = table.said.last().unwrap();
    assert_eq!((&said["kind"], &said["to"]), (&json!("mcp/request:notifications/cancelled"), &json!(["bot"])));
    assert_eq!(said["payload"]["params"], json!({"requestId": first, "reason": "its caller \"left\""}));
    table.answer("bot", "tools/call:wipe", &first, "{}");
    let given_up = |of: &str| format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":"{of}","reason":"no disk"}}}}"#);
    table.say("bot", "mcp/request:notifications/cancelled", None, &given_up(&third));
    assert_eq!(table.told(), [], "carl's call is carl's");
    table.say("bot", "mcp/request:notifications/cancelled", None, &given_up(&second));
    assert_eq!(table.told(), [failed(6, Failure::GivenUp("no disk".into()))]);
    table.company.room.handle_leave(table.company.now, ConnectionId(4));
    table.deliver();
    assert_eq!(table.told(), [failed(8, Failure::Left)]);
    let garbled = table.call(9, "bot", WIPE).unwrap();
    table.say("bot", "mcp/response:tools/call:wipe", Some(&garbled), r#"{"id":1,"result":7}"#);
    assert!(matches!(&table.told()[..], [Output::Failed { why: Failure::Unreadable(_), .. }]));
    assert!(table.has_no_calls());
}

#[test]
fn mx_21_requests_to_the_gate_itself_get_an_error() {
    let mut table = Table::new();
    table.say("ann", "mcp/request:prompts/list", None, r#"{"id":5,"method":"prompts/list"}"#);
    let said = table.said.last().unwrap();
    assert_eq!((&said["kind"], &said["to"]), (&json!("mcp/response:prompts/list"), &json!(["ann"])));
    assert_eq!((&said["payload"]["id"], &said["payload"]["error"]["code"]), (&json!(5), &json!(-32601)));
}

proptest! {
    /// Whatever happens in the room, a call has one end at most, and a call not made has none.
    #[test]
    fn mx_21_each_call_into_a_room_ends_once(steps in prop::collection::vec((0..7u8, 0..6u64, 0..3usize), 1..60)) {
        let mut table = Table::new();
        let (mut made, mut ended) = (BTreeMap::new(), BTreeMap::<u64, usize>::new());
        for (step, (what, call, who)) in steps.into_iter().enumerate() {
            let name = ["bot", "carl", "ann"][who];
            match what {
                0..=2 => {
                    let number = step as u64;
                    let id = table.call(number, name, WIPE);
                    made.insert(number, (name, id));
                }
                3 | 4 => {
                    let of = made.values().nth(call as usize).and_then(|(_, id)| id.clone()).unwrap_or_else(|| "none".into());
                    let (kind, payload) = ("mcp/response:tools/call:wipe", r#"{"id":1,"result":{}}"#);
                    if name != "ann" { table.say(name, kind, Some(&of), payload) }
                }
                5 => {
                    if let Some((number, _)) = made.iter().nth(call as usize) {
                        table.calling.handle_cancel(table.company.now, CallId(*number), "x");
                        table.deliver();
                    }
                }
                _ => table.join(who + 2),
            }
            for output in table.told() {
                match output {
                    Output::Answered { call, .. } | Output::Failed { call, .. } => *ended.entry(call.0).or_default() += 1,
                    Output::Notified { .. } | Output::Offered { .. } | Output::Send(_) => {}
                }
            }
        }
        prop_assert!(ended.iter().all(|(call, times)| *times == 1 && made.contains_key(call)));
    }
}
