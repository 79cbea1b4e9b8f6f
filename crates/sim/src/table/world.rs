//! A history: the room, the two machines of the gate in it, and the participants, moved step by step by one seed. Does not know the
//! rules; the reference does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now};
use bytes::Bytes;
use room_proto::calling::{self, CallAnswer, Failure, RoomCaller};
use room_proto::capability::Capabilities;
use room_proto::name::{ConnectionId, ParticipantId, Topic};
use room_proto::room::{Also, Newcomer, Preferences, Room, RoomOutput, Routing, Settings, Transmit};
use room_proto::sitting::{self, CallId, SeatedServer};
use room_proto::voice::{Answer, Call};
use serde_json::{Value, json};

use super::Outcome;
use super::reference::Reference;
use crate::random::Random;

const FULL: &[&str] = &["mcp/request:*", "mcp/reject:*"];
const OFFERS: &[&str] = &["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "mcp/request:notifications/*"];
const WHO: [(&str, &[&str]); 6] = [
    ("gate", &["mcp/request:*", "mcp/response:*", "mcp/reject:*", "chat"]),
    ("files", &["mcp/response:*", "mcp/request:notifications/*"]),
    ("ann", FULL),
    ("bob", FULL),
    ("bot", OFFERS),
    ("carl", OFFERS),
];
const OWN: [&str; 2] = ["gate", "files"];
const PEOPLE: [&str; 2] = ["ann", "bob"];
const OFFERERS: [&str; 2] = ["bot", "carl"];
const STEPS: usize = 400;
/// Rounds after which any work under way has long ended.
const ROUNDS: usize = 2_000;

/// A request read by a participant and not answered.
struct OpenRequest {
    who: &'static str,
    message: Value,
}

/// Everybody taking part.
pub(super) struct World {
    random: Random,
    now: Now,
    room: Room,
    sitting: SeatedServer,
    calling: RoomCaller,
    reference: Reference,
    /// Unread messages of each participant.
    unread: BTreeMap<&'static str, VecDeque<Bytes>>,
    over: BTreeMap<u64, &'static str>,
    /// Messages of the gate and its server that the room has not heard yet.
    unsaid: VecDeque<(&'static str, Bytes)>,
    /// Calls at the server, with the raw id of each.
    running: Vec<(CallId, Bytes)>,
    /// Proposals waiting at the gate.
    waiting: Vec<(CallId, usize)>,
    proposals: Vec<usize>,
    wanted: Vec<OpenRequest>,
    versions: BTreeMap<&'static str, usize>,
    numbers: usize,
    connections: u64,
    pub(super) outcome: Outcome,
}

type StepResult = Result<(), String>;

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let named = |name: &str| ParticipantId::new(name).unwrap_or_else(|error| panic!("{error}"));
        let own: BTreeSet<ParticipantId> = OWN.map(named).into();
        let bounds =
            sitting::Bounds { room: "sim".into(), name: named("files"), calls: 64, of_one: 64, proposals: 64, message_bytes: 1 << 16 };
        let calls = calling::Bounds { own, calls: 64, entries: 10, message_bytes: 1 << 16 };
        let settings = Settings { reconnection: (Duration::ZERO, 1), ..Settings::default() };
        Self {
            random: Random::new(seed),
            now: Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH },
            room: Room::new(Topic::new("sim").unwrap_or_else(|error| panic!("{error}")), settings, u128::from(seed)),
            sitting: SeatedServer::new(bounds, named("gate"), Duration::from_secs(3_600), u128::from(seed) + 1),
            calling: RoomCaller::new(calls, u128::from(seed) + 2),
            reference: Reference::default(),
            unread: BTreeMap::new(),
            over: BTreeMap::new(),
            unsaid: VecDeque::new(),
            running: Vec::new(),
            waiting: Vec::new(),
            proposals: Vec::new(),
            wanted: Vec::new(),
            versions: BTreeMap::new(),
            numbers: 0,
            connections: 0,
            outcome: Outcome::default(),
        }
    }

    pub(super) fn live(&mut self) -> StepResult {
        for (name, _) in WHO {
            self.join(name)?;
        }
        for _ in 0..STEPS {
            self.now.instant += Duration::from_millis(20);
            match self.random.below(100) {
                0..30 => self.read_one()?,
                30..45 => self.say_one()?,
                45..53 => self.ask(None)?,
                53..58 => self.propose()?,
                58..64 => self.decide()?,
                64..70 => self.serve()?,
                70..80 => self.call()?,
                80..90 => self.answer()?,
                90..93 => self.offer_others()?,
                93..95 => self.cancel()?,
                95..97 => self.leave()?,
                _ => self.come_back()?,
            }
        }
        self.quiet()
    }

    /// Brings everything under way to its end.
    fn quiet(&mut self) -> StepResult {
        for _ in 0..ROUNDS {
            if self.unsaid.is_empty() && self.wanted.is_empty() && self.running.is_empty() && self.unread.values().all(VecDeque::is_empty) {
                let there = OFFERERS.into_iter().filter(|name| self.unread.contains_key(name));
                let present = there.map(|name| (name.to_owned(), self.tool(name))).collect();
                return self.reference.is_quiet(&present);
            }
            let names: Vec<&'static str> = self.unread.keys().copied().collect();
            for name in names {
                self.read(name)?;
            }
            self.say_one()?;
            self.serve()?;
            self.answer()?;
        }
        Err("it never comes to an end".into())
    }

    fn join(&mut self, name: &'static str) -> StepResult {
        self.connections += 1;
        let connection = self.connections;
        let (_, may) = WHO.into_iter().find(|(id, _)| *id == name).unwrap_or(WHO[0]);
        let routing = if name == "gate" { Routing::Directed } else { Routing::All };
        let newcomer = Newcomer {
            id: ParticipantId::new(name).map_err(|error| error.to_string())?,
            capabilities: Capabilities::read(may.iter().copied()).map_err(|error| error.to_string())?,
            preferences: Preferences { routing, echo: name == "files", also: Also::ALL, history: 0 },
            expires: None,
            is_own: OWN.contains(&name),
            is_steward: false,
        };
        self.over.insert(connection, name);
        self.unread.insert(name, VecDeque::new());
        self.room.handle_join(self.now, ConnectionId(connection), newcomer).map_err(|error| error.to_string())?;
        self.settle()
    }

    fn leave(&mut self) -> StepResult {
        let Some(name) = self.random.pick(&["ann", "bob", "bot", "carl"]).filter(|name| self.unread.contains_key(name)) else {
            return Ok(());
        };
        self.note("leaves", name);
        self.unread.remove(name);
        self.wanted.retain(|wanted| wanted.who != name);
        self.reference.leaves(name);
        let connection = self.connection(name);
        self.room.handle_leave(self.now, connection);
        self.settle()
    }

    fn come_back(&mut self) -> StepResult {
        let gone: Vec<&'static str> = WHO.into_iter().map(|(name, _)| name).filter(|name| !self.unread.contains_key(name)).collect();
        match self.random.pick(&gone) {
            Some(name) => {
                self.note("comes back", name);
                self.join(name)
            }
            None => Ok(()),
        }
    }

    fn connection(&self, name: &str) -> ConnectionId {
        ConnectionId(self.over.iter().rev().find(|(_, over)| **over == name).map_or(0, |(connection, _)| *connection))
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    /// Somebody sends an envelope.
    fn send(&mut self, who: &'static str, kind: &str, members: &Value, payload: &Value) -> StepResult {
        let mut envelope = json!({"protocol": "mcpx/v0.1", "from": who, "kind": kind, "payload": payload});
        for (key, value) in members.as_object().cloned().unwrap_or_default() {
            envelope[key] = value;
        }
        if envelope.get("id").is_none() {
            envelope["id"] = json!(format!("m-{}", self.number()));
        }
        let connection = self.connection(who);
        self.room.handle_message(self.now, connection, &Bytes::from(envelope.to_string()));
        self.settle()
    }

    /// Asks the server for something, by a request of its own or for a proposal.
    fn ask(&mut self, of: Option<usize>) -> StepResult {
        let Some(who) = self.random.pick(&PEOPLE).filter(|name| self.unread.contains_key(name)) else { return Ok(()) };
        let number = self.number();
        self.note(if of.is_some() { "fulfils" } else { "asks" }, who);
        self.reference.asks(number, who, of);
        let mut members = json!({"id": format!("e-{number}"), "to": ["files"]});
        if let Some(of) = of {
            members["correlation_id"] = json!(format!("p-{of}"));
        }
        let payload = json!({"jsonrpc": "2.0", "id": format!("j-{number}"), "method": "tools/call", "params": {"name": "rm"}});
        self.send(who, "mcp/request:tools/call:rm", &members, &payload)
    }

    fn propose(&mut self) -> StepResult {
        let Some(who) = self.random.pick(&OFFERERS).filter(|name| self.unread.contains_key(name)) else { return Ok(()) };
        let number = self.number();
        self.note("proposes", who);
        self.proposals.push(number);
        let payload = json!({"method": "tools/call", "params": {"name": "rm"}});
        self.send(who, "mcp/proposal:tools/call:rm", &json!({"id": format!("p-{number}"), "to": ["files"]}), &payload)
    }

    /// Somebody decides on a proposal, at the gate or in the room, whether it waits or not.
    fn decide(&mut self) -> StepResult {
        let at = self.random.below(self.waiting.len());
        match self.random.below(6) {
            0 | 1 if !self.waiting.is_empty() => {
                self.note("approved at", "gate");
                self.sitting.handle_approval(self.now, self.waiting[at].0, b"{}");
                self.settle()
            }
            2 if !self.waiting.is_empty() => {
                self.note("denied at", "gate");
                self.sitting.handle_rejection(self.now, self.waiting[at].0, "no");
                self.settle()
            }
            3 => {
                let of = self.random.pick(&self.proposals);
                let who = self.random.pick(&PEOPLE).filter(|name| self.unread.contains_key(name));
                let (Some(of), Some(who)) = (of, who) else { return Ok(()) };
                self.note("rejects", who);
                self.send(who, "mcp/reject:tools/call:rm", &json!({"correlation_id": format!("p-{of}")}), &json!({}))
            }
            _ => match self.random.pick(&self.proposals) {
                Some(of) => self.ask(Some(of)),
                None => Ok(()),
            },
        }
    }

    /// The server has carried something out.
    fn serve(&mut self) -> StepResult {
        if self.running.is_empty() {
            return Ok(());
        }
        let (call, id) = self.running.swap_remove(self.random.below(self.running.len()));
        self.note("served by", "files");
        let result = format!("{{\"of\":{}}}", String::from_utf8_lossy(&id));
        self.sitting.handle_answer(self.now, call, Answer::Result(result.as_bytes()));
        self.settle()
    }

    /// Calls a participant's offer for a client of the gate.
    fn call(&mut self) -> StepResult {
        let Some(at) = self.random.pick(&OFFERERS) else { return Ok(()) };
        let call = self.number() as u64;
        self.note("is called", at);
        self.reference.calls(call, at);
        let params = json!({"name": "t", "arguments": {"n": call}}).to_string();
        self.calling.handle_call(self.now, CallId(call), at, Call { method: "tools/call", params: Some(params.as_bytes()) });
        self.settle()
    }

    fn cancel(&mut self) -> StepResult {
        let call = self.random.below(self.numbers + 1) as u64;
        if self.reference.is_under_way(call) {
            self.note("cancelled by", "client");
            self.reference.cancels(call);
            self.calling.handle_cancel(self.now, CallId(call), "cancelled");
        }
        self.settle()
    }

    fn tool(&self, who: &str) -> String {
        format!("t{}", self.versions.get(who).copied().unwrap_or_default())
    }

    /// Answers a request for a participant.
    fn answer(&mut self) -> StepResult {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let OpenRequest { who, message } = self.wanted.swap_remove(self.random.below(self.wanted.len()));
        let kind = message["kind"].as_str().unwrap_or_default().replacen("request", "response", 1);
        let result = if kind == "mcp/response:tools/list" {
            json!({"tools": [{"name": self.tool(who)}]})
        } else {
            json!({"n": message["payload"]["params"]["arguments"]["n"]})
        };
        self.note("answers", who);
        let members = json!({"to": [message["from"]], "correlation_id": message["id"]});
        self.send(who, &kind, &members, &json!({"jsonrpc": "2.0", "id": 0, "result": result}))
    }

    fn offer_others(&mut self) -> StepResult {
        let Some(who) = self.random.pick(&OFFERERS).filter(|name| self.unread.contains_key(name)) else { return Ok(()) };
        *self.versions.entry(who).or_default() += 1;
        self.note("offers others", who);
        let method = "notifications/tools/list_changed";
        self.send(who, &format!("mcp/request:{method}"), &json!({}), &json!({"jsonrpc": "2.0", "method": method}))
    }

    fn read_one(&mut self) -> StepResult {
        let names: Vec<&'static str> = self.unread.keys().copied().collect();
        self.random.pick(&names).map_or(Ok(()), |name| self.read(name))
    }

    /// Reads the first unread message.
    fn read(&mut self, name: &'static str) -> StepResult {
        let Some(bytes) = self.unread.get_mut(name).and_then(VecDeque::pop_front) else { return Ok(()) };
        match name {
            "gate" => self.calling.handle_message(self.now, &bytes),
            "files" => self.sitting.handle_message(self.now, &bytes),
            _ => {
                let message: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
                let is_mine = message["to"] == json!([name]);
                let kind = message["kind"].as_str().unwrap_or_default();
                let of = message["correlation_id"].as_str().and_then(|of| of.strip_prefix("e-")?.parse().ok());
                match of {
                    Some(number) if kind.starts_with("mcp/response") => {
                        self.reference.reads(name, number, message["payload"]["result"]["of"].as_str())?;
                    }
                    _ if is_mine && kind.starts_with("mcp/request") && message["payload"].get("id").is_some() => {
                        self.wanted.push(OpenRequest { who: name, message });
                    }
                    _ => {}
                }
            }
        }
        self.settle()
    }

    /// Lets the room hear the first message of the gate or its server.
    fn say_one(&mut self) -> StepResult {
        let Some((who, bytes)) = self.unsaid.pop_front() else { return Ok(()) };
        let connection = self.connection(who);
        self.room.handle_message(self.now, connection, &bytes);
        self.settle()
    }

    /// Takes all outputs of the machines.
    fn settle(&mut self) -> StepResult {
        while let Some(output) = self.room.poll_output() {
            let RoomOutput::Transmit(Transmit::Send { connection: ConnectionId(connection), bytes }) = output else { continue };
            let name = self.over.get(&connection).copied().unwrap_or_default();
            if let Some(unread) = self.unread.get_mut(name) {
                unread.push_back(bytes);
            }
        }
        while let Some(output) = self.sitting.poll_output() {
            self.of_server(output)?;
        }
        while let Some(output) = self.calling.poll_output() {
            self.of_gate(output)?;
        }
        Ok(())
    }

    fn of_server(&mut self, output: sitting::Output) -> StepResult {
        match output {
            sitting::Output::Approved(call) => {
                let at = self.waiting.iter().position(|(waiting, _)| *waiting == call).ok_or("nobody has proposed that")?;
                let (_, proposal) = self.waiting.swap_remove(at);
                self.note("goes out for", "gate");
                self.running.push((call, Bytes::from(format!("\"p-{proposal}\""))));
                self.reference.makes(proposal)
            }
            sitting::Output::Call(asked) => {
                let id: String = serde_json::from_slice(&asked.id).map_err(|error| error.to_string())?;
                let number = id.strip_prefix("j-").and_then(|number| number.parse().ok()).ok_or("it has another id")?;
                self.running.push((asked.call, asked.id));
                self.reference.carries_out(number)
            }
            sitting::Output::Cancel { call, .. } => {
                self.running.retain(|(running, _)| *running != call);
                self.waiting.retain(|(waiting, _)| *waiting != call);
                Ok(())
            }
            sitting::Output::Dropped { from, why } => Err(format!("a message of {from} does not hold: {why}")),
            sitting::Output::Propose(asked) => {
                let id: String = serde_json::from_slice(&asked.id).map_err(|error| error.to_string())?;
                let number = id.strip_prefix("p-").and_then(|number| number.parse().ok()).ok_or("it has another id")?;
                self.waiting.push((asked.call, number));
                Ok(())
            }
            sitting::Output::Send(bytes) => {
                self.unsaid.push_back(("files", bytes));
                Ok(())
            }
            sitting::Output::SendAsGate(bytes) => {
                self.unsaid.push_back(("gate", bytes));
                Ok(())
            }
        }
    }

    fn of_gate(&mut self, output: calling::Output) -> StepResult {
        match output {
            calling::Output::Answered { call: CallId(call), answer } => {
                let said = match &answer {
                    CallAnswer::Result(result) => serde_json::from_slice::<Value>(result).ok().and_then(|result| result["n"].as_u64()),
                    CallAnswer::Error(_) => None,
                };
                self.note("has answered", "participant");
                self.reference.ends(call, Some(said.unwrap_or_default()), false)
            }
            calling::Output::Failed { call: CallId(call), why } => {
                self.note(if why == Failure::Left { "left under" } else { "is absent for" }, "participant");
                self.reference.ends(call, None, why == Failure::Left)
            }
            calling::Output::Notified { .. } => Err("nobody has notified of anything".into()),
            calling::Output::Offered { id, kind: calling::ListKind::Tools, entries } => {
                let tool = entries.first().and_then(|tool| serde_json::from_slice::<Value>(tool).ok());
                self.reference.offers(&id, tool.and_then(|tool| tool["name"].as_str().map(str::to_owned)));
                Ok(())
            }
            calling::Output::Offered { kind, .. } => Err(format!("nobody offers {kind:?}")),
            calling::Output::Send(bytes) => {
                self.unsaid.push_back(("gate", bytes));
                Ok(())
            }
        }
    }

    fn note(&mut self, what: &'static str, who: &str) {
        *self.outcome.counts.entry(what).or_default() += 1;
        self.outcome.trace.push(format!("{who} {what}"));
    }
}
