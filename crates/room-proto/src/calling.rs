//! A caller for clients outside of a room: asks participants for lists, makes calls, and matches answers (MCPx v0.1, 3.1 and 4.3). Asks
//! every participant able to answer for tools, on arrival and on every change of the list, and whoever has answered for the other lists of
//! MCP. Waits for nobody: a silent participant offers nothing. Knows neither the names shown to clients nor the permission for a call.

mod list_kind;
mod output;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;
use json::{Duplicates, Members, quote};

pub use list_kind::ListKind;
pub use output::{CallAnswer, Failure, Output};

use crate::capability::Capabilities;
use crate::chain;
use crate::envelope::Envelope;
use crate::kind::Kind;
use crate::name::ParticipantId;
use crate::participant::{Event, Participant, check};
use crate::sitting::CallId;
use crate::standard;
use crate::voice::Call;

/// Pages accepted of one list.
const PAGES: usize = 64;

/// Participants to leave alone, and limits on simultaneous work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Parts of the gate, never asked: tools of the tree are not offered to the tree once more.
    pub own: BTreeSet<ParticipantId>,
    /// Simultaneous calls at one participant.
    pub calls: usize,
    /// Entries taken of one list of a participant; the rest is left out.
    pub entries: usize,
    /// Longest message sent.
    pub message_bytes: usize,
}

/// The gate's place in a room, for calls.
#[derive(Debug)]
pub struct RoomCaller {
    bounds: Bounds,
    participant: Participant,
    /// Unanswered requests, by message id.
    asked: BTreeMap<String, PendingRequest>,
    /// Message ids of calls.
    calls: BTreeMap<CallId, String>,
    /// Participants present, without parts of the gate.
    others: BTreeMap<String, Other>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct PendingRequest {
    /// Participant asked.
    of: String,
    /// `None`: a request for the list.
    call: Option<CallId>,
    method: String,
}

/// A participant who may offer something.
#[derive(Debug, Default)]
struct Other {
    lists: BTreeMap<ListKind, Listing>,
    /// The other lists are to be asked for once tools were answered for.
    is_new: bool,
    /// Calls under way.
    calls: usize,
}

/// A list of a participant.
#[derive(Debug, Default)]
struct Listing {
    /// Message id of the last request for the list, until the answer.
    asked: Option<String>,
    /// Entries of the pages so far.
    entries: Vec<Bytes>,
    pages: usize,
    is_offered: bool,
}

impl Other {
    /// Tells whether tools were neither offered nor asked for.
    fn is_unasked(&self) -> bool {
        self.lists.get(&ListKind::Tools).is_none_or(|tools| tools.asked.is_none() && !tools.is_offered)
    }
}

impl RoomCaller {
    /// Makes a place without a welcome yet. No two may have one seed.
    pub fn new(bounds: Bounds, seed: u128) -> Self {
        // It keeps no chains: what it asked for it knows itself.
        let participant = Participant::new(chain::Bounds { chains: 1, ..chain::Bounds::default() }, usize::MAX, seed);
        let (asked, calls, others, outputs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Self { bounds, participant, asked, calls, others, outputs }
    }

    /// Takes a message of the room.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) {
        let Ok(envelope) = Envelope::decode(bytes, usize::MAX) else { return };
        match envelope.kind().class() {
            "mcp/response" => self.answered(now, bytes, &envelope),
            "mcp/request" if check(&envelope).is_ok() => self.handle_request(now, bytes, &envelope),
            class if class.starts_with("system/") => {
                self.participant.handle_message(now, bytes);
                self.hear(now);
            }
            _ => {}
        }
    }

    /// Makes a call for a client outside: `params` is a raw object. A progress token in `params` has to be the number of the call.
    pub fn handle_call(&mut self, now: Now, call: CallId, to: &str, asked: Call<'_>) {
        if let Err(why) = self.call(now, call, to, asked) {
            self.outputs.push_back(Output::Failed { call, why });
        }
    }

    /// Cancels a call nobody waits for any more.
    pub fn handle_cancel(&mut self, now: Now, call: CallId, why: &str) {
        let Some((id, asked)) = self.end_call(call) else { return };
        let params = format!("{{\"requestId\":{},\"reason\":{}}}", quote(&id), quote(why));
        let said = self.participant.notify(now, &[&asked.of], Call { method: "notifications/cancelled", params: Some(params.as_bytes()) });
        // Where it may not be said, the answer is nobody's when it comes.
        self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
    }
}

impl Machine for RoomCaller {
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

impl RoomCaller {
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
        self.asked.insert(spoken.id, PendingRequest { of: to.to_owned(), call: Some(call), method: asked.method.to_owned() });
        self.outputs.push_back(Output::Send(spoken.bytes));
        Ok(())
    }

    /// Removes a finished call.
    fn end_call(&mut self, call: CallId) -> Option<(String, PendingRequest)> {
        let id = self.calls.remove(&call)?;
        let asked = self.asked.remove(&id)?;
        if let Some(other) = self.others.get_mut(&asked.of) {
            other.calls -= 1;
        }
        Some((id, asked))
    }

    fn fail(&mut self, call: CallId, why: Failure) {
        if self.end_call(call).is_some() {
            self.outputs.push_back(Output::Failed { call, why });
        }
    }

    /// Takes the news of the room.
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
                    let new = all.into_iter().filter(|id| self.others.get(id).is_none_or(Other::is_unasked));
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

    /// Asks a participant who has come. A participant without the capability to answer is not asked, but may be called after announcing a
    /// list.
    fn ask_if_able(&mut self, now: Now, id: &str) {
        if self.bounds.own.contains(id) {
            return;
        }
        self.others.entry(id.to_owned()).or_default().is_new = true;
        if self.is_able(id, ListKind::Tools) {
            self.ask(now, id, ListKind::Tools);
        }
    }

    /// Tells whether a participant may answer a request for a list.
    fn is_able(&self, id: &str, kind: ListKind) -> bool {
        let patterns = self.participant.present().find(|(other, _)| *other == id).map(|(_, patterns)| patterns);
        let may = patterns.and_then(|patterns| Capabilities::read(patterns.iter().map(String::as_str)).ok());
        may.is_some_and(|may| may.cover(Kind::new(kind.answer())))
    }

    /// Asks for a list from its beginning; answers to earlier requests are void.
    fn ask(&mut self, now: Now, id: &str, kind: ListKind) {
        let Some(other) = self.others.get_mut(id) else { return };
        let listing = other.lists.entry(kind).or_default();
        (listing.pages, listing.entries) = (0, Vec::new());
        if let Some(before) = listing.asked.take() {
            self.asked.remove(&before);
        }
        self.page(now, id, kind, None);
    }

    fn page(&mut self, now: Now, id: &str, kind: ListKind, cursor: Option<&str>) {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!("{{\"cursor\":{}}}", quote(cursor)));
        let asked = Call { method: kind.method(), params: Some(params.as_bytes()) };
        // Who may ask for nothing here has nothing to offer to others.
        let Ok(spoken) = self.participant.request(now, &[id], asked, None) else { return };
        let Some(listing) = self.others.get_mut(id).and_then(|other| other.lists.get_mut(&kind)) else { return };
        listing.asked = Some(spoken.id.clone());
        self.asked.insert(spoken.id, PendingRequest { of: id.to_owned(), call: None, method: kind.method().to_owned() });
        self.outputs.push_back(Output::Send(spoken.bytes));
    }

    /// Forgets a participant who has left, and all offers. The effect of calls under way is unknown.
    fn left(&mut self, id: &str) {
        let Some(other) = self.others.remove(id) else { return };
        for (kind, listing) in other.lists {
            if let Some(asked) = &listing.asked {
                self.asked.remove(asked);
            }
            if listing.is_offered {
                self.outputs.push_back(Output::Offered { id: id.to_owned(), kind, entries: Vec::new() });
            }
        }
        let calls: Vec<CallId> = self.asked.values().filter(|asked| asked.of == id).filter_map(|asked| asked.call).collect();
        calls.into_iter().for_each(|call| self.fail(call, Failure::Left));
    }

    fn answered(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) {
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        let is_awaited = |asked: &&PendingRequest| asked.of == envelope.from && envelope.kind().method() == Some(asked.method.as_str());
        let Some(asked) = self.asked.get(of).filter(is_awaited) else { return };
        let answer = answer_of(bytes, envelope);
        match (asked.call, answer) {
            (Some(call), Ok(answer)) => {
                self.end_call(call);
                self.outputs.push_back(Output::Answered { call, answer });
            }
            (Some(call), Err(why)) => self.fail(call, why),
            (None, answer) => {
                let kind = ListKind::of_method(&asked.method);
                self.asked.remove(of);
                if let Some(kind) = kind {
                    self.listed(now, &envelope.from, kind, answer.as_ref().ok());
                }
            }
        }
    }

    /// Takes a page of a list. Anything else ends the list: an error stands for no entries.
    fn listed(&mut self, now: Now, id: &str, kind: ListKind, answer: Option<&CallAnswer>) {
        let most = self.bounds.entries;
        let Some(listing) = self.others.get_mut(id).and_then(|other| other.lists.get_mut(&kind)) else { return };
        listing.asked = None;
        listing.pages += 1;
        let mut next = None;
        if let Some(CallAnswer::Result(result)) = answer {
            let members = Members::again(result);
            let entries = members.get(kind.member()).and_then(json::elements).unwrap_or_default();
            listing.entries.extend(entries.into_iter().filter(|entry| entry.starts_with(b"{")).map(|entry| result.slice_ref(entry)));
            next = members.str("nextCursor").map(|cursor| cursor.into_owned());
        }
        if let Some(cursor) = next.filter(|_| listing.pages < PAGES && listing.entries.len() < most) {
            return self.page(now, id, kind, Some(&cursor));
        }
        let mut entries = std::mem::take(&mut listing.entries);
        entries.truncate(most);
        let was_offered = std::mem::replace(&mut listing.is_offered, !entries.is_empty());
        if was_offered || listing.is_offered {
            self.outputs.push_back(Output::Offered { id: id.to_owned(), kind, entries });
        }
        if kind == ListKind::Tools {
            self.ask_for_rest(now, id);
        }
    }

    /// Asks a new participant, who answers requests for lists, for the lists beside tools.
    fn ask_for_rest(&mut self, now: Now, id: &str) {
        let Some(other) = self.others.get_mut(id) else { return };
        if std::mem::take(&mut other.is_new) {
            let rest = ListKind::ALL.into_iter().filter(|kind| *kind != ListKind::Tools && self.is_able(id, *kind));
            rest.collect::<Vec<_>>().into_iter().for_each(|kind| self.ask(now, id, kind));
        }
    }

    /// Takes a notification of a call under way. Other requests are refused: the gate serves nothing in a room.
    fn handle_request(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) {
        let is_mine = self.participant.me().is_some_and(|me| envelope.to.iter().any(|to| *to == me.as_str()));
        let payload = Members::again(envelope.payload);
        let method = envelope.kind().method().unwrap_or_default();
        let params = payload.get("params").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}");
        match method {
            _ if !ListKind::changed(method).is_empty() => {
                ListKind::changed(method).iter().for_each(|kind| self.ask(now, &envelope.from, *kind));
            }
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
                let said = standard::respond(&mut self.participant, now, bytes);
                self.outputs.extend(said.map(|spoken| Output::Send(spoken.bytes)));
            }
            _ => {}
        }
    }

    /// Finds the call of a notification: by progress token, by the request referred to, or as the only one.
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

impl PendingRequest {
    /// Gives the call, if the sender of a message is to answer this request.
    fn call_of(&self, envelope: &Envelope<'_>) -> Option<CallId> {
        self.call.filter(|_| self.of == envelope.from)
    }
}

/// Reads a response. The result is passed on as received, and read no further than necessary.
fn answer_of(bytes: &Bytes, envelope: &Envelope<'_>) -> Result<CallAnswer, Failure> {
    let payload = Members::parse(envelope.payload, Duplicates::RefuseTop).map_err(|error| Failure::Unreadable(error.to_string()))?;
    let object = |raw: &[u8]| raw.starts_with(b"{").then(|| bytes.slice_ref(raw));
    let answer = match (payload.get("result"), payload.get("error")) {
        (Some(result), None) => object(result).map(CallAnswer::Result),
        (None, Some(error)) => object(error).map(CallAnswer::Error),
        (Some(_), Some(_)) | (None, None) => None,
    };
    answer.ok_or_else(|| Failure::Unreadable("it has not either a `result` or an `error` that is an object".to_owned()))
}

#[cfg(test)]
mod tests;
