//! A check for the gate's participants, which believe the messages of a room: a server, a caller, and a learner from people. In a foreign
//! room any participant chooses these bytes. Nothing about the room itself.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now};
use bytes::Bytes;
use room_proto::automation::{self, Automation, AutomationState};
use room_proto::calling::{self, RoomCaller};
use room_proto::capability::Capabilities;
use room_proto::chain::Bounds;
use room_proto::envelope::Envelope;
use room_proto::name::ParticipantId;
use room_proto::orchestrator::{Orchestrator, OrchestratorOutput};
use room_proto::participant::{Participant, check};
use room_proto::sitting::{self, CallId, SeatedServer};
use room_proto::voice::{Answer, Call};

const NAMES: [&str; 3] = ["files", "gate", "boss"];
/// Longer messages nobody sends.
const MOST: usize = 1 << 12;

/// Lines are messages to all three. Their answers are fit to be passed on by a room, and each call begins once and ends at most once.
pub(super) fn seat(data: &[u8]) {
    let Some(mut seats) = Seats::welcomed() else { panic!("those of this check have no legal names") };
    for line in data.split(|b| *b == b'\n') {
        seats.hear(&Bytes::copy_from_slice(line));
    }
    seats.now.instant += Duration::from_secs(3600);
    seats.sitting.handle_timeout(seats.now);
    seats.boss.handle_timeout(seats.now);
    seats.drain();
}

struct Seats {
    now: Now,
    sitting: SeatedServer,
    calling: RoomCaller,
    boss: Orchestrator,
    /// Calls asked of the server.
    asked: BTreeSet<CallId>,
    /// Calls made by the caller and not ended.
    open: BTreeSet<CallId>,
    called: u64,
}

impl Seats {
    fn welcomed() -> Option<Self> {
        let [files, gate, boss] = NAMES.map(|name| ParticipantId::new(name).ok());
        let (files, gate, boss) = (files?, gate?, boss?);
        let bounds = sitting::Bounds { room: "ops".into(), name: files.clone(), calls: 4, of_one: 2, proposals: 2, message_bytes: MOST };
        let calls = calling::Bounds { own: [files, gate.clone()].into(), calls: 2, entries: 3, message_bytes: MOST };
        let automation = Automation::new(automation::Bounds { evidence: 2, ..automation::Bounds::default() }, AutomationState::default());
        let participant = Participant::new(Bounds::default(), MOST, 3);
        let mut seats = Self {
            now: Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH },
            sitting: SeatedServer::new(bounds, gate, Duration::from_secs(60), 1),
            calling: RoomCaller::new(calls, 2),
            boss: Orchestrator::new(participant, automation, [boss, ParticipantId::new("ann").ok()?].into()),
            asked: BTreeSet::new(),
            open: BTreeSet::new(),
            called: 0,
        };
        for name in NAMES {
            let welcome = format!(
                r#"{{"protocol":"mcpx/v0.1","id":"w-{name}","from":"system:gateway","to":["{name}"],"kind":"system/welcome","payload":{{"you":{{"id":"{name}","capabilities":["*"]}},"participants":[{{"id":"ann","capabilities":["*"]}}]}}}}"#
            );
            seats.tell(name, &welcome.into());
        }
        seats.drain();
        Some(seats)
    }

    fn tell(&mut self, name: &str, bytes: &Bytes) {
        match name {
            "files" => self.sitting.handle_message(self.now, bytes),
            "gate" => self.calling.handle_message(self.now, bytes),
            _ => self.boss.handle_message(self.now, bytes),
        }
    }

    fn hear(&mut self, bytes: &Bytes) {
        for name in NAMES {
            self.tell(name, bytes);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.sitting.poll_output() {
            self.served(output);
        }
        while let Some(output) = self.calling.poll_output() {
            self.heard(output);
        }
        while let Some(output) = self.boss.poll_output() {
            if let OrchestratorOutput::Send(spoken) = output {
                passed_on(&spoken.bytes, "boss");
            }
        }
    }

    /// Of what is asked of the server every second call is answered at once.
    fn served(&mut self, output: sitting::Output) {
        match output {
            sitting::Output::Send(bytes) => passed_on(&bytes, "files"),
            sitting::Output::SendAsGate(bytes) => passed_on(&bytes, "gate"),
            sitting::Output::Call(asked) | sitting::Output::Propose(asked) => {
                assert!(self.asked.insert(asked.call), "{:?} was begun before", asked.call);
                match asked.call.0 % 4 {
                    0 => self.sitting.handle_answer(self.now, asked.call, Answer::Result(br#"{"content":[]}"#)),
                    1 => self.sitting.handle_approval(self.now, asked.call, br#"{"by":["ann"]}"#),
                    2 => self.sitting.handle_rejection(self.now, asked.call, "no"),
                    _ => {}
                }
            }
            sitting::Output::Approved(call) => assert!(self.asked.contains(&call)),
            sitting::Output::Cancel { call, .. } => assert!(self.asked.contains(&call)),
            sitting::Output::Dropped { why, .. } => assert!(!why.to_string().is_empty()),
        }
    }

    /// Takes an output of the caller, and calls every offered tool.
    fn heard(&mut self, output: calling::Output) {
        match output {
            calling::Output::Send(bytes) => passed_on(&bytes, "gate"),
            calling::Output::Answered { call, .. } => assert!(self.open.remove(&call), "{call:?} has ended twice"),
            calling::Output::Failed { call, why } => {
                assert!(!why.to_string().is_empty());
                assert!(self.open.remove(&call), "{call:?} has ended twice");
            }
            calling::Output::Notified { call, .. } => assert!(self.open.contains(&call)),
            calling::Output::Offered { id, kind: _, entries } => {
                assert!(entries.len() <= 3 && entries.iter().all(|entry| serde_json::from_slice::<serde_json::Value>(entry).is_ok()));
                self.called += 1;
                self.open.insert(CallId(self.called));
                let asked = Call { method: "tools/call", params: Some(br#"{"name":"a","arguments":{}}"#) };
                self.calling.handle_call(self.now, CallId(self.called), &id, asked);
            }
        }
    }
}

/// Checks that an outgoing envelope is valid, and of its sender.
fn passed_on(bytes: &Bytes, from: &str) {
    let text = String::from_utf8_lossy(bytes);
    match Envelope::decode(bytes, usize::MAX) {
        Ok(envelope) => {
            assert_eq!(envelope.from, from, "{text}");
            assert_eq!(check(&envelope), Ok(()), "{text}");
            assert!(Capabilities::new([]).is_ok_and(|none| !none.cover(envelope.kind())), "{text}");
        }
        Err(refused) => panic!("{}: {text}", refused.why),
    }
}
