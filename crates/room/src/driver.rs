//! A room's task: owns the machine and carries out its outputs. Decides nothing, and waits for no reader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use banyan_model::Now;
use bytes::Bytes;
use room_proto::capability::{Capabilities, Pattern};
use room_proto::name::{ConnectionId, ParticipantId, Topic};
use room_proto::room::{
    Change, ChangedCapabilities, CloseReason, Event, Hearing, HearingOutcome, Newcomer, Preferences, Room, RoomError, RoomOutput, Settings,
    Transmit,
};
use room_proto::websocket::{Opcode, frame};
use runtime::clock::SystemClock;
use runtime::drive::{self, drive};
use tokio::sync::{mpsc, oneshot};

use crate::faults::Faults;
use crate::mew::Interpreter;
use crate::status::ParticipantStatus;
use crate::writer::Outlet;
use crate::{Rooms, Way};
use door::sign_in::SessionId;

/// Inputs in a room's queue. Only senders beyond wait.
const INPUTS: usize = 1024;
/// Most inputs handled before others have their turn.
const BATCH: usize = 64;

/// An input of a room.
pub enum Input {
    /// An admin changes capabilities.
    Capabilities {
        id: ParticipantId,
        add: Vec<Pattern>,
        remove: Vec<Pattern>,
        by: String,
        answer: oneshot::Sender<Result<ChangedCapabilities, RoomError>>,
    },
    /// An admin puts a participant out.
    Dismiss { id: ParticipantId, answer: oneshot::Sender<Result<(), RoomError>> },
    /// The gate ends.
    End,
    /// An admin, or the participant, changes the hearing.
    Hearing { id: ParticipantId, hearing: Hearing, answer: oneshot::Sender<Result<HearingOutcome, RoomError>> },
    /// A participant was admitted.
    Join { connection: ConnectionId, joining: Newcomer, outlet: Outlet, answer: oneshot::Sender<Result<(), RoomError>> },
    /// A connection is gone.
    Leave(ConnectionId),
    /// A message came.
    Message(ConnectionId, Bytes),
    /// A question for the participants.
    Present(oneshot::Sender<Vec<ParticipantStatus>>),
    /// The bounds have changed.
    Settings(Settings),
    /// The admission of a connection is void.
    Withdraw(ConnectionId),
}

/// Handle of a room.
pub struct Live {
    topic: Topic,
    inputs: mpsc::Sender<Input>,
    pub counts: Counts,
    pub faults: Faults,
    /// Participants by a page of the console, with their sign-ins.
    people: Mutex<BTreeMap<ParticipantId, SessionId>>,
}

/// Counts of a room since its beginning.
#[derive(Default)]
pub struct Counts {
    pub participants: AtomicUsize,
    /// Messages passed on.
    pub messages: AtomicU64,
    /// Receivers of all messages together.
    pub deliveries: AtomicU64,
    /// Messages refused.
    pub refused: AtomicU64,
    /// Slow readers cut off.
    pub cut: AtomicU64,
}

impl Live {
    /// Gives the name of the room.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Lists participants by a page of the console.
    pub fn people(&self) -> BTreeSet<ParticipantId> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Gives the sign-in of a participant; `None`: absent, or not by a page of the console.
    pub fn signed_in(&self, id: &ParticipantId) -> Option<SessionId> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    fn mark(&self, id: ParticipantId, way: Way) {
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        if let Way::Page(session) = way {
            people.insert(id, session);
        } else {
            people.remove(&id);
        }
    }

    /// Tells whether the room is over.
    pub fn is_over(&self) -> bool {
        self.inputs.is_closed()
    }

    /// Sends an input, and waits for a busy room; `false`: the room is over.
    pub async fn send(&self, input: Input) -> bool {
        self.inputs.send(input).await.is_ok()
    }

    /// Sends an input without waiting, by a task of its own.
    pub fn tell(self: &Arc<Self>, input: Input) {
        let room = Arc::clone(self);
        tokio::spawn(async move { room.send(input).await });
    }

    /// Asks the room; `None`: the room is over.
    pub async fn ask<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> Input) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        if self.send(input(answer)).await { answered.await.ok() } else { None }
    }
}

/// The task of a room.
pub struct RoomDriver {
    rooms: Arc<Rooms>,
    live: Arc<Live>,
    inputs: mpsc::Receiver<Input>,
    /// Inputs taken and not handled yet, the last first.
    taken: Vec<Input>,
    /// Set by the first input.
    is_begun: bool,
    room: Room,
    outlets: BTreeMap<ConnectionId, Outlet>,
    /// Arrival of each participant.
    since: BTreeMap<ParticipantId, SystemTime>,
    /// The last framed message: everybody gets the same bytes.
    framed: Option<(Bytes, Bytes)>,
    interpreter: Interpreter,
    /// Inputs handled at once: fewer where the queue of a reader is short, so that readers have their turn.
    batch: usize,
}

impl drive::Driver for RoomDriver {
    type Machine = Room;
    type Input = Input;
    type End = ();

    fn machine(&mut self) -> &mut Room {
        &mut self.room
    }

    async fn next(&mut self) -> Result<Input, ()> {
        if self.taken.is_empty() {
            if self.is_begun {
                // Readers have their turn after each batch.
                tokio::task::yield_now().await;
            }
            if self.inputs.recv_many(&mut self.taken, self.batch).await == 0 {
                return Err(());
            }
            self.is_begun = true;
            self.taken.reverse();
        }
        self.taken.pop().ok_or(())
    }

    async fn handle(&mut self, now: Now, input: Input) -> Result<(), ()> {
        self.settle();
        self.handle_input(now, input);
        Ok(())
    }

    async fn carry(&mut self, now: Now, output: RoomOutput) -> Result<(), ()> {
        match output {
            RoomOutput::Event(event) => self.note(event),
            RoomOutput::Transmit(Transmit::Close { connection, why }) => {
                if let Some(outlet) = self.outlets.remove(&connection) {
                    outlet.close(why);
                }
            }
            RoomOutput::Transmit(Transmit::Send { connection, bytes }) => self.send(now, connection, &bytes),
        }
        Ok(())
    }

    async fn rest(&mut self, _: Now) -> Result<(), ()> {
        let is_quiet = self.is_begun && self.taken.is_empty() && self.room.is_idle();
        if is_quiet && self.is_over() { Err(()) } else { Ok(()) }
    }
}

impl RoomDriver {
    /// Makes a room, with a handle for others.
    pub fn new(rooms: Arc<Rooms>, topic: Topic, settings: Settings) -> (Arc<Live>, Self) {
        let (sender, inputs) = mpsc::channel(INPUTS);
        let live = Arc::new(Live {
            topic: topic.clone(),
            inputs: sender,
            counts: Counts::default(),
            faults: Faults::default(),
            people: Mutex::default(),
        });
        let batch = batch(&settings);
        let room = Room::new(topic, settings, u128::from_ne_bytes(runtime::random::bytes()));
        let (outlets, since, interpreter) = (BTreeMap::new(), BTreeMap::new(), Interpreter::default());
        let driver = Self {
            rooms,
            live: Arc::clone(&live),
            inputs,
            taken: Vec::new(),
            is_begun: false,
            room,
            outlets,
            since,
            framed: None,
            interpreter,
            batch,
        };
        (live, driver)
    }

    /// Runs until the room is over.
    pub async fn run(mut self) {
        drive(&mut self, &SystemClock).await;
    }

    /// Ends the room if its queue is empty.
    fn is_over(&mut self) -> bool {
        let mut live = self.rooms.live();
        // Nobody finds it while the lock is held; who found it before has sent its input, or finds it closed.
        if !self.inputs.is_empty() {
            return false;
        }
        self.inputs.close();
        let is_this = live.get(self.room.topic()).is_some_and(|room| Arc::ptr_eq(room, &self.live));
        if is_this {
            live.remove(self.room.topic());
        }
        true
    }

    /// Reports written messages to the room.
    fn settle(&mut self) {
        for (connection, outlet) in &self.outlets {
            let (messages, bytes) = outlet.written.take_counts();
            if messages > 0 {
                self.room.handle_written(*connection, messages, bytes);
            }
        }
    }

    fn handle_input(&mut self, now: Now, input: Input) {
        match input {
            Input::Capabilities { id, add, remove, by, answer } => {
                let change = Change { add: &add, remove: &remove, by: &by };
                // Whoever asked may have lost patience.
                drop(answer.send(self.room.handle_capabilities(now, &id, change)));
            }
            Input::Dismiss { id, answer } => drop(answer.send(self.room.handle_dismissal(now, &id))),
            Input::Hearing { id, hearing, answer } => drop(answer.send(self.room.handle_hearing(now, &id, hearing))),
            Input::End => {
                self.room.handle_end();
                self.inputs.close();
            }
            Input::Join { connection, joining, outlet, answer } => {
                let way = outlet.way;
                self.outlets.insert(connection, outlet);
                let id = joining.id.clone();
                let seated = self.room.handle_join(now, connection, joining);
                let is_seated = seated.is_ok();
                if is_seated {
                    // Whoever has the seat now: a name may be taken over.
                    self.live.mark(id, way);
                }
                let is_awaited = answer.send(seated).is_ok();
                if !is_seated || !is_awaited {
                    self.outlets.remove(&connection);
                    self.room.handle_leave(now, connection);
                }
            }
            Input::Leave(connection) => {
                self.outlets.remove(&connection);
                self.room.handle_leave(now, connection);
            }
            Input::Message(connection, bytes) => self.hear(now, connection, &bytes),
            Input::Present(answer) => drop(answer.send(self.present())),
            Input::Settings(settings) => {
                self.batch = batch(&settings);
                self.room.handle_settings(settings);
            }
            Input::Withdraw(connection) => self.room.handle_withdrawal(now, connection),
        }
    }

    fn hear(&mut self, now: Now, connection: ConnectionId, bytes: &Bytes) {
        if self.outlets.get(&connection).is_none_or(|outlet| outlet.way != Way::Mew) {
            return self.room.handle_message(now, connection, bytes);
        }
        match self.interpreter.hear(bytes, self.room.settings().message_bytes) {
            Ok(Some(envelope)) => self.room.handle_message(now, connection, &envelope),
            Ok(None) => {}
            Err(refused) => self.room.handle_untranslated(now, connection, bytes.len(), refused),
        }
    }

    fn present(&self) -> Vec<ParticipantStatus> {
        let status = |one: (&ParticipantId, &Capabilities, Preferences)| {
            ParticipantStatus::describe(one, self.since.get(one.0).copied(), self.live.faults.counts_of(one.0.as_str()))
        };
        self.room.present().map(status).collect()
    }

    fn send(&mut self, now: Now, connection: ConnectionId, bytes: &Bytes) {
        let framed = self.framed(bytes);
        let has_room = match self.outlets.get(&connection) {
            Some(outlet) if outlet.way == Way::Mew => match self.interpreter.tell(self.live.topic.as_str(), bytes) {
                Some(framed) => outlet.send(framed, bytes.len()),
                None => {
                    // What is not said to it does not wait for it.
                    self.room.handle_written(connection, 1, bytes.len());
                    true
                }
            },
            Some(outlet) => outlet.send(framed, bytes.len()),
            None => true,
        };
        // A bound that was raised meanwhile is more than the way to this one was made for.
        if !has_room && let Some(outlet) = self.outlets.remove(&connection) {
            outlet.close(CloseReason::SlowReader);
            self.room.handle_leave(now, connection);
        }
    }

    fn framed(&mut self, bytes: &Bytes) -> Bytes {
        let same = |(known, _): &&(Bytes, Bytes)| (known.as_ptr(), known.len()) == (bytes.as_ptr(), bytes.len());
        match self.framed.as_ref().filter(same) {
            Some((_, framed)) => framed.clone(),
            None => {
                let framed = Bytes::from(frame(Opcode::Text, bytes, None));
                self.framed = Some((bytes.clone(), framed.clone()));
                framed
            }
        }
    }

    fn note(&mut self, event: Event) {
        let (room, counts) = (self.room.topic().as_str(), &self.live.counts);
        counts.participants.store(self.outlets.len(), Ordering::Relaxed);
        match event {
            Event::CapabilitiesChanged(ChangedCapabilities { id, old, new, by }) => {
                tracing::info!(room, participant = id.as_str(), by, ?old, ?new, "capabilities were changed");
            }
            Event::Joined { id, again, .. } => {
                tracing::info!(room, participant = id.as_str(), again, "a participant joined");
                self.since.entry(id).or_insert_with(SystemTime::now);
            }
            Event::Left { id, why } => {
                self.since.remove(&id);
                self.live.mark(id.clone(), Way::Plain);
                if why == Some(CloseReason::SlowReader) {
                    counts.cut.fetch_add(1, Ordering::Relaxed);
                }
                let why = why.map(|why| why.reason());
                tracing::info!(room, participant = id.as_str(), why, "a participant left");
            }
            Event::Relayed { receivers, .. } => {
                counts.messages.fetch_add(1, Ordering::Relaxed);
                counts.deliveries.fetch_add(receivers as u64, Ordering::Relaxed);
            }
            Event::Refused { id, why, .. } => {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                self.live.faults.note_refused(id.as_str());
                tracing::debug!(room, participant = id.as_str(), %why, "a message was refused");
            }
        }
    }
}

fn batch(settings: &Settings) -> usize {
    (settings.queue_messages / 8).clamp(1, BATCH)
}
