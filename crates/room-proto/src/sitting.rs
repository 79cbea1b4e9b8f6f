//! A server in a room: requests become calls, answers become responses, and proposals to the server wait for the gate's approval as they
//! wait for the others in the room (MCPx v0.1, 3.1, 3.2 and 4.3).
//!
//! The order of the room alone decides among several fulfilments: the gate fulfils a proposal by a request of its own, and the first
//! request passed on by the room counts. So a proposed call is made once. Does not decide on calls, and makes none.

mod call;
mod taken;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now};
use bytes::Bytes;
use json::Members;

pub use call::{Bounds, CallId, Output, SERVED, ServerCall};
use call::{Underway, error_object};
use taken::FulfilledProposals;

use crate::chain::{self, APPROVAL, Chain, ChainId, MessageRole, Step, same_params, with_meta};
use crate::envelope::{Envelope, MAX_ID};
use crate::name::ParticipantId;
use crate::participant::{Event, Participant};
use crate::standard::{self, Offers};
use crate::voice::{Answer, Call, Ending, Voice};

/// Chains remembered; the oldest goes first.
const CHAINS: usize = 4_000;

/// A server's place in a room.
#[derive(Debug)]
pub struct SeatedServer {
    bounds: Bounds,
    participant: Participant,
    /// The gate's own place in this room, in whose name approved proposals are fulfilled.
    gate: ParticipantId,
    voice: Voice,
    calls: BTreeMap<CallId, Underway>,
    /// Proposals that wait for the gate.
    waiting: BTreeMap<ChainId, CallId>,
    /// Unseen proposals fulfilled by a request.
    taken: FulfilledProposals,
    begun: u64,
    outputs: VecDeque<Output>,
}

impl SeatedServer {
    /// Makes a place before the welcome. `expiry`: patience of a proposal. No two may have one seed.
    pub fn new(bounds: Bounds, gate: ParticipantId, expiry: Duration, seed: u128) -> Self {
        let participant = Participant::new(chain::Bounds { chains: CHAINS, expiry }, usize::MAX, seed);
        // Ids of the two differ by their seeds.
        let voice = Voice::new(gate.clone(), !seed);
        let (calls, waiting, taken) = (BTreeMap::new(), BTreeMap::new(), FulfilledProposals::default());
        Self { bounds, participant, gate, voice, calls, waiting, taken, begun: 0, outputs: VecDeque::new() }
    }

    /// Takes a message of the room.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) {
        if let Some(envelope) = self.participant.read(bytes) {
            let found = self.participant.apply(now, bytes, &envelope);
            self.link(now, bytes, &envelope, found);
        }
        self.hear();
    }

    /// Answers a call.
    pub fn handle_answer(&mut self, now: Now, call: CallId, answer: Answer<'_>) {
        let Some(Underway { request: Some(request), .. }) = self.end_call(call) else { return };
        self.respond(now, &request, answer);
    }

    /// Passes on a notification of the server during a call: `params` is a raw object.
    pub fn handle_notification(&mut self, now: Now, call: CallId, method: &str, params: &[u8]) {
        let Some(underway) = self.calls.get(&call) else { return };
        let params = Some(params).filter(|params| params.starts_with(b"{"));
        let to = underway.from.clone();
        let said = self.participant.notify(now, &[&to], Call { method, params });
        // What its capabilities or its form do not allow is nothing that anybody waits for.
        self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
    }

    /// Announces a changed list of the server to everybody; `method` is the notification.
    pub fn handle_change(&mut self, now: Now, method: &str) {
        let said = self.participant.notify(now, &[], Call { method, params: None });
        // One that was not welcomed yet has told nobody of a list.
        self.outputs.extend(said.ok().map(|spoken| Output::Send(spoken.bytes)));
    }

    /// Fulfils a proposal approved by people in the gate's name, unless fulfilled before. `by`: the approvers, a raw object for the `_meta`
    /// of the request, public in the room.
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

    /// Rejects a proposal in the gate's name.
    pub fn handle_rejection(&mut self, now: Now, call: CallId, why: &str) {
        let Some((proposal, _)) = self.proposal_of(call) else { return };
        let said = self.voice.end_proposal(now.wall, &proposal, Ending::Reject, Some(why));
        self.outputs.push_back(Output::SendAsGate(said.bytes));
        self.forget(call);
    }

    /// Leaves a proposal that can't wait at the gate to the room, and tells the proposer the reason.
    pub fn handle_left(&mut self, now: Now, call: CallId, why: &str) {
        let Some((proposal, _)) = self.proposal_of(call) else { return };
        self.forget(call);
        let text = format!("This proposal does not wait for the gate's approval: {why}. Whoever may make the call here can still do so.");
        let said = self.voice.chat(now.wall, &[&proposal.from], &text, Some(&proposal.id));
        self.outputs.push_back(Output::SendAsGate(said.bytes));
    }

    /// Leaves a proposal outside of the gate's business to the room.
    pub fn handle_unheld(&mut self, call: CallId) {
        if self.calls.get(&call).is_some_and(|one| one.request.is_none()) {
            self.forget(call);
        }
    }
}

impl Machine for SeatedServer {
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

impl SeatedServer {
    fn link(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>, found: MessageRole) {
        let is_mine = envelope.to.iter().any(|to| *to == self.bounds.name.as_str());
        match found {
            MessageRole::Proposed(id) if is_mine => self.propose(id, envelope),
            MessageRole::Ended(id) => {
                let word = if envelope.kind().class() == "mcp/withdraw" { "withdrawn" } else { "rejected" };
                self.over(id, &format!("{word} by {:?} in the room {:?}", envelope.from, self.bounds.room));
            }
            MessageRole::Fulfilled(id) => self.fulfilled(now, bytes, envelope, id, is_mine),
            MessageRole::Deviates { .. } if is_mine => self.refuse(now, bytes, envelope, -32600, DEVIATES),
            MessageRole::Late { state, .. } if is_mine => {
                let why =
                    format!("the proposal that this request fulfils does not wait any more: it is {}; nothing was called", state.word());
                self.refuse(now, bytes, envelope, -32600, &why);
            }
            MessageRole::Requested(_) if is_mine => match envelope.correlation_id.as_deref() {
                Some(proposal) if !self.taken.insert(proposal) => self.refuse(now, bytes, envelope, -32600, TAKEN),
                Some(_) | None => self.begin(now, bytes, envelope),
            },
            MessageRole::Unrelated => self.withdrawn(envelope, is_mine),
            MessageRole::Answered(_)
            | MessageRole::Deviates { .. }
            | MessageRole::Late { .. }
            | MessageRole::Proposed(_)
            | MessageRole::Repeated
            | MessageRole::Requested(_)
            | MessageRole::Stray => {}
        }
    }

    /// Takes the other news of the room.
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

    /// Takes a proposal to this server. Only a call of a tool can be put before people; all else is left to the room.
    fn propose(&mut self, id: ChainId, envelope: &Envelope<'_>) {
        if envelope.kind().method() != Some("tools/call") || self.waiting.len() >= self.bounds.proposals {
            return;
        }
        let Some(params) = params(envelope) else { return };
        let call = self.next();
        self.waiting.insert(id, call);
        self.calls.insert(call, Underway::proposed(envelope, id, params.clone()));
        self.outputs.push_back(Output::Propose(ServerCall::from_envelope(call, envelope, params)));
    }

    /// Takes the first request for a proposal.
    fn fulfilled(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>, id: ChainId, is_mine: bool) {
        // Chains are forgotten one day; that this proposal was fulfilled is remembered for longer.
        self.taken.insert(envelope.correlation_id.as_deref().unwrap_or_default());
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

    /// Takes a request to this server.
    fn begin(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) {
        let Some(id) = Members::again(envelope.payload).get("id") else { return };
        if id.len() > MAX_ID {
            return self.refuse(now, bytes, envelope, -32600, "the `id` of the request is longer than 256 bytes");
        }
        let method = envelope.kind().method().unwrap_or_default();
        if let Some(result) = standard::answer(envelope, self.bounds.name.as_str(), Offers::Server) {
            return self.respond(now, bytes, Answer::Result(result.as_bytes()));
        }
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
        self.outputs.push_back(Output::Call(ServerCall::from_envelope(call, envelope, params)));
    }

    /// Gives the reason for making no calls, while paused.
    fn paused(&self) -> Option<String> {
        let (name, pause) = (self.bounds.name.as_str(), self.participant.paused()?);
        Some(format!("{name:?} is {pause} and takes no new calls: ask again when it goes on, or ask {:?} to resume it", pause.by))
    }

    /// Cancels a call. `notifications/cancelled` names the caller's id for the call, of JSON-RPC or of the envelope.
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

    /// Ends a proposal's wait for the gate, by the act of others.
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
        self.end_call(call);
    }

    fn end_call(&mut self, call: CallId) -> Option<Underway> {
        let underway = self.calls.remove(&call)?;
        if let Some(proposal) = underway.proposal {
            self.waiting.remove(&proposal);
        }
        Some(underway)
    }

    /// Finds the proposal of a waiting call, and the raw params shown to people.
    fn proposal_of(&self, call: CallId) -> Option<(Step, Bytes)> {
        let underway = self.calls.get(&call).filter(|one| one.request.is_none())?;
        let Some(Chain { proposal: Some(proposal), .. }) = self.participant.chains().get(underway.proposal?) else { return None };
        Some((proposal.clone(), underway.params.clone()))
    }

    /// Drops an approved proposal that can't be said, and tells the proposer the reason.
    fn not_sent(&mut self, now: Now, call: CallId, why: &str) {
        self.handle_left(now, call, why);
        self.outputs.push_back(Output::Cancel { call, why: why.to_owned() });
    }

    fn refuse(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>, code: i64, why: &str) {
        // A notification wants no answer.
        if Members::again(envelope.payload).has("id") {
            self.respond(now, bytes, Answer::Error(error_object(code, why).as_bytes()));
        }
    }

    fn respond(&mut self, now: Now, request: &Bytes, answer: Answer<'_>) {
        let spoken = match self.participant.respond(now, request, answer) {
            Ok(spoken) if spoken.bytes.len() > self.bounds.message_bytes => {
                let (most, size) = (self.bounds.message_bytes, spoken.bytes.len());
                let why = format!(
                    "the answer has {size} bytes, and a message of this room at most {most}: ask for less, or raise `message_size`"
                );
                self.participant.respond(now, request, Answer::Error(error_object(-32000, &why).as_bytes()))
            }
            Err(why) => {
                let why = format!("the answer can't be said in this room: {why}");
                self.participant.respond(now, request, Answer::Error(error_object(-32000, &why).as_bytes()))
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

/// Reads the raw `params`, an object; `None`: something else.
fn params(envelope: &Envelope<'_>) -> Option<Bytes> {
    match Members::again(envelope.payload).get("params") {
        None => Some(Bytes::from_static(b"{}")),
        Some(raw) if raw.starts_with(b"{") => Some(Bytes::copy_from_slice(raw)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
