//! One who calls what others in a room offer, for whoever is outside of it: it asks each for its tools, makes calls, and finds the answers
//! that belong to them (MCPx v0.1, 3.1 and 4.3). It asks whoever may answer, when that one comes and when it says that its list is another
//! one, and waits for nobody: who does not answer has no tools. By which names clients know them, and whether a call may be made, is not
//! known here.

mod output;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;
use json::{Duplicates, Members, quote};

pub use output::{Answered, Failure, Output};

use crate::capability::Capabilities;
use crate::chain;
use crate::envelope::Envelope;
use crate::kind::Kind;
use crate::name::ParticipantId;
use crate::participant::{Event, Participant, check};
use crate::sitting::CallId;
use crate::voice::{Answer, Call};

/// More pages than this are no list.
const PAGES: usize = 64;
/// What whoever is asked for tools must be able to say.
const ANSWERS: &str = "mcp/response:tools/list";
const LIST: &str = "tools/list";
const NOT_SERVED: &[u8] = br#"{"code":-32601,"message":"the gate answers no requests here: ask what sits in this room"}"#;

/// Whom to leave alone, and how much is done at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Those that are part of the gate. They are never asked: what stands in the tree is not offered to it once more.
    pub own: BTreeSet<ParticipantId>,
    /// Calls at one participant under way at once.
    pub calls: usize,
    /// Tools taken of one participant; the rest is left out.
    pub tools: usize,
    /// No longer message is sent, in bytes.
    pub message_bytes: usize,
}

/// The gate's place in a room, from which it calls.
#[derive(Debug)]
pub struct Calling {
    bounds: Bounds,
    participant: Participant,
    /// What was asked and is not answered yet, by the id of the message.
    asked: BTreeMap<String, Asked>,
    /// By which message each call was made.
    calls: BTreeMap<CallId, String>,
    /// Those who are there, but for what is part of the gate.
    others: BTreeMap<String, Other>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct Asked {
    /// Who is to answer.
    of: String,
    /// `None`: its list.
    call: Option<CallId>,
    method: String,
}

/// One who may offer something.
#[derive(Debug, Default)]
struct Other {
    /// By which message it was asked last, until it has answered.
    asked: Option<String>,
    /// What came of its list so far.
    tools: Vec<Bytes>,
    pages: usize,
    /// Whether anything of it is offered.
    offers: bool,
    /// Calls under way at it.
    calls: usize,
}

impl Calling {
    /// A place that nobody has been welcomed to. No two may have one seed.
    pub fn new(bounds: Bounds, seed: u128) -> Self {
        // It keeps no chains: what it asked for it knows itself.
        let participant = Participant::new(chain::Bounds { chains: 1, ..chain::Bounds::default() }, usize::MAX, seed);
        let (asked, calls, others, outputs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Self { bounds, participant, asked, calls, others, outputs }
    }

    /// A message came.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) {
        let Ok(envelope) = Envelope::decode(bytes, usize::MAX) else { return };
        match envelope.kind().class() {
            "mcp/response" => self.answered(now, bytes, &envelope),
            "mcp/request" if check(&envelope).is_ok() => self.told(now, bytes, &envelope),
            class if class.starts_with("system/") => {
                self.participant.handle_message(now, bytes);
                self.hear(now);
            }
            _ => {}
        }
    }

    /// Somebody outside calls something: `params` is a raw object. A progress token in it has to be the number of the call.
    pub fn handle_call(&mut self, now: Now, call: CallId, to: &str, asked: Call<'_>) {
        if let Err(why) = self.call(now, call, to, asked) {
            self.outputs.push_back(Output::Failed { call, why });
        }
    }

    /// Nobody waits for a call any more.
    pub fn handle_cancel(&mut self, now: Now, call: CallId, why: &str) {
        let Some((id, asked)) = self.end(call) else { return };
        let params = format!("{{\"requestId\":{},\"reason\":{}}}", quote(&id), quote(why));
        let said = self.participant.notify(now, &[&asked.of], Call { method: "notifications/cancelled", params: Some(params.as_bytes()) });
        // Where it may not be said, the answer is nobody's when it comes.
        self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
    }
}

impl Machine for Calling {
    type Output = Output;

    // Callers outside wait as long as they like and cancel then; nothing here ends by itself.
    fn handle_timeout(&mut self, _: Now) {}

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }
}

impl Calling {
    fn call(&mut self, now: Now, call: CallId, to: &str, asked: Call<'_>) -> Result<(), Failure> {
        let other = self.others.get_mut(to).ok_or(Failure::Absent)?;
        if other.calls >= self.bounds.calls {
            return Err(Failure::Busy { most: self.bounds.calls });
        }
        let spoken = self.participant.request(now, &[to], asked, None).map_err(Failure::Unsaid)?;
        let (bytes, most) = (spoken.bytes.len(), self.bounds.message_bytes);
        if bytes > most {
            return Err(Failure::TooLong { bytes, most });
        }
        other.calls += 1;
        self.calls.insert(call, spoken.id.clone());
        self.asked.insert(spoken.id, Asked { of: to.to_owned(), call: Some(call), method: asked.method.to_owned() });
        self.outputs.push_back(Output::Send(spoken.bytes));
        Ok(())
    }

    /// Takes a call away that is over.
    fn end(&mut self, call: CallId) -> Option<(String, Asked)> {
        let id = self.calls.remove(&call)?;
        let asked = self.asked.remove(&id)?;
        if let Some(other) = self.others.get_mut(&asked.of) {
            other.calls -= 1;
        }
        Some((id, asked))
    }

    fn fail(&mut self, call: CallId, why: Failure) {
        if self.end(call).is_some() {
            self.outputs.push_back(Output::Failed { call, why });
        }
    }

    /// What happened in the room.
    fn hear(&mut self, now: Now) {
        while let Some(event) = self.participant.poll_output() {
            match event {
                Event::Joined { id } => self.ask_if_able(now, &id),
                Event::Left { id } => self.left(&id),
                Event::Refused { message, of: Some(of), .. } => match self.asked.get(&of).map(|asked| asked.call) {
                    Some(Some(call)) => self.fail(call, Failure::Refused(message)),
                    Some(None) => drop(self.asked.remove(&of)),
                    None => {}
                },
                Event::Welcomed => {
                    let all: Vec<String> = self.participant.present().map(|(id, _)| id.to_owned()).collect();
                    let new = all.into_iter().filter(|id| self.others.get(id).is_none_or(|other| other.asked.is_none() && !other.offers));
                    let new: Vec<String> = new.collect();
                    new.into_iter().for_each(|id| self.ask_if_able(now, &id));
                }
                Event::Asked(_)
                | Event::Dropped { .. }
                | Event::Expired(_)
                | Event::Linked { .. }
                // It calls for others, and does nothing by itself.
                | Event::Paused(_)
                | Event::Refused { .. }
                | Event::Resumed { .. }
                | Event::Said(_)
                | Event::Unread(_) => {}
            }
        }
    }

    /// Somebody has come. Whoever can't answer is not asked, but may be called once it says that it has a list.
    fn ask_if_able(&mut self, now: Now, id: &str) {
        if self.bounds.own.contains(id) {
            return;
        }
        let patterns = self.participant.present().find(|(other, _)| *other == id).map(|(_, patterns)| patterns);
        let may = patterns.and_then(|patterns| Capabilities::read(patterns.iter().map(String::as_str)).ok());
        self.others.entry(id.to_owned()).or_default();
        if may.is_some_and(|may| may.cover(Kind::new(ANSWERS))) {
            self.ask(now, id);
        }
    }

    /// Asks for a list from its beginning; what was asked before is nobody's to answer any more.
    fn ask(&mut self, now: Now, id: &str) {
        let Some(other) = self.others.get_mut(id) else { return };
        (other.pages, other.tools) = (0, Vec::new());
        if let Some(before) = other.asked.take() {
            self.asked.remove(&before);
        }
        self.page(now, id, None);
    }

    fn page(&mut self, now: Now, id: &str, cursor: Option<&str>) {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!("{{\"cursor\":{}}}", quote(cursor)));
        // Who may ask for nothing here has nothing to offer to others.
        let Ok(spoken) = self.participant.request(now, &[id], Call { method: LIST, params: Some(params.as_bytes()) }, None) else { return };
        let Some(other) = self.others.get_mut(id) else { return };
        other.asked = Some(spoken.id.clone());
        self.asked.insert(spoken.id, Asked { of: id.to_owned(), call: None, method: LIST.to_owned() });
        self.outputs.push_back(Output::Send(spoken.bytes));
    }

    /// One is not there any more, and neither is what it offered. Whether what it was doing took effect, nobody knows.
    fn left(&mut self, id: &str) {
        let Some(other) = self.others.remove(id) else { return };
        if let Some(asked) = &other.asked {
            self.asked.remove(asked);
        }
        if other.offers {
            self.outputs.push_back(Output::Offered { id: id.to_owned(), tools: Vec::new() });
        }
        let calls: Vec<CallId> = self.asked.values().filter(|asked| asked.of == id).filter_map(|asked| asked.call).collect();
        calls.into_iter().for_each(|call| self.fail(call, Failure::Left));
    }

    fn answered(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) {
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        let is_awaited = |asked: &&Asked| asked.of == envelope.from && envelope.kind().method() == Some(asked.method.as_str());
        let Some(asked) = self.asked.get(of).filter(is_awaited) else { return };
        let answer = answer_of(bytes, envelope);
        match (asked.call, answer) {
            (Some(call), Ok(answer)) => {
                self.end(call);
                self.outputs.push_back(Output::Answered { call, answer });
            }
            (Some(call), Err(why)) => self.fail(call, why),
            (None, answer) => {
                self.asked.remove(of);
                self.listed(now, &envelope.from, answer.as_ref().ok());
            }
        }
    }

    /// A page of a list. What is none ends it: who answers with an error has no tools.
    fn listed(&mut self, now: Now, id: &str, answer: Option<&Answered>) {
        let Some(other) = self.others.get_mut(id) else { return };
        other.asked = None;
        other.pages += 1;
        let mut next = None;
        if let Some(Answered::Result(result)) = answer {
            let members = Members::again(result);
            let tools = members.get("tools").and_then(json::elements).unwrap_or_default();
            other.tools.extend(tools.into_iter().filter(|tool| tool.starts_with(b"{")).map(|tool| result.slice_ref(tool)));
            next = members.str("nextCursor").map(|cursor| cursor.into_owned());
        }
        if let Some(cursor) = next.filter(|_| other.pages < PAGES && other.tools.len() < self.bounds.tools) {
            return self.page(now, id, Some(&cursor));
        }
        let mut tools = std::mem::take(&mut other.tools);
        tools.truncate(self.bounds.tools);
        let was_offered = std::mem::replace(&mut other.offers, !tools.is_empty());
        if was_offered || other.offers {
            self.outputs.push_back(Output::Offered { id: id.to_owned(), tools });
        }
    }

    /// A request: of what the gate asked for it may be notified, and it serves nothing itself.
    fn told(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) {
        let is_mine = self.participant.me().is_some_and(|me| envelope.to.iter().any(|to| *to == me.as_str()));
        let payload = Members::again(envelope.payload);
        let method = envelope.kind().method().unwrap_or_default();
        let params = payload.get("params").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}");
        match method {
            "notifications/tools/list_changed" => self.ask(now, &envelope.from),
            "notifications/cancelled" if is_mine => {
                let params = Members::again(params);
                let Some(call) = params.str("requestId").and_then(|id| self.asked.get(&*id)).and_then(|asked| asked.call_of(envelope))
                else {
                    return;
                };
                self.fail(call, Failure::GivenUp(params.str("reason").unwrap_or_default().into_owned()));
            }
            _ if is_mine && method.starts_with("notifications/") => {
                let Some(call) = self.concerned(envelope, params) else { return };
                let params = Bytes::copy_from_slice(params);
                self.outputs.push_back(Output::Notified { call, method: method.to_owned(), params });
            }
            _ if is_mine && payload.has("id") => {
                let said = self.participant.respond(now, bytes, Answer::Error(NOT_SERVED));
                self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
            }
            _ => {}
        }
    }

    /// Which call a participant notifies of: by its progress token, by the request that it refers to, or because there is but one.
    fn concerned(&self, envelope: &Envelope<'_>, params: &[u8]) -> Option<CallId> {
        if let Some(token) = Members::again(params).get("progressToken") {
            let number = std::str::from_utf8(token).ok()?.trim_matches('"').parse().ok()?;
            let id = self.calls.get(&CallId(number))?;
            return self.asked.get(id)?.call_of(envelope);
        }
        if let Some(of) = envelope.correlation_id.as_deref() {
            return self.asked.get(of)?.call_of(envelope);
        }
        let mut all = self.asked.values().filter_map(|asked| asked.call_of(envelope));
        all.next().filter(|_| all.next().is_none())
    }
}

impl Asked {
    /// The call, where whoever sent a message is to answer it.
    fn call_of(&self, envelope: &Envelope<'_>) -> Option<CallId> {
        self.call.filter(|_| self.of == envelope.from)
    }
}

/// What a response says. Its result is passed on as it came, so that no more of it is looked at than has to be.
fn answer_of(bytes: &Bytes, envelope: &Envelope<'_>) -> Result<Answered, Failure> {
    let payload = Members::parse(envelope.payload, Duplicates::RefuseTop).map_err(|error| Failure::Unreadable(error.to_string()))?;
    let object = |raw: &[u8]| raw.starts_with(b"{").then(|| bytes.slice_ref(raw));
    let answer = match (payload.get("result"), payload.get("error")) {
        (Some(result), None) => object(result).map(Answered::Result),
        (None, Some(error)) => object(error).map(Answered::Error),
        (Some(_), Some(_)) | (None, None) => None,
    };
    answer.ok_or_else(|| Failure::Unreadable("it has not either a `result` or an `error` that is an object".to_owned()))
}

#[cfg(test)]
mod tests;
