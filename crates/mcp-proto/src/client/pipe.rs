//! Many calls over one pipe of whole messages in both directions: stdio, and HTTP+SSE.
//!
//! Correlates ids, separates progress tokens of different callers, and carries a server's own requests.
//! Does not choose the client for a server's question, and sets no time limit on a call. A pipe is no `Machine`: it has no timer, and while
//! messages wait for a slow server (`is_behind`), news do not.

mod broken;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use self::broken::BrokenLine;
use super::handshake::{DISCOVER_ID, Handshake, HandshakeError, INITIALIZE_ID, Identity, Negotiated, Step};
use crate::envelope::{self, Answer, EnvelopeError, Message, Notification, Request, Response};
use crate::era::key;
use crate::json::{Duplicates, Members, Object};
use crate::splice::{self, Change};
use banyan_model::Era;

/// Most messages, and most bytes of messages, waiting for a server that reads none.
const MOST_WAITING: usize = 1024;
const MOST_WAITING_BYTES: usize = 64 << 20;

/// Id of a call on a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// The raw id of a server's question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskKey(pub Bytes);

/// News for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A call has ended.
    Answered(CallKey, Answer),
    /// A question of the server to its client.
    Asked(AskKey, Request),
    /// The server no longer wants the answer.
    AskWithdrawn(AskKey),
    /// An unreadable answer to a call: the reason, and the beginning of the line.
    Garbled(CallKey, String),
    /// The handshake failed; the pipe is of no use.
    Failed(HandshakeError),
    /// A line that is no message. The reason and the beginning of the line.
    Noise(String),
    /// A notification and its call, if recognisable, with the caller's own token put back.
    Notified(Option<CallKey>, Notification),
    /// The handshake is done.
    Ready(Negotiated),
}

#[derive(Debug)]
struct InFlight {
    token: Option<Bytes>,
}

/// A pipe to one server.
#[derive(Debug)]
pub struct Pipe {
    handshake: Option<Handshake>,
    awaited: u64,
    next_id: u64,
    calls: BTreeMap<u64, InFlight>,
    asks: BTreeSet<AskKey>,
    transmits: VecDeque<Bytes>,
    events: VecDeque<Event>,
}

impl Pipe {
    /// Opens the pipe: the first message to send is ready at once.
    pub fn new(choice: Option<Era>, identity: Identity) -> Self {
        let mut handshake = Handshake::new(choice, identity);
        let first = handshake.start();
        let mut pipe = Self {
            handshake: Some(handshake),
            awaited: DISCOVER_ID,
            next_id: INITIALIZE_ID + 1,
            calls: BTreeMap::new(),
            asks: BTreeSet::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        };
        pipe.step(first);
        pipe
    }

    /// A whole message came from the server.
    pub fn handle_message(&mut self, text: &Bytes) {
        match Message::parse(text, Duplicates::RefuseDeep) {
            Ok(Message::Notification(n)) => self.notified(n),
            Ok(Message::Request(r)) => self.asked(r),
            Ok(Message::Response(r)) => self.answered(r),
            Err(e) => self.unreadable(text, &e),
        }
    }

    /// Notes that the current probe was not answered in time.
    pub fn handle_silence(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            let step = handshake.handle_refusal(HandshakeError::Silent);
            self.step(step);
        }
    }

    /// Begins a call. A progress token in `_meta` is replaced by the pipe's own.
    pub fn handle_call(&mut self, method: &str, params: &Object) -> CallKey {
        let id = self.next_id;
        self.next_id += 1;
        let (params, token) = own_token(params, id);
        self.transmits.push_back(envelope::request(itoa::Buffer::new().format(id).as_bytes(), method, &params));
        self.calls.insert(id, InFlight { token });
        CallKey(id)
    }

    /// The caller no longer wants the answer. `false` when the call is already over.
    pub fn handle_cancel(&mut self, call: CallKey, reason: &str) -> bool {
        if self.calls.remove(&call.0).is_none() {
            return false;
        }
        let params = format!("{{\"requestId\":{},\"reason\":{}}}", call.0, json::quote(reason));
        self.transmits.push_back(envelope::notification("notifications/cancelled", params.as_bytes()));
        true
    }

    /// A message longer than allowed was thrown away. It may have answered any of the calls in flight, and these are over.
    pub fn handle_too_long(&mut self) -> Vec<CallKey> {
        std::mem::take(&mut self.calls).into_keys().map(CallKey).collect()
    }

    /// Answers a server's question, unless answered or withdrawn before.
    pub fn handle_reply(&mut self, ask: &AskKey, answer: &Answer) {
        if self.asks.remove(ask) {
            self.transmits.push_back(envelope::response(&ask.0, answer));
        }
    }

    /// Sends a whole message that expects no answer.
    pub fn handle_notification(&mut self, message: Bytes) {
        self.transmits.push_back(message);
    }

    /// Tells if so much waits for the server that nothing more should be read or begun there.
    pub fn is_behind(&self) -> bool {
        self.transmits.len() >= MOST_WAITING || self.transmits.iter().map(Bytes::len).sum::<usize>() >= MOST_WAITING_BYTES
    }

    /// The next whole message for the server.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        self.transmits.pop_front()
    }

    /// Gives the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Numbers the unanswered probe for the stateless era, from 1: some servers end, or stay silent, on a probe. The time limit of
    /// a probe begins when its number appears here.
    pub fn probe(&self) -> Option<u32> {
        self.handshake.as_ref().and_then(Handshake::probe)
    }

    /// Tells if a probe for the stateless era is unanswered.
    pub fn is_probing(&self) -> bool {
        self.probe().is_some()
    }

    /// Tells if the handshake is over.
    pub fn is_ready(&self) -> bool {
        self.handshake.is_none()
    }

    /// Lists the unanswered calls.
    pub fn in_flight(&self) -> impl Iterator<Item = CallKey> + '_ {
        self.calls.keys().map(|id| CallKey(*id))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { message, method, .. } => {
                self.awaited = if method == "initialize" { INITIALIZE_ID } else { DISCOVER_ID };
                self.transmits.push_back(message);
            }
            Step::Done(negotiated, last) => {
                self.handshake = None;
                self.transmits.extend(last);
                self.events.push_back(Event::Ready(negotiated));
            }
            Step::Failed(why) => {
                self.handshake = None;
                self.events.push_back(Event::Failed(why));
            }
        }
    }

    fn answered(&mut self, response: Response) {
        let Some(id) = number(&response.id) else { return };
        if id <= INITIALIZE_ID {
            let Some(handshake) = self.handshake.as_mut() else { return };
            if id == self.awaited {
                let step = handshake.handle_answer(&response.answer);
                self.step(step);
            } else if let Some(step) = handshake.handle_late_discovery(&response.answer) {
                self.step(step);
            }
            return;
        }
        if self.calls.remove(&id).is_some() {
            self.events.push_back(Event::Answered(CallKey(id), response.answer));
        }
    }

    fn asked(&mut self, request: Request) {
        if request.method == "ping" {
            self.transmits.push_back(envelope::response(&request.id, &Answer::Result(Object::empty())));
            return;
        }
        let key = AskKey(request.id.clone());
        if self.asks.insert(key.clone()) {
            self.events.push_back(Event::Asked(key, request));
        } else {
            let id = String::from_utf8_lossy(&key.0).into_owned();
            self.events.push_back(Event::Noise(format!("it asks under id {id}, under which another question of its own is open")));
        }
    }

    fn notified(&mut self, notification: Notification) {
        match notification.method.as_str() {
            "notifications/progress" => self.progressed(&notification),
            "notifications/cancelled" => {
                let key = notification.params.members().get("requestId").map(|id| AskKey(Bytes::copy_from_slice(id)));
                if let Some(key) = key.filter(|key| self.asks.remove(key)) {
                    self.events.push_back(Event::AskWithdrawn(key));
                }
            }
            _ => {
                let call = subscription_of(&notification.params).filter(|id| self.calls.contains_key(id)).map(CallKey);
                self.events.push_back(Event::Notified(call, notification));
            }
        }
    }

    fn progressed(&mut self, notification: &Notification) {
        let token = notification.params.members().get("progressToken").and_then(number);
        let Some((id, token)) = token.and_then(|id| Some((id, self.calls.get(&id)?.token.clone()?))) else { return };
        self.events.push_back(Event::Notified(Some(CallKey(id)), restore_token(notification, &token)));
    }

    /// Ends the call of a broken answer, if the id is readable or only one call is open; any other broken line is noise.
    fn unreadable(&mut self, text: &Bytes, error: &EnvelopeError) {
        let head: String = String::from_utf8_lossy(&text[..text.len().min(120)]).into_owned();
        let what = format!("{error}: {head}");
        let only = || (self.calls.len() == 1).then(|| self.calls.keys().next().copied()).flatten();
        let id = match broken::meant(text) {
            BrokenLine::Answer => only(),
            BrokenLine::AnswerTo(id) => Some(id),
            BrokenLine::Other => None,
        };
        if let Some(id) = id.filter(|id| self.calls.remove(id).is_some()) {
            self.events.push_back(Event::Garbled(CallKey(id), what));
            return;
        }
        self.events.push_back(Event::Noise(what));
        if let Some(handshake) = self.handshake.as_mut().filter(|_| id == Some(self.awaited)) {
            let step = handshake.handle_refusal(HandshakeError::Unreadable("it is no JSON-RPC message"));
            self.step(step);
        }
    }
}

/// Puts `id` in the place of the progress token in a request's `_meta`; gives back the token.
pub fn own_token(params: &Object, id: u64) -> (Bytes, Option<Bytes>) {
    let Some(span) = params.meta().and_then(|meta| meta.span("progressToken")) else { return (params.text().clone(), None) };
    let mut digits = itoa::Buffer::new();
    let own = [&params[..span.start], digits.format(id).as_bytes(), &params[span.end..]].concat();
    (own.into(), Some(params.slice(span)))
}

/// A progress notification with the caller's own token.
pub fn restore_token(notification: &Notification, token: &[u8]) -> Notification {
    let params = notification.params.with("progressToken", token);
    let whole = Bytes::from(splice::edit(&notification.whole, &[("params", Change::Set(&params))]));
    Notification { method: notification.method.clone(), params, whole }
}

fn subscription_of(params: &Object) -> Option<u64> {
    Members::again(params).object("_meta")?.get(key::SUBSCRIPTION_ID).and_then(number)
}

fn number(raw: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(raw).ok()?;
    text.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests;
