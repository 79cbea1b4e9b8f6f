//! The gate's way into a room: drives the machine that asks participants for lists and calls them, from the gate's own seat. Does not read
//! messages: `room_proto::calling` does.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use banyan_model::Now;
use bytes::Bytes;
use config::resolved::ROOM_SEGMENT;
use config::resolved::gate_seat;
use mcp_proto::catalog::Kind;
use mcp_proto::client::restore_token;
use mcp_proto::envelope::{self, Answer, Notification};
use room_proto::calling::{Bounds, CallAnswer, Failure, Output, RoomCaller};
use room_proto::name::{ParticipantId, Topic};
use room_proto::sitting::CallId;
use room_proto::voice::Call;
use runtime::clock::SystemClock;
use runtime::drive::{self, drive};
use runtime::random;
use tokio::sync::{mpsc, oneshot};

use crate::Rooms;
use crate::chair::Chair;
use crate::mounted::offers::kind_of;
use crate::mounted::{RoomWork, Wish, refused};
use call::tree::asks;
use call::tree::back::Back;
use call::tree::port::UpstreamError;

/// Simultaneous calls at one participant: slow ones fill no places of others.
const CALLS: usize = 64;

/// A stay of the gate in a mounted room.
pub struct Passage<'a> {
    rooms: &'a Arc<Rooms>,
    topic: &'a Topic,
    calling: RoomCaller,
    wanted: mpsc::Sender<RoomWork>,
    queue: mpsc::Receiver<RoomWork>,
    calls: HashMap<CallId, Underway>,
    chair: &'a mut Chair,
}

/// Input of the gate's place in the room.
pub enum PassageInput {
    Message(Bytes),
    Wanted(RoomWork),
}

impl drive::Driver for Passage<'_> {
    type Machine = RoomCaller;
    type Input = PassageInput;
    type End = ();

    fn machine(&mut self) -> &mut RoomCaller {
        &mut self.calling
    }

    async fn next(&mut self) -> Result<PassageInput, ()> {
        tokio::select! {
            message = self.chair.next() => message.map(PassageInput::Message).ok_or(()),
            Some(wanted) = self.queue.recv() => Ok(PassageInput::Wanted(wanted)),
        }
    }

    async fn handle(&mut self, now: Now, input: PassageInput) -> Result<(), ()> {
        match input {
            PassageInput::Message(message) => self.calling.handle_message(now, &message),
            PassageInput::Wanted(wanted) => self.handle_work(now, wanted),
        }
        Ok(())
    }

    async fn carry(&mut self, _: Now, output: Output) -> Result<(), ()> {
        match output {
            Output::Answered { call, answer: CallAnswer::Error(error) } => self.end_call(call, |_, _| Ok(Answer::Error(error))),
            Output::Answered { call, answer: CallAnswer::Result(result) } => self.end_call(call, |_, _| Ok(Answer::Result(result.into()))),
            Output::Failed { call, why } => self.end_call(call, |to, topic| failed(&why, to, topic)),
            Output::Notified { call, method, params } => self.notify(call, method, params),
            Output::Offered { id, kind, entries } => {
                let kind = kind_of(kind);
                if self.rooms.mounted.offered(self.topic, &id, kind, &entries) {
                    self.tell(&[kind]);
                }
            }
            Output::Send(message) => {
                if !self.chair.voice.say(message).await {
                    return Err(());
                }
            }
        }
        Ok(())
    }
}

struct Underway {
    /// Called participant.
    to: String,
    back: Option<Arc<Back>>,
    token: Option<Bytes>,
    reply: oneshot::Sender<Result<Answer, UpstreamError>>,
}

impl<'a> Passage<'a> {
    /// Starts from a fresh chair, in a room with these parts of the gate.
    pub fn new<'b>(rooms: &'a Arc<Rooms>, topic: &'a Topic, chair: &'a mut Chair, seats: impl Iterator<Item = &'b ParticipantId>) -> Self {
        let own: BTreeSet<ParticipantId> = seats.cloned().chain([gate_seat()]).collect();
        let bounds = Bounds { own, calls: CALLS, entries: rooms.gate.limits().tools_per_mount, message_bytes: chair.longest };
        let calling = RoomCaller::new(bounds, u128::from_ne_bytes(random::bytes()));
        let (wanted, queue) = rooms.mounted.open(topic);
        Self { rooms, topic, calling, wanted, queue, calls: HashMap::new(), chair }
    }

    /// Runs until the chair is lost.
    pub async fn run(mut self) {
        drive(&mut self, &SystemClock).await;
    }

    fn handle_work(&mut self, now: Now, wanted: RoomWork) {
        match wanted {
            RoomWork::Call(wish) => {
                let Wish { call, to, method, params, back, token, reply } = *wish;
                self.calling.handle_call(now, call, &to, Call { method, params: Some(&params) });
                self.calls.insert(call, Underway { to, back, token, reply });
            }
            RoomWork::Cancel(call) => {
                self.calls.remove(&call);
                self.calling.handle_cancel(now, call, "its caller has cancelled it");
            }
        }
    }

    fn end_call(&mut self, call: CallId, answer: impl FnOnce(&str, &Topic) -> Result<Answer, UpstreamError>) {
        let Some(Underway { to, reply, .. }) = self.calls.remove(&call) else { return };
        // Who has cancelled it waits for nothing.
        drop(reply.send(answer(&to, self.topic)));
    }

    fn notify(&self, call: CallId, method: String, params: Bytes) {
        let Some(Underway { back: Some(back), token, .. }) = self.calls.get(&call) else { return };
        let whole = envelope::notification(&method, &params);
        let notification = Notification { method, params: params.into(), whole };
        match (notification.method.as_str(), token) {
            ("notifications/progress", Some(token)) => asks::pass_on(back, &restore_token(&notification, token)),
            // It is a sign of life all the same.
            ("notifications/progress", None) => back.stir(),
            _ => asks::pass_on(back, &notification),
        }
    }

    /// Renews the tree, and notifies clients.
    fn tell(&self, kinds: &[Kind]) {
        if let Some(mount) = self.rooms.gate.mounts.find(ROOM_SEGMENT) {
            mount.connections.dirty(kinds);
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if self.rooms.mounted.close(self.topic, &self.wanted) {
            self.tell(&Kind::ALL);
        }
    }
}

/// Explains a call without an answer. A call not made can be repeated; the effect of any other is not guessed.
fn failed(why: &Failure, to: &str, topic: &Topic) -> Result<Answer, UpstreamError> {
    let text = || format!("the participant {to:?} of the room {:?}: {why}", topic.as_str());
    match why {
        Failure::Absent | Failure::Refused(_) => Err(UpstreamError::Unreachable(text())),
        Failure::Busy { .. } | Failure::GivenUp(_) => Ok(refused(-32000, &text())),
        Failure::Left => Err(UpstreamError::Lost(text())),
        Failure::TooLong { .. } | Failure::Unsaid(_) => Ok(refused(-32602, &text())),
        Failure::Unreadable(_) => Err(UpstreamError::Malformed(text())),
    }
}
