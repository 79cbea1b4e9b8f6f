//! A server's seat: drives the deciding machine, and runs the calls beside it. Does not read messages, nor choose among several
//! fulfilments: `room_proto::sitting` does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use banyan_model::{Now, Segment};
use bytes::Bytes;
use config::resolved::gate_seat;
use mcp_proto::envelope;
use room_proto::room::{Also, Preferences, Routing};
use room_proto::sitting::{Bounds, CallId, Output, SeatedServer, ServerCall};
use room_proto::voice::Answer;
use runtime::clock::SystemClock;
use runtime::drive::{self, drive};
use runtime::random;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};

use crate::Rooms;
use crate::chair::Chair;
use crate::table::Sits;
use crate::table::asking::{CallOutcome, ParticipantCall, caller, shown_error};
use crate::table::lists::Lists;
use call::way::error::CallError;
use call::words::cancel::Cancel;
use call::words::seated::{RoomAgreement, RoomOrigin, RoomProposal};

/// Capabilities of a server.
pub const MAY: [&str; 2] = ["mcp/response:*", "mcp/request:notifications/*"];
/// The whole room, so that the server sees the first request for a proposal, its own answers included.
pub const PREFERENCES: Preferences = Preferences { routing: Routing::All, echo: true, also: Also::ALL, history: 0 };
/// Simultaneous calls at a seat, and those of one participant.
const CALLS: usize = 64;
const OF_ONE: usize = 16;
/// Proposals to a seat, waiting at the gate.
const PROPOSALS: usize = 100;
/// Patience of a proposal at a gate without approvals.
const EXPIRY: Duration = Duration::from_secs(300);
/// News of calls not passed on yet.
const NEWS: usize = 256;

/// A server with a seat in a room.
pub struct Seat<'a> {
    sits: &'a Sits,
    chair: Chair,
    /// `None`: the whole tree.
    mount: Option<Segment>,
    sitting: SeatedServer,
    /// Lists announced last.
    lists: Lists,
    calls: HashMap<CallId, RunningCall>,
    tasks: JoinSet<CallOutcome>,
    ids: HashMap<Id, CallId>,
    news: mpsc::Receiver<News>,
    tell: mpsc::Sender<News>,
}

/// News of a call before its end.
pub enum News {
    /// An approval of the proposal.
    Agreed(CallId, RoomAgreement),
    /// A notification of the server: a whole message.
    Said(CallId, Bytes),
}

struct RunningCall {
    cancel: Cancel,
    seated: Arc<RoomOrigin>,
    /// Releases a proposed call.
    fulfilled: Option<oneshot::Sender<()>>,
}

/// Input of the seat.
pub enum SeatInput {
    Ended(Id, CallOutcome),
    /// Notifications due after a change of the tree.
    Lists(Vec<&'static str>),
    Message(Bytes),
    News(News),
}

impl drive::Driver for Seat<'_> {
    type Machine = SeatedServer;
    type Input = SeatInput;
    type End = ();

    fn machine(&mut self) -> &mut SeatedServer {
        &mut self.sitting
    }

    async fn next(&mut self) -> Result<SeatInput, ()> {
        let rooms = Arc::clone(self.rooms());
        let changed = rooms.gate.mounts.changed.notified();
        tokio::pin!(changed);
        // What changes from here on is not missed, and what did before is looked at now.
        changed.as_mut().enable();
        let methods = self.lists.follow(&rooms.gate.mounts.tree.load(), self.mount.as_ref());
        if !methods.is_empty() {
            return Ok(SeatInput::Lists(methods));
        }
        tokio::select! {
            message = self.chair.next() => message.map(SeatInput::Message).ok_or(()),
            Some(news) = self.news.recv() => Ok(SeatInput::News(news)),
            Some(ended) = self.tasks.join_next_with_id() => Ok(match ended {
                Ok((id, ended)) => SeatInput::Ended(id, ended),
                Err(panicked) => SeatInput::Ended(panicked.id(), Err(CallError::Cancelled)),
            }),
            () = changed => Ok(SeatInput::Lists(self.lists.follow(&rooms.gate.mounts.tree.load(), self.mount.as_ref()))),
        }
    }

    async fn handle(&mut self, now: Now, input: SeatInput) -> Result<(), ()> {
        match input {
            SeatInput::Ended(id, ended) => self.ended(now, id, &ended),
            SeatInput::Lists(methods) => methods.into_iter().for_each(|method| self.sitting.handle_change(now, method)),
            SeatInput::Message(message) => self.sitting.handle_message(now, &message),
            SeatInput::News(news) => self.hear(now, news),
        }
        Ok(())
    }

    async fn carry(&mut self, now: Now, output: Output) -> Result<(), ()> {
        match output {
            Output::Approved(call) => {
                let fulfilled = self.calls.get_mut(&call).and_then(|running| running.fulfilled.take());
                // One that has ended meanwhile has said why.
                fulfilled.map_or(Ok(()), |fulfilled| fulfilled.send(())).unwrap_or_default();
            }
            Output::Call(asked) => {
                let seated = RoomOrigin::asked(self.room());
                self.begin(now, asked, seated, None);
            }
            Output::Cancel { call, why } => {
                if let Some(running) = self.calls.remove(&call) {
                    running.cancel_with(why);
                }
            }
            Output::Dropped { from, why } => {
                let (room, seat) = (self.sits.topic.as_str(), self.sits.id.as_str());
                if self.sits.is_counting {
                    tracing::warn!(room, seat, from, %why, "a message in a room did not hold and was dropped");
                    self.chair.voice.note_mismatched(&from);
                }
            }
            Output::Propose(asked) => self.propose(now, asked),
            // Where the room is over, the chair says so.
            Output::Send(message) => _ = self.chair.voice.say(message).await,
            Output::SendAsGate(message) => _ = self.sits.gate.say(message).await,
        }
        Ok(())
    }
}

impl<'a> Seat<'a> {
    /// Takes a seat in a room, with bounds on its calls.
    pub fn new(sits: &'a Sits, chair: Chair, mount: Option<Segment>) -> Self {
        let bounds = Bounds {
            room: sits.topic.as_str().to_owned(),
            name: sits.id.clone(),
            calls: CALLS,
            of_one: OF_ONE,
            proposals: PROPOSALS,
            message_bytes: chair.longest,
        };
        let expiry = sits.rooms.gate.config.load().gate.as_deref().map_or(EXPIRY, |gate| gate.expires);
        let sitting = SeatedServer::new(bounds, gate_seat(), expiry, u128::from_ne_bytes(random::bytes()));
        let (tell, news) = mpsc::channel(NEWS);
        let (calls, tasks, ids) = (HashMap::new(), JoinSet::new(), HashMap::new());
        let lists = Lists::of_tree(&sits.rooms.gate.mounts.tree.load(), mount.as_ref());
        Self { sits, chair, mount, sitting, lists, calls, tasks, ids, news, tell }
    }

    /// Runs until the chair is lost.
    pub async fn run(mut self) {
        drive(&mut self, &SystemClock).await;
    }

    fn rooms(&self) -> &Arc<Rooms> {
        &self.sits.rooms
    }

    fn hear(&mut self, now: Now, news: News) {
        match news {
            News::Agreed(call, by) => self.sitting.handle_approval(now, call, by.object().as_bytes()),
            News::Said(call, whole) => {
                if let Ok(envelope::Message::Notification(said)) = envelope::Message::parse(&whole, mcp_proto::json::Duplicates::RefuseTop)
                {
                    self.sitting.handle_notification(now, call, &said.method, &said.params);
                }
            }
        }
    }

    fn ended(&mut self, now: Now, id: Id, ended: &CallOutcome) {
        // What it said before it ended comes first.
        while let Ok(news) = self.news.try_recv() {
            self.hear(now, news);
        }
        let Some(call) = self.ids.remove(&id) else { return };
        // What was let go of is nobody's to answer.
        let Some(running) = self.calls.remove(&call) else { return };
        if running.fulfilled.is_none() {
            return match ended {
                Ok(envelope::Answer::Result(result)) => self.sitting.handle_answer(now, call, Answer::Result(result)),
                Ok(envelope::Answer::Error(error)) => self.sitting.handle_answer(now, call, Answer::Error(error)),
                Err(error) => self.sitting.handle_answer(now, call, Answer::Error(&shown_error(error).object())),
            };
        }
        match ended {
            Err(CallError::NotApproved { standing, why, .. }) => {
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                self.sitting.handle_rejection(now, call, &format!("{} at the gate{why}", standing.as_str()));
            }
            Err(error) => self.sitting.handle_left(now, call, &shown_error(error).message),
            Ok(_) => self.sitting.handle_left(now, call, "nothing of it has to be approved"),
        }
    }

    fn room(&self) -> Arc<str> {
        self.sits.topic.as_str().into()
    }

    /// Lets a proposal wait at a gate with approvals. At any other the room decides alone.
    fn propose(&mut self, now: Now, asked: ServerCall) {
        if self.rooms().gate.config.load().gate.is_none() {
            return self.sitting.handle_unheld(asked.call);
        }
        let (seated, proposed) = RoomOrigin::proposed(self.room());
        self.begin(now, asked, seated, Some(proposed));
    }

    /// Begins a call, in a task of its own.
    fn begin(&mut self, now: Now, asked: ServerCall, seated: Arc<RoomOrigin>, proposed: Option<RoomProposal>) {
        let Some(entered) = self.rooms().who.is(&self.sits.topic, &asked.by) else {
            return self.sitting.handle_answer(now, asked.call, Answer::Error(&shown_error(&CallError::Cancelled).object()));
        };
        let caller = caller(self.rooms(), &entered, self.mount.clone());
        let cancel = Cancel::default();
        let (call, (agreed, fulfilled)) = (asked.call, proposed.map(|ends| (ends.agreed, ends.fulfilled)).unzip());
        let rooms = Arc::clone(self.rooms());
        let asking = ParticipantCall { rooms, asked, caller, seated: Arc::clone(&seated), cancel: cancel.clone(), tell: self.tell.clone() };
        let task = self.tasks.spawn(asking.run(agreed));
        self.ids.insert(task.id(), call);
        self.calls.insert(call, RunningCall { cancel, seated, fulfilled });
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        for (_, running) in self.calls.drain() {
            running.cancel_with(format!("the seat {:?} in the room {:?} is gone", self.sits.id.as_str(), self.sits.topic.as_str()));
        }
        // They end by themselves, each in its own way.
        self.tasks.detach_all();
    }
}

impl RunningCall {
    fn cancel_with(self, why: String) {
        self.seated.end_proposal(why);
        self.cancel.cancel();
    }
}
