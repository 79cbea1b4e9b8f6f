//! A server that sits in a room: what is asked of it becomes calls, what comes of them becomes responses, and a proposal that is put to it
//! waits for the gate it stands behind as it waits for the others in the room (MCPx v0.1, 3.1, 3.2 and 4.3).
//!
//! Which of several fulfilments counts is decided by the order of the room, and by nothing else: the gate fulfils a proposal by a request of
//! its own, and whichever request the room passed on first is the one. So a call is made for a proposal once. Whether a call may be made,
//! and how, is not known here.

mod call;
mod taken;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now};
use bytes::Bytes;
use json::Members;

pub use call::{Asked, Bounds, CallId, Output, SERVED};
use call::{Underway, told};
use taken::Taken;

use crate::chain::{self, APPROVAL, Chain, ChainId, Found, Step, same_params, with_meta};
use crate::envelope::{Envelope, MAX_ID};
use crate::name::ParticipantId;
use crate::participant::{Event, Participant};
use crate::voice::{Answer, Call, Ending, Voice};

/// Of so many chains it is remembered how they stand; the oldest goes first.
const CHAINS: usize = 4_000;

/// One server's place in a room.
#[derive(Debug)]
pub struct Sitting {
    bounds: Bounds,
    participant: Participant,
    /// The gate's own place in this room, in whose name what was agreed to is fulfilled.
    gate: ParticipantId,
    voice: Voice,
    calls: BTreeMap<CallId, Underway>,
    /// Proposals that wait for the gate.
    waiting: BTreeMap<ChainId, CallId>,
    /// Proposals that were not seen, and a request has fulfilled.
    taken: Taken,
    begun: u64,
    outputs: VecDeque<Output>,
}

impl Sitting {
    /// A place that nobody has been welcomed to. `expiry`: how long a proposal waits. No two may have one seed.
    pub fn new(bounds: Bounds, gate: ParticipantId, expiry: Duration, seed: u128) -> Self {
        let participant = Participant::new(chain::Bounds { chains: CHAINS, expiry }, usize::MAX, seed);
        // Ids of the two differ by their seeds.
        let voice = Voice::new(gate.clone(), !seed);
        let (calls, waiting, taken) = (BTreeMap::new(), BTreeMap::new(), Taken::default());
        Self { bounds, participant, gate, voice, calls, waiting, taken, begun: 0, outputs: VecDeque::new() }
    }

    /// A message came.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) {
        if let Some(envelope) = self.participant.read(bytes) {
            let found = self.participant.take(now, bytes, &envelope);
            self.link(now, bytes, &envelope, found);
        }
        self.hear();
    }

    /// A call has ended.
    pub fn handle_answer(&mut self, now: Now, call: CallId, answer: Answer<'_>) {
        let Some(Underway { request: Some(request), .. }) = self.end(call) else { return };
        self.respond(now, &request, answer);
    }

    /// The server notifies of something during a call: `params` is a raw object.
    pub fn handle_notification(&mut self, now: Now, call: CallId, method: &str, params: &[u8]) {
        let Some(underway) = self.calls.get(&call) else { return };
        let params = Some(params).filter(|params| params.starts_with(b"{"));
        let to = underway.from.clone();
        let said = self.participant.notify(now, &[&to], Call { method, params });
        // What its capabilities or its form do not allow is nothing that anybody waits for.
        self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
    }

    /// The server lists something else from now on, which `method`, of a notification, says: whoever is there hears of it.
    pub fn handle_change(&mut self, now: Now, method: &str) {
        let said = self.participant.notify(now, &[], Call { method, params: None });
        // One that was not welcomed yet has told nobody of a list.
        self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
    }

    /// People have agreed to what is proposed: the gate fulfils it, unless somebody did so before. `by`: who agreed, a raw object that
    /// everybody reads in the `_meta` of the request.
    pub fn handle_approval(&mut self, now: Now, call: CallId, by: &[u8]) {
        if let Some(why) = self.paused() {
            self.outputs.push_back(Output::Cancel { call, why: why.clone() });
            return self.handle_rejection(now, call, &why);
        }
        let Some((proposal, params)) = self.proposal_of(call) else { return };
        let params = with_meta(&params, APPROVAL, by);
        let asked = Call { method: "tools/call", params: Some(params.as_bytes()) };
        match self.voice.request(now.wall, &[self.bounds.name.as_str()], asked, Some(&proposal.id)) {
            Ok(spoken) if spoken.bytes.len() > self.bounds.message_bytes => {
                let (most, size) = (self.bounds.message_bytes, spoken.bytes.len());
                let why = format!(
                    "the request that fulfils it has {size} bytes with who agreed to it, and a message of this room at most {most}"
                );
                self.not_sent(now, call, &why);
            }
            Ok(spoken) => self.outputs.push_back(Output::SendAsGate(spoken.bytes)),
            Err(why) => self.not_sent(now, call, &why.to_string()),
        }
    }

    /// Nobody agrees to what is proposed any more: it is rejected in the gate's name.
    pub fn handle_rejection(&mut self, now: Now, call: CallId, why: &str) {
        let Some((proposal, _)) = self.proposal_of(call) else { return };
        let said = self.voice.end(now.wall, &proposal, Ending::Reject, Some(why));
        self.outputs.push_back(Output::SendAsGate(said.bytes));
        self.forget(call);
    }

    /// What is proposed can't wait at the gate: those in the room decide on it alone, and its proposer hears why.
    pub fn handle_left(&mut self, now: Now, call: CallId, why: &str) {
        let Some((proposal, _)) = self.proposal_of(call) else { return };
        self.forget(call);
        let text = format!("This proposal does not wait for the gate's approval: {why}. Whoever may make the call here can still do so.");
        let said = self.voice.chat(now.wall, &[&proposal.from], &text, Some(&proposal.id));
        self.outputs.push_back(Output::SendAsGate(said.bytes));
    }

    /// What is proposed is none of the gate's business: those in the room decide on it.
    pub fn handle_unheld(&mut self, call: CallId) {
        if self.calls.get(&call).is_some_and(|one| one.request.is_none()) {
            self.forget(call);
        }
    }
}

impl Machine for Sitting {
    type Output = Output;

    fn handle_timeout(&mut self, now: Now) {
        self.participant.handle_timeout(now);
        self.hear();
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.participant.poll_timeout()
    }
}

impl Sitting {
    fn link(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>, found: Found) {
        let is_mine = envelope.to.iter().any(|to| *to == self.bounds.name.as_str());
        match found {
            Found::Proposed(id) if is_mine => self.propose(id, envelope),
            Found::Ended(id) => {
                let word = if envelope.kind().class() == "mcp/withdraw" { "withdrawn" } else { "rejected" };
                self.over(id, &format!("{word} by {:?} in the room {:?}", envelope.from, self.bounds.room));
            }
            Found::Fulfilled(id) => self.fulfilled(now, bytes, envelope, id, is_mine),
            Found::Deviates { .. } if is_mine => self.refuse(now, bytes, envelope, -32600, DEVIATES),
            Found::Late { state, .. } if is_mine => {
                let why =
                    format!("the proposal that this request fulfils does not wait any more: it is {}; nothing was called", state.word());
                self.refuse(now, bytes, envelope, -32600, &why);
            }
            Found::Requested(_) if is_mine => match envelope.correlation_id.as_deref() {
                Some(proposal) if !self.taken.take(proposal) => self.refuse(now, bytes, envelope, -32600, TAKEN),
                Some(_) | None => self.begin(now, bytes, envelope),
            },
            Found::Unrelated => self.withdrawn(envelope, is_mine),
            Found::Answered(_)
            | Found::Deviates { .. }
            | Found::Late { .. }
            | Found::Proposed(_)
            | Found::Repeated
            | Found::Requested(_)
            | Found::Stray => {}
        }
    }

    /// What happened besides.
    fn hear(&mut self) {
        while let Some(event) = self.participant.poll_output() {
            match event {
                Event::Expired(id) => self.over(id, "nobody has agreed in time"),
                Event::Left { id } if id != self.gate.as_str() => {
                    let of = |call: &&CallId| self.calls.get(call).is_some_and(|one| one.is_asked_by(&id));
                    let gone: Vec<CallId> = self.calls.keys().filter(of).copied().collect();
                    gone.into_iter().for_each(|call| self.cancel(call, "its caller has left the room"));
                }
                Event::Dropped { from, why } => self.outputs.push_back(Output::Dropped { from, why }),
                Event::Asked(_)
                | Event::Joined { .. }
                | Event::Left { .. }
                | Event::Linked { .. }
                | Event::Paused(_)
                | Event::Refused { .. }
                | Event::Resumed { .. }
                | Event::Said(_)
                | Event::Unread(_)
                | Event::Welcomed => {}
            }
        }
    }

    /// A proposal to this server. Only a call of a tool can be put before people; all else is left to those in the room.
    fn propose(&mut self, id: ChainId, envelope: &Envelope<'_>) {
        if envelope.kind().method() != Some("tools/call") || self.waiting.len() >= self.bounds.proposals {
            return;
        }
        let Some(params) = params(envelope) else { return };
        let call = self.next();
        self.waiting.insert(id, call);
        self.calls.insert(call, Underway::proposed(envelope, id, params.clone()));
        self.outputs.push_back(Output::Propose(Asked::of(call, envelope, params)));
    }

    /// A request that was the first to fulfil a proposal.
    fn fulfilled(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>, id: ChainId, is_mine: bool) {
        // Chains are forgotten one day; that this proposal was fulfilled is remembered for longer.
        self.taken.take(envelope.correlation_id.as_deref().unwrap_or_default());
        let by_gate = envelope.from == self.gate.as_str();
        if by_gate && is_mine {
            let Some(call) = self.waiting.remove(&id) else { return };
            if let Some(why) = self.paused() {
                self.cancel(call, &why);
                return self.refuse(now, bytes, envelope, -32000, &why);
            }
            let asks_for = params(envelope).unwrap_or_default();
            match self.calls.get_mut(&call) {
                Some(underway) if same_params(&underway.params, &asks_for) => {
                    underway.request = Some(bytes.clone());
                    self.outputs.push_back(Output::Approved(call));
                }
                Some(_) => {
                    self.cancel(call, AMENDED);
                    self.refuse(now, bytes, envelope, -32600, AMENDED);
                }
                None => {}
            }
            return;
        }
        self.over(id, &format!("fulfilled by {:?} in the room {:?}", envelope.from, self.bounds.room));
        let proposer = self.participant.chains().get(id).and_then(|chain| chain.proposal.as_ref()).map(|step| step.from.clone());
        if !is_mine {
            return;
        }
        if proposer.is_some_and(|proposer| proposer == envelope.from) {
            self.refuse(now, bytes, envelope, -32600, OWN);
        } else {
            self.begin(now, bytes, envelope);
        }
    }

    /// A request to this server.
    fn begin(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) {
        let Some(id) = Members::again(envelope.payload).get("id") else { return };
        if id.len() > MAX_ID {
            return self.refuse(now, bytes, envelope, -32600, "the `id` of the request is longer than 256 bytes");
        }
        let method = envelope.kind().method().unwrap_or_default();
        if let Some(why) = self.paused().filter(|_| method != "ping") {
            return self.refuse(now, bytes, envelope, -32000, &why);
        }
        if !SERVED.contains(&method) {
            let why = format!("`{method}` is not served in a room: {} are", SERVED.join(", "));
            return self.refuse(now, bytes, envelope, -32601, &why);
        }
        let Some(params) = params(envelope) else { return self.refuse(now, bytes, envelope, -32602, "`params` must be an object") };
        let under_way = self.calls.values().filter(|call| call.request.is_some());
        let (all, own) = (under_way.clone().count(), under_way.filter(|call| call.from == envelope.from).count());
        if all >= self.bounds.calls || own >= self.bounds.of_one {
            let most = if own >= self.bounds.of_one { self.bounds.of_one } else { self.bounds.calls };
            let whose = if own >= self.bounds.of_one { "of yours" } else { "of this room" };
            let why =
                format!("{most} calls {whose} are under way at {:?}, which is the limit: wait for one to end", self.bounds.name.as_str());
            return self.refuse(now, bytes, envelope, -32000, &why);
        }
        let call = self.next();
        self.calls.insert(call, Underway::requested(envelope, bytes));
        self.outputs.push_back(Output::Call(Asked::of(call, envelope, params)));
    }

    /// Why nothing is called at present, where somebody has paused it.
    fn paused(&self) -> Option<String> {
        let (name, pause) = (self.bounds.name.as_str(), self.participant.paused()?);
        Some(format!("{name:?} is {pause} and takes no new calls: ask again when it goes on, or ask {:?} to resume it", pause.by))
    }

    /// `notifications/cancelled` names the id that its caller gave the call, of JSON-RPC or of the envelope.
    fn withdrawn(&mut self, envelope: &Envelope<'_>, is_mine: bool) {
        if !is_mine || envelope.kind().method() != Some("notifications/cancelled") {
            return;
        }
        let Some(params) = params(envelope) else { return };
        let Some(id) = Members::again(&params).get("requestId").map(<[u8]>::to_vec) else { return };
        let named = |one: &Underway| one.is_asked_by(&envelope.from) && (one.id == id || one.envelope == id);
        let meant: Vec<CallId> = self.calls.iter().filter(|(_, one)| named(one)).map(|(call, _)| *call).collect();
        meant.into_iter().for_each(|call| self.cancel(call, "its caller has cancelled it"));
    }

    /// A proposal waits for the gate no more, by somebody else's doing.
    fn over(&mut self, id: ChainId, why: &str) {
        if let Some(call) = self.waiting.get(&id).copied() {
            self.cancel(call, why);
        }
    }

    fn cancel(&mut self, call: CallId, why: &str) {
        self.forget(call);
        self.outputs.push_back(Output::Cancel { call, why: why.to_owned() });
    }

    fn forget(&mut self, call: CallId) {
        self.end(call);
    }

    fn end(&mut self, call: CallId) -> Option<Underway> {
        let underway = self.calls.remove(&call)?;
        if let Some(proposal) = underway.proposal {
            self.waiting.remove(&proposal);
        }
        Some(underway)
    }

    /// The proposal for which a call of a tool waits, and its raw params: those that people were shown.
    fn proposal_of(&self, call: CallId) -> Option<(Step, Bytes)> {
        let underway = self.calls.get(&call).filter(|one| one.request.is_none())?;
        let Some(Chain { proposal: Some(proposal), .. }) = self.participant.chains().get(underway.proposal?) else { return None };
        Some((proposal.clone(), underway.params.clone()))
    }

    /// The gate can't say what people have agreed to: the entry ends, and the proposer hears why.
    fn not_sent(&mut self, now: Now, call: CallId, why: &str) {
        self.handle_left(now, call, why);
        self.outputs.push_back(Output::Cancel { call, why: why.to_owned() });
    }

    fn refuse(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>, code: i64, why: &str) {
        // A notification wants no answer.
        if Members::again(envelope.payload).has("id") {
            self.respond(now, bytes, Answer::Error(told(code, why).as_bytes()));
        }
    }

    fn respond(&mut self, now: Now, request: &Bytes, answer: Answer<'_>) {
        let spoken = match self.participant.respond(now, request, answer) {
            Ok(spoken) if spoken.bytes.len() > self.bounds.message_bytes => {
                let (most, size) = (self.bounds.message_bytes, spoken.bytes.len());
                let why = format!(
                    "the answer has {size} bytes, and a message of this room at most {most}: ask for less, or raise `message_size`"
                );
                self.participant.respond(now, request, Answer::Error(told(-32000, &why).as_bytes()))
            }
            Err(why) => {
                let why = format!("the answer can't be said in this room: {why}");
                self.participant.respond(now, request, Answer::Error(told(-32000, &why).as_bytes()))
            }
            said => said,
        };
        self.outputs.extend(spoken.ok().map(|spoken| Output::Send(spoken.bytes)));
    }

    fn next(&mut self) -> CallId {
        self.begun += 1;
        CallId(self.begun)
    }
}

const AMENDED: &str = "this request asks for something else than what was agreed to at the gate, so nothing was called: propose it anew";
const DEVIATES: &str = "this request names a proposal and asks for something else, so nothing was called: leave `correlation_id` out to ask \
                        for it yourself";
const OWN: &str = "whoever proposes a call does not approve it, so nothing was called: leave it to somebody else, or send the request without \
                   `correlation_id` as your own";
const TAKEN: &str = "a request that names the same proposal came before this one, so nothing was called: a proposal is fulfilled once";

/// The raw `params` of what is asked for, an object; `None`: they are none.
fn params(envelope: &Envelope<'_>) -> Option<Bytes> {
    match Members::again(envelope.payload).get("params") {
        None => Some(Bytes::from_static(b"{}")),
        Some(raw) if raw.starts_with(b"{") => Some(Bytes::copy_from_slice(raw)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
