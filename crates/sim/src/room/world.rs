//! A history: participants, their connections and the room, moved step by step by one seed. Does not know the rules; the reference does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now};
use room_proto::capability::{Capabilities, Pattern};
use room_proto::name::{ConnectionId, ParticipantId, Topic};
use room_proto::room::{
    Also, Change, CloseReason, Event, Hearing, Newcomer, Preferences, Rate, Room, RoomOutput, Routing, Settings, Transmit,
};

use super::message::{Message, PATTERNS};
use super::reference::{BURST, EACH_MS, PARTICIPANTS, QUEUE, REFUSED_BURST, REFUSED_EACH_MS, Reference};
use super::said::SentMessage;
use crate::random::Random;

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const STEPS: usize = 250;

/// The outcome of a history.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Every event, a line each.
    pub trace: Vec<String>,
    /// Number of events of each kind.
    pub counts: BTreeMap<String, usize>,
}

/// An end of a connection, with its unread messages.
#[derive(Debug)]
struct Wire {
    name: &'static str,
    /// Reads only now and then.
    lazy: bool,
    unread: VecDeque<usize>,
    /// Number of each sender's last message here.
    last: BTreeMap<String, usize>,
}

/// Everybody taking part.
pub(super) struct World {
    random: Random,
    now: Now,
    room: Room,
    reference: Reference,
    wires: BTreeMap<u64, Wire>,
    connections: u64,
    /// Number of messages sent by each.
    numbers: BTreeMap<&'static str, usize>,
    pub(super) outcome: Outcome,
}

type StepResult = Result<(), String>;

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let rate = |each_ms: u64, burst: u64| Rate {
            per_second: u32::try_from(1_000 / each_ms).unwrap_or(1),
            burst: u32::try_from(burst).unwrap_or(1),
        };
        let settings = Settings {
            participants: PARTICIPANTS,
            queue_messages: QUEUE,
            queue_bytes: usize::MAX,
            messages: rate(EACH_MS, BURST),
            refusals: rate(REFUSED_EACH_MS, REFUSED_BURST),
            bytes: Rate { per_second: u32::MAX, burst: u32::MAX },
            exclusion: Duration::ZERO,
            reconnection: (Duration::ZERO, 1),
            ..Settings::default()
        };
        let topic = Topic::new("sim").unwrap_or_else(|error| panic!("{error}"));
        Self {
            random: Random::new(seed),
            now: Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH },
            room: Room::new(topic, settings, u128::from(seed)),
            reference: Reference::default(),
            wires: BTreeMap::new(),
            connections: 0,
            numbers: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    pub(super) fn live(&mut self) -> StepResult {
        for _ in 0..STEPS {
            match self.random.below(100) {
                0..18 => self.join()?,
                18..24 => self.hang_up(),
                24..62 => self.send(1)?,
                62..66 => self.send(30)?,
                66..74 => self.pass(),
                74..82 => self.read(),
                82..88 => self.change()?,
                88..92 => self.choose()?,
                92..94 => self.dismiss()?,
                _ => self.pass(),
            }
            self.settle()?;
        }
        Ok(())
    }

    fn join(&mut self) -> StepResult {
        let Some(name) = self.random.pick(&NAMES) else { return Ok(()) };
        self.connections += 1;
        let connection = self.connections;
        let given: BTreeSet<String> = (0..self.random.below(4)).map(|_| self.pattern().to_owned()).collect();
        let (directed, echo) = (self.random.percent(30), self.random.percent(70));
        self.trace(format!("{name} joins over {connection} with {given:?}, directed {directed}, echo {echo}"));
        let capabilities = Capabilities::read(given.iter().map(String::as_str)).map_err(|error| error.to_string())?;
        let newcomer = Newcomer {
            id: named(name)?,
            capabilities,
            preferences: preferences(directed, echo),
            expires: None,
            is_own: false,
            is_steward: false,
        };
        let outcome = self.room.handle_join(self.now, ConnectionId(connection), newcomer);
        if self.reference.join(connection, name, &given, (directed, echo)) != outcome.is_ok() {
            return Err(format!("newcomer ends with {outcome:?}"));
        }
        if outcome.is_ok() {
            let lazy = self.random.percent(30);
            self.wires.insert(connection, Wire { name, lazy, unread: VecDeque::new(), last: BTreeMap::new() });
        } else {
            self.count("full");
        }
        Ok(())
    }

    /// Ends any connection, closed ones included: a driver may hear of an end at any time.
    fn hang_up(&mut self) {
        let connection = 1 + self.random.below(usize::try_from(self.connections).unwrap_or(1).max(1)) as u64;
        self.trace(format!("{connection} is gone"));
        self.room.handle_leave(self.now, ConnectionId(connection));
        self.reference.leave(connection, None);
        self.reference.cut();
        self.wires.remove(&connection);
    }

    fn send(&mut self, count: usize) -> StepResult {
        let all: Vec<(u64, &'static str)> = self.wires.iter().map(|(connection, wire)| (*connection, wire.name)).collect();
        let Some((connection, name)) = self.random.pick(&all) else { return Ok(()) };
        for _ in 0..count {
            let number = self.numbers.entry(name).or_default();
            *number += 1;
            let message = Message::draw(&mut self.random, name, *number, &NAMES);
            self.trace(format!("{connection} sends {message:?}"));
            self.room.handle_message(self.now, ConnectionId(connection), &message.bytes());
            self.reference.message(connection, &message);
            self.settle()?;
        }
        Ok(())
    }

    fn pass(&mut self) {
        let ms = self.random.below(700) as u64;
        self.now.instant += Duration::from_millis(ms);
        self.reference.pass(ms);
        self.room.handle_timeout(self.now);
    }

    /// Lets a lazy reader read some.
    fn read(&mut self) {
        let lazy: Vec<u64> = self.wires.iter().filter(|(_, wire)| wire.lazy).map(|(connection, _)| *connection).collect();
        let Some(connection) = self.random.pick(&lazy) else { return };
        let most = self.random.below(QUEUE + 1);
        self.written(connection, most);
    }

    fn written(&mut self, connection: u64, most: usize) {
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        let read: Vec<usize> = wire.unread.drain(..most.min(wire.unread.len())).collect();
        self.room.handle_written(ConnectionId(connection), read.len(), read.iter().sum());
        self.reference.written(connection, read.len());
    }

    fn change(&mut self) -> StepResult {
        let Some(name) = self.random.pick(&NAMES) else { return Ok(()) };
        let (pattern, added) = (self.pattern(), self.random.percent(60));
        self.trace(format!("an admin changes {name}: {pattern} {added}"));
        let list = [Pattern::new(pattern).map_err(|error| error.to_string())?];
        let (add, remove) = if added { (&list[..], &[][..]) } else { (&[][..], &list[..]) };
        let outcome = self.room.handle_capabilities(self.now, &named(name)?, Change { add, remove, by: "admin" });
        if self.reference.change(name, pattern, added) != outcome.is_ok() {
            return Err(format!("changing {name} ends with {outcome:?}"));
        }
        Ok(())
    }

    fn choose(&mut self) -> StepResult {
        let Some(name) = self.random.pick(&NAMES) else { return Ok(()) };
        let (directed, echo) = (self.random.percent(50), self.random.percent(50));
        self.trace(format!("{name} chooses directed {directed}, echo {echo}"));
        let routing = Some(if directed { Routing::Directed } else { Routing::All });
        let outcome = self.room.handle_hearing(self.now, &named(name)?, Hearing { routing, echo: Some(echo) });
        if self.reference.choose(name, directed, echo) != outcome.is_ok() {
            return Err(format!("choosing of {name} ends with {outcome:?}"));
        }
        Ok(())
    }

    fn dismiss(&mut self) -> StepResult {
        let Some((connection, name)) = self.random.pick(&NAMES).and_then(|name| self.seat(name)) else { return Ok(()) };
        self.trace(format!("an admin puts {name} out"));
        self.room.handle_dismissal(self.now, &named(&name)?).map_err(|error| error.to_string())?;
        self.reference.leave(connection, Some(CloseReason::Dismissed));
        self.reference.cut();
        Ok(())
    }

    fn seat(&self, name: &str) -> Option<(u64, String)> {
        self.reference.present().into_iter().find(|(_, present)| present == name)
    }

    fn pattern(&mut self) -> &'static str {
        self.random.pick(&PATTERNS).map_or("chat", |(pattern, _)| pattern)
    }

    /// Carries out the room's wishes, compares them with the expected ones, and lets readers read.
    fn settle(&mut self) -> StepResult {
        let (mut sent, mut closed): (BTreeMap<u64, Vec<SentMessage>>, BTreeMap<u64, CloseReason>) = (BTreeMap::new(), BTreeMap::new());
        while let Some(output) = self.room.poll_output() {
            match output {
                RoomOutput::Event(event) => self.count_event(&event),
                RoomOutput::Transmit(Transmit::Close { connection, why }) => {
                    closed.insert(connection.0, why);
                    self.wires.remove(&connection.0).ok_or_else(|| format!("{connection:?} is closed twice"))?;
                }
                RoomOutput::Transmit(Transmit::Send { connection, bytes }) => {
                    let wire =
                        self.wires.get_mut(&connection.0).ok_or_else(|| format!("{connection:?} is closed and is sent {bytes:?}"))?;
                    let said = SentMessage::read(&bytes, wire.name)?;
                    wire.in_order(&said)?;
                    wire.unread.push_back(bytes.len());
                    sent.entry(connection.0).or_default().push(said);
                }
            }
        }
        // Of what a connection was sent before it was closed, nothing can be said to be missing by its reader; the model says it.
        let (wanted, ended) = (std::mem::take(&mut self.reference.sent), std::mem::take(&mut self.reference.closed));
        if (&sent, &closed) != (&wanted, &ended) {
            return Err(format!("sent:   {sent:#?}\nwanted: {wanted:#?}\nclosed: {closed:?}\nwanted: {ended:?}"));
        }
        let eager: Vec<u64> = self.wires.iter().filter(|(_, wire)| !wire.lazy).map(|(connection, _)| *connection).collect();
        eager.into_iter().for_each(|connection| self.written(connection, usize::MAX));
        Ok(())
    }

    fn count_event(&mut self, event: &Event) {
        let what = match event {
            Event::CapabilitiesChanged(_) => "changed".to_owned(),
            Event::Joined { again, .. } => if *again { "joined again" } else { "joined" }.to_owned(),
            Event::Left { why, .. } => why.map_or("left".to_owned(), |why| format!("{why:?}")),
            Event::Refused { why, .. } => why.code().to_owned(),
            Event::Relayed { absent, .. } => if *absent > 0 { "relayed to absent" } else { "relayed" }.to_owned(),
        };
        self.count(&what);
    }

    fn count(&mut self, what: &str) {
        *self.outcome.counts.entry(what.to_owned()).or_default() += 1;
    }

    fn trace(&mut self, line: String) {
        self.outcome.trace.push(line);
    }
}

impl Wire {
    /// Checks that messages of one sender arrive in order, and once.
    fn in_order(&mut self, said: &SentMessage) -> StepResult {
        let SentMessage::Relayed(bytes) = said else { return Ok(()) };
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let id = value["id"].as_str().unwrap_or_default();
        let (sender, number) = id.split_once('-').ok_or_else(|| format!("whose is {id}?"))?;
        let number: usize = number.parse().map_err(|_| format!("which is {id}?"))?;
        match self.last.insert(sender.to_owned(), number) {
            Some(last) if last >= number => Err(format!("{id} arrives at {} behind {sender}-{last}", self.name)),
            Some(_) | None => Ok(()),
        }
    }
}

fn named(name: &str) -> Result<ParticipantId, String> {
    ParticipantId::new(name).map_err(|error| error.to_string())
}

fn preferences(directed: bool, echo: bool) -> Preferences {
    Preferences { routing: if directed { Routing::Directed } else { Routing::All }, echo, also: Also::default(), history: 0 }
}
