//! The task that owns a port and the conversation on it. What is sent when, the conversation decides; names and JSON are not known here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now, Principal};
use runtime::clock::{self, SystemClock};
use runtime::drive::{self, Driver};
use stub_proto::session::{
    CallEnd, Content, NeverRan, Order, PartSession, PartStanding, PartStep, Profile, SessionSettings, Unknown, WireTally,
};
use stub_proto::table::{PartTable, TableRow};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};

use crate::places::{MOST_PLACES, PartPlace, PartPlaces};
use crate::settings::StubSettings;
use crate::wire::{OpenWire, WireRead};

/// Patience with a port that takes no bytes.
const WRITE: Duration = Duration::from_secs(5);

/// News of a part.
#[derive(Clone, Debug, Default)]
pub struct LineState {
    pub standing: Option<PartStanding>,
    pub table: Option<PartTable>,
    /// Reason for the end of the line.
    pub over: Option<String>,
    pub tally: WireTally,
}

/// A line to a part. The line ends when nobody holds the handle.
#[derive(Debug)]
pub struct PartLine {
    jobs: mpsc::Sender<LineJob>,
    state: watch::Receiver<LineState>,
    places: PartPlaces,
    next: AtomicU64,
}

/// A call for a part, without a name on the line.
#[derive(Debug)]
pub struct LineCall {
    pub tool: u8,
    /// Row of the part's table by which the call was judged.
    pub row: Option<TableRow>,
    pub content: Content,
    pub is_repeatable: bool,
    pub work: Duration,
    /// Caller; `None` for the gate itself.
    pub caller: Option<Principal>,
}

#[derive(Debug)]
enum LineJob {
    Call(Order, Waiter),
    Cancel(u64),
    Close,
}

/// Sender of a call's end, with the place of the call.
#[derive(Debug)]
struct Waiter {
    done: oneshot::Sender<CallEnd>,
    _place: PartPlace,
}

/// A call on a line.
#[derive(Debug)]
pub struct PendingCall {
    id: u64,
    end: oneshot::Receiver<CallEnd>,
}

impl PartLine {
    /// Begins a conversation on an open wire. `key` is let go of when the wire is closed.
    pub fn start(wire: OpenWire, settings: &StubSettings, key: Option<OwnedMutexGuard<()>>) -> Self {
        let (jobs, taken) = mpsc::channel(2 * MOST_PLACES);
        let (news, state) = watch::channel(LineState::default());
        let session = PartSession::new(SessionSettings {
            profile: settings.profile,
            speed: settings.wire_speed(),
            heartbeat: settings.heartbeat,
            most_waiting: MOST_PLACES,
            seed: runtime::random::bytes::<1>()[0],
        });
        let machine = PartMachine { session, began: clock::now() };
        let buffer = vec![0; wire.most_read()];
        let driver = LineDriver { machine, wire, jobs: taken, news, ends: BTreeMap::new(), buffer };
        tokio::spawn(async move {
            driver.run().await;
            drop(key);
        });
        Self { jobs, state, places: PartPlaces::default(), next: AtomicU64::new(1) }
    }

    /// News of the part, now and later.
    pub fn state(&self) -> watch::Receiver<LineState> {
        self.state.clone()
    }

    /// Hands a call in.
    pub fn call(&self, call: LineCall) -> Result<PendingCall, CallEnd> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, end) = oneshot::channel();
        let LineCall { tool, row, content, is_repeatable, work, caller } = call;
        let place = self.places.reserve(caller.as_ref()).map_err(CallEnd::NeverRan)?;
        let order = Order { id, tool, row, content, is_repeatable, work };
        match self.jobs.try_send(LineJob::Call(order, Waiter { done, _place: place })) {
            Ok(()) => Ok(PendingCall { id, end }),
            Err(mpsc::error::TrySendError::Full(_)) => Err(CallEnd::NeverRan(NeverRan::Full { waiting: MOST_PLACES })),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(CallEnd::NeverRan(NeverRan::Silent)),
        }
    }

    /// Takes a call back, if it has not left.
    pub async fn cancel(&self, id: u64) {
        drop(self.jobs.send(LineJob::Cancel(id)).await);
    }

    /// Ends the conversation.
    pub async fn close(&self) {
        drop(self.jobs.send(LineJob::Close).await);
        let mut state = self.state.clone();
        // An error says that the task is gone.
        drop(state.wait_for(|state| state.over.is_some()).await);
    }
}

impl PendingCall {
    /// Name of the call on its line.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the end.
    pub async fn finished(&mut self) -> CallEnd {
        (&mut self.end).await.unwrap_or(CallEnd::Unknown(Unknown::WireLost))
    }
}

/// A conversation with the clock of this machine.
#[derive(Debug)]
struct PartMachine {
    session: PartSession,
    began: Instant,
}

impl PartMachine {
    fn since(&self, now: Now) -> Duration {
        now.instant.saturating_duration_since(self.began)
    }
}

impl Machine for PartMachine {
    type Output = PartStep;

    fn handle_timeout(&mut self, now: Now) {
        self.session.pass(self.since(now));
    }

    fn poll_output(&mut self) -> Option<PartStep> {
        self.session.step()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let due = self.began.checked_add(self.session.due()?)?;
        Some((due, "the next question to a part"))
    }
}

/// Owner of the wire.
struct LineDriver {
    machine: PartMachine,
    wire: OpenWire,
    jobs: mpsc::Receiver<LineJob>,
    news: watch::Sender<LineState>,
    ends: BTreeMap<u64, Waiter>,
    buffer: Vec<u8>,
}

enum LineInput {
    Bytes(usize),
    Overlong { seq: u8 },
    Job(LineJob),
}

impl LineDriver {
    async fn run(mut self) {
        self.machine.session.open(Duration::ZERO);
        let why = drive::drive(&mut self, &SystemClock).await;
        self.machine.session.close();
        while let Some(step) = self.machine.session.step() {
            self.note(step);
        }
        // What was handed in and not taken any more has not run.
        self.jobs.close();
        while let Ok(job) = self.jobs.try_recv() {
            if let LineJob::Call(_, waiter) = job {
                drop(waiter.done.send(CallEnd::NeverRan(NeverRan::Silent)));
            }
        }
        self.wire.close().await;
        tracing::debug!(why, "the line of a part has ended");
        self.news.send_modify(|state| state.over = Some(why));
    }

    /// Carries out all steps but bytes.
    fn note(&mut self, step: PartStep) {
        match step {
            PartStep::Send(_) => {}
            PartStep::Done { id, outcome } => {
                // An error says that nobody waits any more.
                drop(self.ends.remove(&id).map(|waiter| waiter.done.send(outcome)));
            }
            PartStep::Table(table) => self.news.send_modify(|state| state.table = Some(table)),
            PartStep::Standing(standing) => {
                let tally = self.machine.session.tally();
                self.news.send_modify(|state| (state.standing, state.tally) = (Some(standing), tally));
            }
        }
    }
}

impl Driver for LineDriver {
    type Machine = PartMachine;
    type Input = LineInput;
    type End = String;

    fn machine(&mut self) -> &mut PartMachine {
        &mut self.machine
    }

    async fn next(&mut self) -> Result<LineInput, String> {
        tokio::select! {
            read = self.wire.read(&mut self.buffer) => match read {
                Ok(WireRead::Bytes(0)) => Err("the port was unplugged".into()),
                Ok(WireRead::Bytes(length)) => Ok(LineInput::Bytes(length)),
                Ok(WireRead::Overlong { seq }) => Ok(LineInput::Overlong { seq }),
                Err(error) => Err(self.wire.lost(&error)),
            },
            job = self.jobs.recv() => Ok(LineInput::Job(job.unwrap_or(LineJob::Close))),
        }
    }

    async fn handle(&mut self, now: Now, input: LineInput) -> Result<(), String> {
        let since = self.machine.since(now);
        match input {
            LineInput::Bytes(length) => self.machine.session.received(self.buffer.get(..length).unwrap_or_default(), since),
            LineInput::Overlong { seq } => self.machine.session.received_overlong(seq, since),
            LineInput::Job(LineJob::Call(order, waiter)) => {
                self.ends.insert(order.id, waiter);
                self.machine.session.call(order, since);
            }
            LineInput::Job(LineJob::Cancel(id)) => self.machine.session.cancel(id),
            LineInput::Job(LineJob::Close) => return Err("the line was closed".into()),
        }
        Ok(())
    }

    async fn carry(&mut self, _: Now, step: PartStep) -> Result<(), String> {
        if let PartStep::Send(bytes) = &step {
            return match tokio::time::timeout(WRITE, self.wire.write_all(bytes)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(self.wire.lost(&error)),
                Err(_) => Err(self.wire.stuck().into()),
            };
        }
        let standing = if let PartStep::Standing(standing) = &step { Some(*standing) } else { None };
        self.note(step);
        match standing {
            Some(PartStanding::Silent) => Err(silent(&self.machine.session)),
            Some(PartStanding::Babbling) => Err(babbling(self.machine.session.tally())),
            Some(PartStanding::Opening | PartStanding::Alive) | None => Ok(()),
        }
    }
}

fn silent(session: &PartSession) -> String {
    let why = match (session.tally().echoes, session.profile().lists_tools()) {
        (0, true) if session.profile() == Profile::Mqtt => {
            "is it connected to the broker, under this topic, and does the broker's ACL let the gate publish and hear there?"
        }
        (0, true) => "is it plugged in, at this speed, and does its firmware run?",
        // Older firmware drops the question, and a question that counts could have a late call run again.
        (0, false) => "is it plugged in, at this speed, and does its firmware answer a heartbeat with the number 0 (docs/stubs.md)?",
        (_, true) => "the wire only brings back what is sent: are its two lines joined?",
        (_, false) => {
            "the wire brings back what is sent: are its two lines joined? If all parts on it hear each other, does the firmware answer a \
             heartbeat with the number 0 (docs/stubs.md)?"
        }
    };
    format!("the part does not answer: {why}")
}

fn babbling(tally: WireTally) -> String {
    let WireTally { noise, nonsense, stray, echoes, .. } = tally;
    let counted = format!("{noise} pieces of noise, {nonsense} messages without sense, {stray} that nobody asked for, {echoes} echoes");
    format!("nothing with sense comes from the part ({counted}): check the speed, the profile and the wire")
}

/// Waits until a part has answered. The error says why a line has ended instead.
pub async fn answered(line: &Arc<PartLine>) -> Result<LineState, String> {
    let mut state = line.state();
    let found = state.wait_for(|state| state.over.is_some() || state.standing == Some(PartStanding::Alive)).await;
    let state = found.map_err(|_| "the line was closed".to_owned())?.clone();
    match state.over {
        Some(why) => Err(why),
        None => Ok(state),
    }
}
