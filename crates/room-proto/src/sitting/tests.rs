mod paused;
mod spelt;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::company::{Company, Who};
use crate::name::ConnectionId;
use crate::room::{Also, Preferences};

const WHO: Who = [
    ("files", &["mcp/response:*", "mcp/request:notifications/*"]),
    ("gate", &["mcp/request:*", "mcp/reject:*", "chat"]),
    ("ann", &["mcp/*", "chat"]),
    ("bob", &["mcp/*", "chat"]),
    ("bot", &["mcp/proposal:*", "mcp/withdraw:*", "chat"]),
];
/// Approvers at the gate.
const BY: &[u8] = br#"{"id":"a1","by":["anna"]}"#;
const EXPIRY: Duration = Duration::from_secs(60);

/// A room with a server, with a record of the driver's work.
struct Table {
    company: Company,
    sitting: SeatedServer,
    outputs: Vec<Output>,
    /// Messages of the server and the gate.
    said: Vec<Value>,
}

impl Table {
    fn new(bounds: impl FnOnce(&mut Bounds)) -> Self {
        let mut own = Bounds { room: "ops".into(), name: named("files"), calls: 8, of_one: 4, proposals: 4, message_bytes: 4096 };
        bounds(&mut own);
        let sitting = SeatedServer::new(own, named("gate"), EXPIRY, 7);
        let company = Company::new(&WHO, Preferences { also: Also::ALL, ..Preferences::default() });
        let mut table = Self { company, sitting, outputs: Vec::new(), said: Vec::new() };
        (0..WHO.len()).for_each(|place| table.join(place));
        table
    }

    fn join(&mut self, place: usize) {
        self.company.join(place);
        self.deliver();
    }

    /// Hands the server its messages, and sends the server's own.
    fn deliver(&mut self) {
        loop {
            while let Some(bytes) = self.company.next() {
                self.sitting.handle_message(self.company.now, &bytes);
            }
            let Some(output) = self.sitting.poll_output() else { return };
            let (place, bytes) = match &output {
                Output::Send(bytes) => (0, bytes.clone()),
                Output::SendAsGate(bytes) => (1, bytes.clone()),
                Output::Approved(_) | Output::Call(_) | Output::Cancel { .. } | Output::Dropped { .. } | Output::Propose(_) => {
                    self.outputs.push(output);
                    continue;
                }
            };
            self.said.push(serde_json::from_slice(&bytes).unwrap());
            self.company.room.handle_message(self.company.now, ConnectionId(place), &bytes);
        }
    }

    /// Sends an envelope; gives the id.
    fn say(&mut self, who: &str, kind: &str, of: Option<&str>, payload: &Value) -> String {
        self.say_to(&["files"], who, kind, of, payload)
    }

    fn say_to(&mut self, to: &[&str], who: &str, kind: &str, of: Option<&str>, payload: &Value) -> String {
        let id = self.company.say(who, to, kind, of, &payload.to_string());
        self.deliver();
        id
    }

    fn proposes(&mut self) -> (String, CallId) {
        let id = self.say("bot", "mcp/proposal:tools/call:rm", None, &json!({ "method": "tools/call", "params": remove("/tmp") }));
        match self.outputs.pop() {
            Some(Output::Propose(asked)) => (id, asked.call),
            other => panic!("{other:?}"),
        }
    }

    fn asks(&mut self, who: &str, of: Option<&str>) -> String {
        self.say(who, "mcp/request:tools/call:rm", of, &call("1", &remove("/tmp")))
    }

    fn error(&mut self) -> String {
        let said = self.said.pop().expect("an answer");
        format!("{} {}", said["payload"]["error"]["code"], said["payload"]["error"]["message"].as_str().unwrap())
    }
}

fn named(id: &str) -> ParticipantId {
    ParticipantId::new(id).unwrap()
}

fn remove(path: &str) -> Value {
    json!({ "name": "rm", "arguments": { "path": path } })
}

fn call(id: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn mx_21_a_request_is_called_and_answered_byte_for_byte() {
    let mut table = Table::new(|_| ());
    let id = table.asks("ann", None);
    let Some(Output::Call(asked)) = table.outputs.pop() else { panic!() };
    assert_eq!((asked.by.as_str(), asked.method.as_str(), &asked.id[..]), ("ann", "tools/call", &br#""1""#[..]));
    assert_eq!(serde_json::from_slice::<Value>(&asked.params).unwrap(), remove("/tmp"));
    table.sitting.handle_notification(table.company.now, asked.call, "notifications/progress", br#"{"progressToken":1,"progress":2}"#);
    let odd = br#"{ "content" : [], "n":1.00e2,"x":"\u00e9" }"#;
    table.sitting.handle_answer(table.company.now, asked.call, Answer::Result(odd));
    let Some(Output::Send(_)) = table.sitting.poll_output() else { panic!() };
    let Some(Output::Send(sent)) = table.sitting.poll_output() else { panic!() };
    assert!(sent.windows(odd.len()).any(|part| part == odd));
    let said: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!((&said["kind"], &said["to"]), (&json!("mcp/response:tools/call:rm"), &json!(["ann"])));
    assert_eq!((&said["correlation_id"], &said["payload"]["id"]), (&json!(id), &json!("1")));
    table.sitting.handle_answer(table.company.now, asked.call, Answer::Result(b"{}"));
    assert_eq!(table.sitting.poll_output(), None, "answered once");
}

#[test]
fn mx_21_only_addressed_and_sound_requests_are_called() {
    let mut table = Table::new(|_| ());
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    table.say_to(&[], "ann", "mcp/request:tools/list", None, &list);
    table.say_to(&["bob"], "ann", "mcp/request:tools/list", None, &list);
    assert_eq!(table.outputs, []);
    table.say("ann", "mcp/request:tools/call:safe", None, &call("1", &remove("/")));
    assert!(matches!(&table.outputs[..], [Output::Dropped { from, .. }] if from == "ann"));
    assert!(table.said.is_empty());
    for (method, params, wanted) in [
        ("logging/setLevel", json!({ "level": "info" }), "-32601 `logging/setLevel` is not served in a room"),
        ("tools/list", json!([]), "-32602 `params` must be an object"),
    ] {
        table.say("ann", &format!("mcp/request:{method}"), None, &json!({ "id": 1, "method": method, "params": params }));
        let told = table.error();
        assert!(told.starts_with(wanted), "{told}");
    }
}

#[test]
fn mx_21_a_seat_answers_initialize_by_itself() {
    let mut table = Table::new(|_| ());
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    table.say("ann", "mcp/request:initialize", None, &asked);
    let said = table.said.last().unwrap();
    let result = &said["payload"]["result"];
    assert_eq!((&said["to"], &result["protocolVersion"]), (&json!(["ann"]), &json!("2025-06-18")), "{said}");
    assert!(["tools", "resources", "prompts"].iter().all(|list| result["capabilities"][list].is_object()), "{said}");
    table.say("ann", "mcp/request:notifications/initialized", None, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!((table.said.len(), &table.outputs[..]), (1, &[][..]), "nothing is called");
}

#[test]
fn h1_overlong_request_ids_are_refused() {
    let mut table = Table::new(|_| ());
    let long = "a".repeat(300);
    table.say("ann", "mcp/request:tools/call:rm", None, &call(&long, &remove("/")));
    let told = table.error();
    assert!(table.outputs.is_empty() && told.starts_with("-32600 "), "{told}");
    table.say("bot", "mcp/proposal:tools/call:rm", None, &call(&long, &remove("/tmp")));
    assert!(table.outputs.iter().all(|output| matches!(output, Output::Propose(asked) if asked.id.len() <= MAX_ID)), "{:?}", table.outputs);
}

#[test]
fn mx_21_calls_are_bounded_cancelled_and_end_with_their_caller() {
    let mut table = Table::new(|bounds| (bounds.calls, bounds.of_one) = (3, 2));
    table.say("ann", "mcp/request:tools/call:rm", None, &call("a", &remove("/a")));
    let second = table.asks("ann", None);
    table.asks("ann", None);
    let told = table.error();
    assert!(told.contains("2 calls of yours are under way"), "{told}");
    table.asks("bob", None);
    table.asks("bob", None);
    let told = table.error();
    assert!(told.contains("3 calls of this room are under way"), "{told}");
    let calls: Vec<CallId> = table.outputs.drain(..).map(|o| if let Output::Call(asked) = o { asked.call } else { panic!() }).collect();
    let cancelled = |id: &str| json!({ "method": "notifications/cancelled", "params": { "requestId": id } });
    table.say("bob", "mcp/request:notifications/cancelled", None, &cancelled("a"));
    assert_eq!(table.outputs, [], "not its own");
    table.say("ann", "mcp/request:notifications/cancelled", None, &cancelled("a"));
    table.say("ann", "mcp/request:notifications/cancelled", None, &cancelled(&second));
    table.company.room.handle_leave(table.company.now, ConnectionId(3));
    table.deliver();
    let ended: Vec<CallId> = table.outputs.drain(..).map(|o| if let Output::Cancel { call, .. } = o { call } else { panic!() }).collect();
    assert_eq!(ended, calls);
}

#[test]
fn overlong_and_unsound_answers_become_errors() {
    let mut table = Table::new(|_| ());
    for (result, wanted) in [(format!("\"{}\"", "x".repeat(5000)), "raise `message_size`"), (r#"{"a":1,"a":2}"#.into(), "no sound JSON")] {
        table.asks("ann", None);
        let Some(Output::Call(asked)) = table.outputs.pop() else { panic!() };
        table.sitting.handle_answer(table.company.now, asked.call, Answer::Result(result.as_bytes()));
        table.deliver();
        let told = table.error();
        assert!(told.contains(wanted), "{told}");
    }
}

#[test]
fn mx_21_a_changed_list_is_announced_to_the_room() {
    let mut table = Table::new(|_| ());
    table.sitting.handle_change(table.company.now, "notifications/tools/list_changed");
    table.deliver();
    let said = table.said.pop().unwrap();
    assert_eq!((&said["from"], &said["kind"]), (&json!("files"), &json!("mcp/request:notifications/tools/list_changed")));
    assert!(said.get("to").is_none() && said["payload"]["method"] == "notifications/tools/list_changed", "{said}");
}

#[test]
fn mx_22_the_gate_fulfils_once_and_in_public() {
    let mut table = Table::new(|_| ());
    let (proposal, call) = table.proposes();
    table.sitting.handle_approval(table.company.now, call, BY);
    table.deliver();
    assert_eq!(table.outputs, [Output::Approved(call)]);
    let asked = table.said.pop().unwrap();
    assert_eq!((&asked["from"], &asked["to"], &asked["correlation_id"]), (&json!("gate"), &json!(["files"]), &json!(proposal)));
    let mut params = remove("/tmp");
    params["_meta"] = json!({ "io.banyan/approval": { "id": "a1", "by": ["anna"] } });
    assert_eq!((&asked["kind"], &asked["payload"]["params"]), (&json!("mcp/request:tools/call:rm"), &params));
    // Agreed to twice, or once more in the room: it is on its way.
    table.sitting.handle_approval(table.company.now, call, BY);
    table.deliver();
    table.asks("ann", Some(&proposal));
    let told = table.error();
    assert!(told.contains("it is requested; nothing was called"), "{told}");
    table.sitting.handle_answer(table.company.now, call, Answer::Result(b"{\"content\":[]}"));
    table.deliver();
    let answer = table.said.pop().unwrap();
    assert_eq!((&answer["to"], &answer["correlation_id"]), (&json!(["gate", "bot"]), &asked["id"]));
    assert_eq!(table.outputs.len(), 1);
}

#[test]
fn mx_22_a_fulfilment_in_the_room_ends_the_gates_wait() {
    let mut table = Table::new(|_| ());
    let (proposal, call) = table.proposes();
    table.asks("ann", Some(&proposal));
    let [Output::Cancel { call: over, why }, Output::Call(asked)] = &table.outputs[..] else { panic!("{:?}", table.outputs) };
    assert_eq!((*over, why.as_str(), asked.by.as_str()), (call, "fulfilled by \"ann\" in the room \"ops\"", "ann"));
    // The gate comes too late.
    table.sitting.handle_approval(table.company.now, call, BY);
    table.deliver();
    table.asks("bob", Some(&proposal));
    assert!(table.error().contains("does not wait any more"));
    assert_eq!(table.outputs.len(), 2);
}

#[test]
fn mx_22_own_other_and_ended_proposals_are_not_fulfilled() {
    let mut table = Table::new(|_| ());
    let own = table.say("ann", "mcp/proposal:tools/call:rm", None, &json!({ "method": "tools/call", "params": remove("/") }));
    table.asks("ann", Some(&own));
    assert!(table.error().contains("whoever proposes a call does not approve it"));
    assert!(matches!(&table.outputs[..], [Output::Propose(_), Output::Cancel { .. }]));
    table.outputs.clear();
    let (proposal, _) = table.proposes();
    let other = json!({ "name": "ls", "arguments": {} });
    table.say("ann", "mcp/request:tools/call:ls", Some(&proposal), &call("1", &other));
    assert!(table.error().contains("asks for something else"));
    table.say("bot", "mcp/withdraw:tools/call:rm", Some(&proposal), &json!({}));
    assert!(matches!(&table.outputs[..], [Output::Cancel { why, .. }] if why.contains("withdrawn by \"bot\"")));
    table.asks("ann", Some(&proposal));
    assert!(table.error().contains("it is withdrawn"));
    // What was proposed before this server came is carried out once as well.
    table.outputs.clear();
    table.asks("ann", Some("long-ago"));
    table.asks("bob", Some("long-ago"));
    assert!(table.error().contains("fulfilled once"));
    assert!(matches!(&table.outputs[..], [Output::Call(asked)] if asked.by == "ann"));
}

#[test]
fn mx_22_a_proposal_ends_at_gate_and_room_alike() {
    let mut table = Table::new(|_| ());
    let (proposal, call) = table.proposes();
    table.sitting.handle_rejection(table.company.now, call, "too risky");
    table.deliver();
    let said = table.said.pop().unwrap();
    assert_eq!((&said["kind"], &said["correlation_id"]), (&json!("mcp/reject:tools/call:rm"), &json!(proposal)));
    assert_eq!((&said["from"], &said["payload"]["reason"]), (&json!("gate"), &json!("too risky")));
    let (proposal, call) = table.proposes();
    table.say("bob", "mcp/reject:tools/call:rm", Some(&proposal), &json!({ "reason": "no" }));
    assert_eq!(table.outputs.pop(), Some(Output::Cancel { call, why: "rejected by \"bob\" in the room \"ops\"".into() }));
    // What the gate can't hold is left to the room.
    let (proposal, call) = table.proposes();
    table.sitting.handle_left(table.company.now, call, "nobody may approve");
    table.deliver();
    let said = table.said.pop().unwrap();
    assert_eq!((&said["kind"], &said["to"], &said["correlation_id"]), (&json!("chat"), &json!(["bot"]), &json!(proposal)));
    table.asks("ann", Some(&proposal));
    assert!(matches!(&table.outputs[..], [Output::Call(_)]));
    table.outputs.clear();
    let (_, call) = table.proposes();
    table.company.now.instant += EXPIRY;
    table.sitting.handle_timeout(table.company.now);
    table.deliver();
    assert_eq!(table.outputs, [Output::Cancel { call, why: "nobody has agreed in time".into() }]);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Approve,
    Deny,
    Expire,
    Fulfil(&'static str),
    Leave,
    Reject,
    Withdraw,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Approve),
        1 => Just(Step::Deny),
        1 => Just(Step::Expire),
        3 => prop_oneof![Just("ann"), Just("bob")].prop_map(Step::Fulfil),
        1 => Just(Step::Leave),
        1 => Just(Step::Reject),
        1 => Just(Step::Withdraw),
    ]
}

proptest! {
    /// Inbox and room race: events in any order, and news that reach the gate late.
    #[test]
    fn mx_22_a_proposal_is_fulfilled_once_in_any_race(
        steps in proptest::collection::vec((step(), any::<bool>()), 1..12),
    ) {
        let mut table = Table::new(|_| ());
        let (proposal, call) = table.proposes();
        let mut held = Vec::new();
        for (step, at_once) in steps {
            match step {
                Step::Approve => table.sitting.handle_approval(table.company.now, call, BY),
                Step::Deny => table.sitting.handle_rejection(table.company.now, call, "no"),
                Step::Expire => {
                    table.company.now.instant += EXPIRY;
                    table.sitting.handle_timeout(table.company.now);
                }
                Step::Fulfil(who) => drop(table.asks(who, Some(&proposal))),
                Step::Leave => table.company.room.handle_leave(table.company.now, ConnectionId(4)),
                Step::Reject => drop(table.say("ann", "mcp/reject:tools/call:rm", Some(&proposal), &json!({}))),
                Step::Withdraw => drop(table.say("bot", "mcp/withdraw:tools/call:rm", Some(&proposal), &json!({}))),
            }
            // What it wants sent is held up, and others are first.
            while let Some(output) = table.sitting.poll_output() {
                match output {
                    Output::Send(ref bytes) => held.push((0, bytes.clone())),
                    Output::SendAsGate(ref bytes) => held.push((1, bytes.clone())),
                    Output::Approved(_) | Output::Call(_) | Output::Cancel { .. } | Output::Dropped { .. } | Output::Propose(_) => {
                        table.outputs.push(output);
                    }
                }
            }
            if at_once {
                for (place, bytes) in held.drain(..) {
                    table.company.room.handle_message(table.company.now, ConnectionId(place), &bytes);
                }
                table.deliver();
            }
        }
        for (place, bytes) in held {
            table.company.room.handle_message(table.company.now, ConnectionId(place), &bytes);
        }
        table.deliver();
        let made = table.outputs.iter().filter(|o| matches!(o, Output::Approved(_) | Output::Call(_))).count();
        prop_assert!(made <= 1, "{:?}", table.outputs);
        let freed = table.outputs.contains(&Output::Approved(call));
        let ended = table.outputs.iter().filter(|o| matches!(o, Output::Cancel { call: over, .. } if *over == call)).count();
        prop_assert!(usize::from(freed) + ended <= 1, "{:?}", table.outputs);
    }
}
