//! One server's seat: drives the machine that decides what is called for whom, and runs the calls beside it. What a message means, and
//! which of several fulfilments counts, is not decided here but in `room_proto::sitting`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::Segment;
use bytes::Bytes;
use config::resolved::gate_seat;
use mcp_proto::envelope;
use room_proto::room::{Also, Now, Preferences, Routing};
use room_proto::sitting::{Asked, Bounds, CallId, Output, Sitting};
use room_proto::voice::Answer;
use runtime::random;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};

use crate::Rooms;
use crate::chair::Chair;
use crate::table::Sits;
use crate::table::asking::{Asking, Ended, caller, told};
use crate::table::lists::Lists;
use call::way::error::CallError;
use call::way::seated::{Agreed, Proposed, Seated};
use call::words::cancel::Cancel;

/// What a server may send.
pub const MAY: [&str; 2] = ["mcp/response:*", "mcp/request:notifications/*"];
/// All of the room, so that it sees which request was the first to fulfil a proposal, its own answers included.
pub const PREFERENCES: Preferences = Preferences { routing: Routing::All, echo: true, also: Also::ALL, history: 0 };
/// Calls under way at one seat, and those of one participant.
const CALLS: usize = 64;
const OF_ONE: usize = 16;
/// Proposals to one seat that wait at the gate.
const PROPOSALS: usize = 100;
/// How long a proposal waits at a gate where nothing does.
const EXPIRY: Duration = Duration::from_secs(300);
/// What calls have to say that is not passed on yet.
const NEWS: usize = 256;

/// A server that sits in a room.
pub struct Seat<'a> {
    sits: &'a Sits,
    chair: Chair,
    /// `None`: the whole tree.
    mount: Option<Segment>,
    sitting: Sitting,
    /// What its participants were last told that there is.
    lists: Lists,
    calls: HashMap<CallId, Running>,
    tasks: JoinSet<Ended>,
    ids: HashMap<Id, CallId>,
    news: mpsc::Receiver<News>,
    tell: mpsc::Sender<News>,
}

/// What a call has to say before it ends.
pub enum News {
    /// People have agreed to what is proposed.
    Agreed(CallId, Agreed),
    /// The server notifies of something: a whole message.
    Said(CallId, Bytes),
}

struct Running {
    cancel: Cancel,
    seated: Arc<Seated>,
    /// Lets a proposed call go out.
    fulfilled: Option<oneshot::Sender<()>>,
}

impl<'a> Seat<'a> {
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
        let sitting = Sitting::new(bounds, gate_seat(), expiry, u128::from_ne_bytes(random::bytes()));
        let (tell, news) = mpsc::channel(NEWS);
        let (calls, tasks, ids) = (HashMap::new(), JoinSet::new(), HashMap::new());
        let lists = Lists::of(&sits.rooms.gate.mounts.tree.load(), mount.as_ref());
        Self { sits, chair, mount, sitting, lists, calls, tasks, ids, news, tell }
    }

    /// Until its chair is taken away.
    pub async fn run(mut self) {
        let rooms = Arc::clone(self.rooms());
        loop {
            let changed = rooms.gate.mounts.changed.notified();
            tokio::pin!(changed);
            // What changes from here on is not missed, and what did before is looked at now.
            changed.as_mut().enable();
            for method in self.lists.follow(&rooms.gate.mounts.tree.load(), self.mount.as_ref()) {
                self.sitting.handle_change(SystemTime::now(), method);
            }
            self.carry_out().await;
            let wake = self.sitting.poll_timeout().map(|(at, _)| tokio::time::Instant::from_std(at));
            let due = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = self.chair.next() => match message {
                    Some(message) => self.sitting.handle_message(now(), &message),
                    None => return,
                },
                Some(news) = self.news.recv() => self.hear(news),
                Some(ended) = self.tasks.join_next_with_id() => {
                    let (id, ended) = match ended {
                        Ok((id, ended)) => (id, ended),
                        Err(panicked) => (panicked.id(), Err(CallError::Cancelled)),
                    };
                    self.ended(id, &ended);
                }
                () = due => self.sitting.handle_timeout(now()),
                () = changed => {}
            }
        }
    }

    fn rooms(&self) -> &Arc<Rooms> {
        &self.sits.rooms
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Agreed(call, by) => self.sitting.handle_approval(SystemTime::now(), call, by.object().as_bytes()),
            News::Said(call, whole) => {
                if let Ok(envelope::Message::Notification(said)) = envelope::Message::parse(&whole, mcp_proto::json::Duplicates::RefuseTop)
                {
                    self.sitting.handle_notification(SystemTime::now(), call, &said.method, &said.params);
                }
            }
        }
    }

    fn ended(&mut self, id: Id, ended: &Ended) {
        // What it said before it ended comes first.
        while let Ok(news) = self.news.try_recv() {
            self.hear(news);
        }
        let Some(call) = self.ids.remove(&id) else { return };
        // What was let go of is nobody's to answer.
        let Some(running) = self.calls.remove(&call) else { return };
        let at = SystemTime::now();
        if running.fulfilled.is_none() {
            return match ended {
                Ok(envelope::Answer::Result(result)) => self.sitting.handle_answer(at, call, Answer::Result(result)),
                Ok(envelope::Answer::Error(error)) => self.sitting.handle_answer(at, call, Answer::Error(error)),
                Err(error) => self.sitting.handle_answer(at, call, Answer::Error(&told(error).object())),
            };
        }
        match ended {
            Err(CallError::NotApproved { standing, why, .. }) => {
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                self.sitting.handle_rejection(at, call, &format!("{} at the gate{why}", standing.as_str()));
            }
            Err(error) => self.sitting.handle_left(at, call, &told(error).message),
            Ok(_) => self.sitting.handle_left(at, call, "nothing of it has to be approved"),
        }
    }

    async fn carry_out(&mut self) {
        while let Some(output) = self.sitting.poll_output() {
            let is_open = match output {
                Output::Approved(call) => {
                    let fulfilled = self.calls.get_mut(&call).and_then(|running| running.fulfilled.take());
                    // One that has ended meanwhile has said why.
                    fulfilled.map_or(Ok(()), |fulfilled| fulfilled.send(())).unwrap_or_default();
                    true
                }
                Output::Call(asked) => {
                    let seated = Seated::asked(self.room());
                    self.begin(asked, seated, None);
                    true
                }
                Output::Cancel { call, why } => {
                    if let Some(running) = self.calls.remove(&call) {
                        running.end(why);
                    }
                    true
                }
                Output::Dropped { from, why } => {
                    let (room, seat) = (self.sits.topic.as_str(), self.sits.id.as_str());
                    tracing::warn!(room, seat, from, %why, "a message in a room did not hold and was dropped");
                    true
                }
                Output::Propose(asked) => {
                    self.propose(asked);
                    true
                }
                Output::Send(message) => self.chair.voice.say(message).await,
                Output::SendAsGate(message) => {
                    self.sits.gate.say(message).await;
                    true
                }
            };
            if !is_open {
                return;
            }
        }
    }

    fn room(&self) -> Arc<str> {
        self.sits.topic.as_str().into()
    }

    /// A proposal waits at the gate where calls can. Where none ever does, those in the room decide alone.
    fn propose(&mut self, asked: Asked) {
        if self.rooms().gate.config.load().gate.is_none() {
            return self.sitting.handle_unheld(asked.call);
        }
        let (seated, proposed) = Seated::proposed(self.room());
        self.begin(asked, seated, Some(proposed));
    }

    /// Begins a call, in a task of its own.
    fn begin(&mut self, asked: Asked, seated: Arc<Seated>, proposed: Option<Proposed>) {
        let Some(entered) = self.rooms().who.is(&self.sits.topic, &asked.by) else {
            return self.sitting.handle_answer(SystemTime::now(), asked.call, Answer::Error(&told(&CallError::Cancelled).object()));
        };
        let caller = caller(self.rooms(), &entered, self.mount.clone());
        let cancel = Cancel::default();
        let (call, (agreed, fulfilled)) = (asked.call, proposed.map(|ends| (ends.agreed, ends.fulfilled)).unzip());
        let rooms = Arc::clone(self.rooms());
        let asking = Asking { rooms, asked, caller, seated: Arc::clone(&seated), cancel: cancel.clone(), tell: self.tell.clone() };
        let task = self.tasks.spawn(asking.run(agreed));
        self.ids.insert(task.id(), call);
        self.calls.insert(call, Running { cancel, seated, fulfilled });
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        for (_, running) in self.calls.drain() {
            running.end(format!("the seat {:?} in the room {:?} is gone", self.sits.id.as_str(), self.sits.topic.as_str()));
        }
        // They end by themselves, each in its own way.
        self.tasks.detach_all();
    }
}

impl Running {
    fn end(self, why: String) {
        self.seated.end(why);
        self.cancel.cancel();
    }
}

fn now() -> Now {
    Now { instant: Instant::now(), wall: SystemTime::now() }
}
