#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

mod beyond;
mod stewards;

use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now};
use serde_json::{Value, json};

use super::*;
use crate::capability::{Capabilities, Pattern};

const FULL: &[&str] = &["mcp/*", "chat"];
const PROPOSES: &[&str] = &["mcp/proposal:*", "mcp/response:*", "chat"];

/// A room, with the messages of every connection.
struct Table {
    room: Room,
    now: Now,
    got: BTreeMap<u64, Vec<Bytes>>,
    closed: BTreeMap<u64, CloseReason>,
    events: Vec<Event>,
}

impl Table {
    fn new(settings: Settings) -> Self {
        let now = Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH };
        let room = Room::new(Topic::new("ops").unwrap(), settings, 7);
        Self { room, now, got: BTreeMap::new(), closed: BTreeMap::new(), events: Vec::new() }
    }

    fn join_with(&mut self, connection: u64, id: &str, capabilities: &[&str], preferences: Preferences) -> Result<(), RoomError> {
        let capabilities = Capabilities::read(capabilities.iter().copied()).unwrap();
        let newcomer = Newcomer { id: named(id), capabilities, preferences, expires: None, is_own: false, is_steward: false };
        let outcome = self.room.handle_join(self.now, ConnectionId(connection), newcomer);
        self.drain(true);
        outcome
    }

    fn join(&mut self, connection: u64, id: &str, capabilities: &[&str]) {
        self.join_with(connection, id, capabilities, Preferences::default()).unwrap();
    }

    fn send(&mut self, connection: u64, text: &str) {
        self.room.handle_message(self.now, ConnectionId(connection), &Bytes::copy_from_slice(text.as_bytes()));
        self.drain(true);
    }

    /// Carries out the outputs; `writes`: messages are written at once.
    fn drain(&mut self, writes: bool) {
        while let Some(output) = self.room.poll_output() {
            match output {
                RoomOutput::Event(event) => self.events.push(event),
                RoomOutput::Transmit(Transmit::Close { connection, why }) => {
                    assert_eq!(self.closed.insert(connection.0, why), None, "closed twice")
                }
                RoomOutput::Transmit(Transmit::Send { connection, bytes }) => {
                    assert!(!self.closed.contains_key(&connection.0), "sent to one that is closed");
                    if writes {
                        self.room.handle_written(connection, 1, bytes.len());
                    }
                    self.got.entry(connection.0).or_default().push(bytes);
                }
            }
        }
    }

    /// Gives the messages of a connection since the last call.
    fn news(&mut self, connection: u64) -> Vec<Value> {
        let all = self.got.remove(&connection).unwrap_or_default();
        all.iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect()
    }

    fn forget(&mut self) {
        self.got.clear();
        self.events.clear();
    }
}

fn named(id: &str) -> ParticipantId {
    ParticipantId::new(id).unwrap()
}

fn message(id: &str, from: &str, to: &[&str], kind: &str) -> String {
    json!({ "protocol": "mcpx/v0.1", "id": id, "from": from, "to": to, "kind": kind, "payload": {} }).to_string()
}

fn fulfils(id: &str, from: &str, to: &[&str], kind: &str, of: &str) -> String {
    message(id, from, to, kind).replacen('{', &format!("{{\"correlation_id\":\"{of}\","), 1)
}

fn kinds(news: &[Value]) -> Vec<&str> {
    news.iter().map(|value| value["kind"].as_str().unwrap()).collect()
}

const DIRECTED: Preferences = Preferences { routing: Routing::Directed, echo: true, also: Also::NONE, history: 0 };

#[test]
fn mx_14_a_newcomer_is_welcomed_first_then_announced() {
    let mut table = Table::new(Settings::default());
    table.join(1, "alice", FULL);
    let first = table.news(1);
    assert_eq!(kinds(&first), ["system/welcome", "system/presence"]);
    assert_eq!(first[0]["payload"]["you"], json!({ "id": "alice", "capabilities": FULL }));
    assert_eq!(first[0]["payload"]["participants"], json!([]));
    assert_eq!(
        (&first[0]["to"], &first[0]["from"], &first[0]["ts"]),
        (&json!(["alice"]), &json!("system:gateway"), &json!("1970-01-01T00:00:00Z"))
    );
    assert_eq!(first[0]["payload"]["routing"], "all");
    table.join(2, "bot \"x\"", PROPOSES);
    let (alice, bot) = (table.news(1), table.news(2));
    let joined = json!({ "event": "join", "participant": { "id": "bot \"x\"", "capabilities": PROPOSES } });
    assert_eq!((kinds(&alice), &alice[0]["payload"]), (vec!["system/presence"], &joined));
    assert_eq!((kinds(&bot), &bot[1]["payload"]), (vec!["system/welcome", "system/presence"], &joined));
    assert_eq!(bot[0]["payload"]["participants"], json!([{ "id": "alice", "capabilities": FULL }]));
    table.room.handle_leave(table.now, ConnectionId(1));
    table.drain(true);
    let left = table.news(2);
    assert_eq!(left[0]["payload"], json!({ "event": "leave", "participant": { "id": "alice" } }));
    assert!(left[0].get("to").is_none());
    assert!(matches!(table.events[2], Event::Left { why: None, .. }));
    table.room.handle_leave(table.now, ConnectionId(1));
    table.drain(true);
    assert!(table.news(2).is_empty());
}

#[test]
fn mx_01_the_rooms_own_envelopes_have_unique_ids() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", FULL);
    table.join(2, "b", PROPOSES);
    for text in ["", "{", &message("m", "x", &[], "chat"), &message("m", "b", &[], "mcp/request:x"), &message("m", "b", &[], "system/x")] {
        table.send(2, text);
    }
    table.room.handle_leave(table.now, ConnectionId(1));
    table.drain(true);
    let said: Vec<Bytes> = table.got.values().flatten().cloned().collect();
    let mut ids = BTreeSet::new();
    for bytes in said {
        let envelope = Envelope::decode(&bytes, 1 << 20).unwrap();
        assert!(envelope.kind().is_reserved() && envelope.from == crate::name::GATEWAY);
        ids.insert(envelope.id.into_owned());
    }
    // Presence goes to several under one id: two welcomes, two joins, five errors, one leave.
    assert_eq!(ids.len(), 10);
}

#[test]
fn mx_05_what_is_passed_on_is_the_bytes_that_came() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", FULL);
    table.join(2, "b", FULL);
    table.forget();
    let odd = " {\"x\":[1e400,{}],\"payload\":{\"n\":1.0,\"n\":2},\"kind\":\"ch\\u0061t\",\n\"id\":\"1\",\"from\":\"a\",\"protocol\":\"mcpx\\/v0.1\"}\t";
    let bytes = Bytes::copy_from_slice(odd.as_bytes());
    table.room.handle_message(table.now, ConnectionId(1), &bytes);
    table.drain(true);
    assert_eq!((&table.got[&1], &table.got[&2]), (&vec![bytes.clone()], &vec![bytes.clone()]));
    assert_eq!(table.got[&2][0].as_ptr(), bytes.as_ptr(), "nothing is copied");
    assert!(matches!(&table.events[..], [Event::Relayed { receivers: 2, absent: 0, bytes: recorded, .. }] if *recorded == bytes));
}

#[test]
fn mx_04_nobody_sends_in_the_name_of_another() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", FULL);
    table.join(2, "b", FULL);
    table.forget();
    for from in ["b", "A", "a ", "system:gateway"] {
        table.send(1, &message("m-1", from, &[], "chat"));
        let news = table.news(1);
        assert_eq!((kinds(&news), &news[0]["payload"]["error"]), (vec!["system/error"], &json!("auth_violation")), "{from}");
        assert_eq!((&news[0]["correlation_id"], &news[0]["to"]), (&json!("m-1"), &json!(["a"])));
    }
    assert!(table.news(2).is_empty());
}

#[test]
fn mx_12_a_message_beyond_the_capabilities_reaches_nobody() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", PROPOSES);
    table.join(2, "b", FULL);
    table.forget();
    table.send(1, &message("env-bad-call", "a", &["b"], "mcp/request:tools/call"));
    let news = table.news(1);
    let payload = &news[0]["payload"];
    assert_eq!((&payload["error"], &payload["attempted_kind"]), (&json!("capability_violation"), &json!("mcp/request:tools/call")));
    assert_eq!((&payload["your_capabilities"], &news[0]["correlation_id"]), (&json!(PROPOSES), &json!("env-bad-call")));
    assert!(payload["message"].as_str().unwrap().starts_with("You lack capability for 'mcp/request:tools/call'"));
    // What an old bridge sends (a bare `mcp`) is answered, too, and nobody is closed.
    table.send(1, &message("m", "a", &[], "mcp"));
    assert_eq!(table.news(1)[0]["payload"]["error"], "capability_violation");
    assert!(table.news(2).is_empty() && table.closed.is_empty());
    table.send(1, &message("ok", "a", &["b"], "mcp/proposal:tools/call"));
    assert_eq!(table.news(2)[0]["id"], "ok");
}

#[test]
fn mx_13_reserved_kinds_are_rejected_whatever_the_capabilities() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", &["*"]);
    table.join(2, "b", FULL);
    table.forget();
    for kind in ["system/welcome", "system/presence", "system/x", "system", "presence"] {
        table.send(1, &message("m", "a", &[], kind));
        let payload = &table.news(1)[0]["payload"];
        assert_eq!((&payload["error"], &payload["attempted_kind"]), (&json!("capability_violation"), &json!(kind)));
        assert!(payload["message"].as_str().unwrap().contains("only the gateway"));
    }
    assert!(table.news(2).is_empty());
}

#[test]
fn mx_15_each_gets_what_it_chose() {
    let mut table = Table::new(Settings::default());
    let quiet = Preferences { echo: false, ..Preferences::default() };
    table.join(1, "all", FULL);
    table.join_with(2, "directed", FULL, DIRECTED).unwrap();
    table.join_with(3, "quiet", FULL, quiet).unwrap();
    table.forget();
    let cases: [(&str, &[&str], &[u64]); 12] = [
        ("all", &[], &[1, 2, 3]),
        ("all", &["directed"], &[1, 2, 3]),
        ("all", &["quiet"], &[1, 3]),
        ("all", &["nobody"], &[1, 3]),
        ("all", &["quiet", "directed", "directed"], &[1, 2, 3]),
        ("directed", &[], &[1, 2, 3]),
        ("directed", &["all"], &[1, 3]),
        ("directed", &["directed"], &[1, 2, 3]),
        ("quiet", &[], &[1, 2]),
        ("quiet", &["directed"], &[1, 2]),
        ("quiet", &["quiet"], &[1, 3]),
        ("quiet", &["nobody"], &[1]),
    ];
    for (from, to, receivers) in cases {
        let connection = BTreeMap::from([("all", 1), ("directed", 2), ("quiet", 3)])[from];
        table.send(connection, &message("m", from, to, "chat"));
        let got: Vec<u64> = table.got.keys().copied().collect();
        assert_eq!(got, receivers, "{from} to {to:?}");
        assert!(table.got.values().all(|list| list.len() == 1));
        let absent = usize::from(to.contains(&"nobody"));
        assert!(matches!(table.events[..], [Event::Relayed { receivers: n, absent: a, .. }] if n == receivers.len() && a == absent));
        table.forget();
    }
    let all = Hearing { routing: Some(Routing::All), echo: Some(true) };
    assert_eq!(table.room.handle_hearing(table.now, &named("directed"), all).unwrap().preferences, Preferences::default());
    table.drain(true);
    assert_eq!(table.news(2)[0]["payload"]["routing"], "all");
    table.send(1, &message("m", "all", &["quiet"], "chat"));
    assert_eq!(table.news(2).len(), 1);
}

#[test]
fn parts_of_the_gate_are_not_bounded_twice() {
    let settings = Settings { messages: Rate { per_second: 1, burst: 1 }, ..Settings::default() };
    let mut table = Table::new(settings);
    let newcomer = Newcomer {
        id: named("gate"),
        capabilities: Capabilities::read(["chat"]).unwrap(),
        preferences: Preferences::default(),
        expires: None,
        is_own: true,
        is_steward: false,
    };
    table.room.handle_join(table.now, ConnectionId(1), newcomer).unwrap();
    table.drain(true);
    table.forget();
    (0..10).for_each(|_| table.send(1, &message("m", "gate", &[], "chat")));
    assert_eq!(kinds(&table.news(1)), ["chat"; 10]);
}

#[test]
fn mx_03_a_response_reaches_fulfiller_and_proposer() {
    let mut table = Table::new(Settings::default());
    table.join_with(1, "agent", PROPOSES, DIRECTED).unwrap();
    table.join_with(2, "human", FULL, DIRECTED).unwrap();
    table.join_with(3, "target", FULL, DIRECTED).unwrap();
    table.forget();
    table.send(1, &message("p", "agent", &[], "mcp/proposal:tools/call:rm"));
    table.send(2, &fulfils("f", "human", &["target"], "mcp/request:tools/call:rm", "p"));
    table.send(3, &fulfils("r", "target", &["human", "agent"], "mcp/response:tools/call:rm", "f"));
    let ids = |news: Vec<Value>| news.iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (ids(table.news(1)), ids(table.news(2)), ids(table.news(3))),
        (vec!["p".into(), "r".into()], vec!["p".into(), "r".into()], vec!["p".into(), "f".into()])
    );
    table.send(1, &fulfils("again", "agent", &[], "mcp/proposal:tools/call:rm", "p"));
    assert_eq!(table.news(1)[0]["payload"]["error"], "invalid_envelope");
}

#[test]
fn mx_17_changed_capabilities_hold_from_the_next_message() {
    let mut table = Table::new(Settings::default());
    table.join(1, "agent", PROPOSES);
    table.join(2, "b", FULL);
    table.forget();
    let call = |table: &mut Table| {
        table.send(1, &message("m", "agent", &["b"], "mcp/request:tools/call:ls"));
        table.news(2).len()
    };
    assert_eq!(call(&mut table), 0);
    table.forget();
    let (tools, chat) = (Pattern::new("mcp/request:tools/*").unwrap(), Pattern::new("chat").unwrap());
    let add = Change { add: std::slice::from_ref(&tools), remove: &[], by: "admin" };
    let changed = table.room.handle_capabilities(table.now, &named("agent"), add).unwrap();
    table.drain(true);
    let now = ["mcp/proposal:*", "mcp/response:*", "chat", "mcp/request:tools/*"];
    assert_eq!((format!("{:?}", changed.old), format!("{:?}", changed.new)), (format!("{PROPOSES:?}"), format!("{now:?}")));
    assert_eq!(table.events, [Event::CapabilitiesChanged(changed)]);
    let news = table.news(1);
    assert_eq!((kinds(&news), &news[0]["payload"]["you"]["capabilities"]), (vec!["system/welcome"], &json!(now)));
    assert!(table.news(2).is_empty(), "others are not sent what v0.1 does not know");
    assert_eq!(call(&mut table), 1);
    let back = Change { add: &[], remove: &[tools, chat], by: "admin" };
    table.room.handle_capabilities(table.now, &named("agent"), back).unwrap();
    table.drain(true);
    assert_eq!(call(&mut table), 0);
    // Connecting again brings back neither what was taken nor what was given.
    table.room.handle_leave(table.now, ConnectionId(1));
    table.forget();
    table.join(1, "agent", &["mcp/proposal:*", "mcp/request:tools/*", "chat"]);
    assert_eq!(table.news(1)[0]["payload"]["you"]["capabilities"], json!(["mcp/proposal:*"]));
    assert_eq!(table.room.handle_capabilities(table.now, &named("x"), back), Err(RoomError::NotHere { id: named("x") }));
}

#[test]
fn a_participant_connects_again_without_leaving() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", FULL);
    table.join(2, "b", FULL);
    table.forget();
    table.join(3, "a", PROPOSES);
    assert_eq!(table.closed, BTreeMap::from([(1, CloseReason::Replaced)]));
    let (b, a) = (table.news(2), table.news(3));
    assert_eq!((kinds(&b), &b[0]["payload"]["event"]), (vec!["system/presence"], &json!("join")));
    assert_eq!((kinds(&a), &a[0]["payload"]["participants"][0]["id"]), (vec!["system/welcome", "system/presence"], &json!("b")));
    assert_eq!(a[0]["payload"]["participants"].as_array().unwrap().len(), 1);
    // What the old connection still brings counts no more, and its end is not the participant's.
    table.send(1, &message("m", "a", &[], "chat"));
    table.room.handle_leave(table.now, ConnectionId(1));
    table.drain(true);
    assert!(table.news(2).is_empty());
    table.send(2, &message("m", "b", &["a"], "chat"));
    assert_eq!(table.news(3).len(), 1);
    assert_eq!(table.room.participants().count(), 2);
}

#[test]
fn mx_14_two_of_one_name_end_their_quarrel() {
    let mut table = Table::new(Settings::default());
    table.join(0, "b", FULL);
    let quarrel: Vec<bool> = (1..100).map(|n| table.join_with(n, "a", FULL, Preferences::default()).is_ok()).collect();
    assert_eq!(quarrel.iter().filter(|is_in| **is_in).count(), 11, "the first, and ten others");
    let refused = table.join_with(100, "a", FULL, Preferences::default()).unwrap_err();
    assert!(refused.to_string().contains("use one connection"), "{refused}");
    assert!(!table.closed.contains_key(&11), "whoever sits stays");
    table.now.instant += Duration::from_secs(10);
    table.join(101, "a", FULL);
}

#[test]
fn mx_17_who_was_put_out_stays_out_meanwhile() {
    let mut table = Table::new(Settings::default());
    table.join(1, "a", FULL);
    table.room.handle_dismissal(table.now, &named("a")).unwrap();
    table.drain(true);
    let refused = table.join_with(2, "a", FULL, Preferences::default()).unwrap_err();
    assert!(refused.to_string().contains("put \"a\" out"), "{refused}");
    assert!(!table.room.is_idle());
    let (at, _) = table.room.poll_timeout().unwrap();
    table.now.instant = at;
    table.room.handle_timeout(table.now);
    assert!(table.room.is_idle());
    table.join(3, "a", FULL);
}

#[test]
fn mx_18_slow_readers_are_cut_off_without_cost_to_others() {
    let settings = Settings { queue_messages: 10, ..Settings::default() };
    let mut table = Table::new(settings.clone());
    table.join(1, "a", FULL);
    table.join(2, "b", FULL);
    table.join(3, "slow", FULL);
    table.forget();
    for n in 0..20 {
        table.room.handle_message(table.now, ConnectionId(1), &message(&n.to_string(), "a", &[], "chat").into());
        while let Some(output) = table.room.poll_output() {
            let RoomOutput::Transmit(transmit) = output else { continue };
            match transmit {
                Transmit::Close { connection, why } => _ = table.closed.insert(connection.0, why),
                Transmit::Send { connection, bytes } => {
                    if connection.0 != 3 {
                        table.room.handle_written(connection, 1, bytes.len());
                    }
                    table.got.entry(connection.0).or_default().push(bytes);
                }
            }
        }
    }
    assert_eq!(table.closed, BTreeMap::from([(3, CloseReason::SlowReader)]));
    assert_eq!(table.got[&3].len(), settings.queue_messages);
    let b = table.news(2);
    assert_eq!(b.len(), 21, "twenty messages, and that one left");
    let chats: Vec<&str> = b.iter().filter(|m| m["kind"] == "chat").map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(chats, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(b.iter().filter(|m| m["payload"]["event"] == "leave").count(), 1);
    assert!(CloseReason::SlowReader.drops_what_waits() && CloseReason::SlowReader.code() == 1013);
}

#[test]
fn mx_18_a_reader_is_bounded_in_bytes_too() {
    let mut table = Table::new(Settings { queue_bytes: 4_000, ..Settings::default() });
    table.join(1, "a", FULL);
    table.join(2, "slow", FULL);
    table.forget();
    let long = message("m", "a", &[], "chat").replace("{}", &format!("{{\"text\":\"{}\"}}", "x".repeat(2_000)));
    for _ in 0..4 {
        table.room.handle_message(table.now, ConnectionId(1), &Bytes::copy_from_slice(long.as_bytes()));
        while let Some(output) = table.room.poll_output() {
            let RoomOutput::Transmit(transmit) = output else { continue };
            match transmit {
                Transmit::Send { connection: ConnectionId(1), bytes } => table.room.handle_written(ConnectionId(1), 1, bytes.len()),
                Transmit::Send { connection, bytes } => table.got.entry(connection.0).or_default().push(bytes),
                Transmit::Close { connection, why } => _ = table.closed.insert(connection.0, why),
            }
        }
    }
    assert_eq!((table.got[&2].len(), &table.closed), (2, &BTreeMap::from([(2, CloseReason::SlowReader)])));
}

#[test]
fn a_flood_is_slowed_and_then_cut_off() {
    let settings =
        Settings { messages: Rate { per_second: 10, burst: 5 }, refusals: Rate { per_second: 1, burst: 3 }, ..Settings::default() };
    let mut table = Table::new(settings);
    table.join(1, "a", FULL);
    table.join(2, "b", FULL);
    table.forget();
    for n in 0..6 {
        table.send(1, &message(&n.to_string(), "a", &["b"], "chat"));
    }
    let news = table.news(1);
    let error = news.last().unwrap();
    assert_eq!((&error["payload"]["error"], &error["correlation_id"]), (&json!("rate_limited"), &json!("5")));
    assert_eq!(error["payload"]["retry_after_ms"], 100);
    assert_eq!(table.news(2).len(), 5);
    table.now.instant += Duration::from_millis(100);
    table.send(1, &message("6", "a", &["b"], "chat"));
    assert_eq!(table.news(2).len(), 1);
    for n in 7..12 {
        table.send(1, &message(&n.to_string(), "a", &["b"], "chat"));
    }
    assert_eq!(table.closed, BTreeMap::from([(1, CloseReason::Misbehaved)]));
    assert_eq!(kinds(&table.news(2)), ["system/presence"]);
    assert!(matches!(table.events.last(), Some(Event::Left { why: Some(CloseReason::Misbehaved), .. })));
}

#[test]
fn bytes_are_rated_and_overlong_messages_refused() {
    let settings = Settings { message_bytes: 1_000, bytes: Rate { per_second: 1_000, burst: 1_000 }, ..Settings::default() };
    let mut table = Table::new(settings);
    table.join(1, "a", FULL);
    table.forget();
    let long = |text: usize| message("m", "a", &[], "chat").replace("{}", &format!("{{\"text\":\"{}\"}}", "x".repeat(text)));
    table.send(1, &long(1_000));
    assert_eq!(table.news(1)[0]["payload"]["error"], "payload_too_large");
    table.now.instant += Duration::from_secs(5);
    table.send(1, &long(700));
    assert_eq!(table.news(1)[0]["kind"], "chat");
    table.send(1, &long(700));
    assert_eq!(table.news(1)[0]["payload"]["error"], "rate_limited");
}

#[test]
fn a_token_that_runs_out_ends_its_connection() {
    let mut table = Table::new(Settings::default());
    let end = table.now.instant + Duration::from_secs(60);
    let newcomer = Newcomer {
        id: named("a"),
        capabilities: Capabilities::default(),
        preferences: Preferences::default(),
        expires: Some(end),
        is_own: false,
        is_steward: false,
    };
    table.room.handle_join(table.now, ConnectionId(1), newcomer).unwrap();
    assert_eq!(table.room.poll_timeout().map(|(at, _)| at), Some(end));
    table.room.handle_timeout(table.now);
    table.drain(true);
    assert!(table.closed.is_empty());
    table.now.instant = end;
    table.room.handle_timeout(table.now);
    table.drain(true);
    assert_eq!(table.closed, BTreeMap::from([(1, CloseReason::Expired)]));
    assert!(table.room.poll_timeout().is_none() && table.room.is_idle());
}
