//! A participant's side of a room (MCPx v0.1, 4.3 and 8.2): messages are compared with their kinds before belief, answers find their
//! requests, proposals wait and expire, and nothing is said beyond the capabilities of the welcome.
//!
//! The driver hands in received messages by [`Participant::handle_message`], and sends the results of the other methods. A message counts
//! as said only when the room returns its echo. Decides nothing about proposals of others.

mod event;
mod hold;
mod pause;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;
use json::Members;

pub use event::{ChatMessage, Event};
pub(crate) use hold::named;
pub use hold::{Mismatch, Watch, check};
pub use pause::Pause;

use crate::capability::Capabilities;
use crate::chain::{Bounds, Chain, ChainId, Chains, MessageRole, State};
use crate::envelope::Envelope;
use crate::name::ParticipantId;
use crate::voice::{Answer, Call, Ending, SpeechError, Utterance, Voice};

/// The kind of a request to pause.
pub(crate) const PAUSE: &str = "participant/pause";
pub(crate) const RESUME: &str = "participant/resume";
/// Bytes of undecided proposals kept; the oldest go first.
const HELD: usize = 4 << 20;

/// A participant of a room.
#[derive(Debug)]
pub struct Participant {
    /// Longest message read, in bytes.
    most: usize,
    seed: u128,
    welcomed: Option<Welcome>,
    /// Capabilities of the others.
    present: BTreeMap<String, Vec<String>>,
    watch: Watch,
    paused: Option<Pause>,
    chains: Chains,
    /// Fulfilments sent and not yet returned by the room: message ids by proposal.
    fulfilling: BTreeMap<ChainId, String>,
    /// Payloads of waiting proposals.
    proposed: BTreeMap<ChainId, Bytes>,
    held: usize,
    events: VecDeque<Event>,
}

#[derive(Debug)]
struct Welcome {
    me: ParticipantId,
    capabilities: Capabilities,
    voice: Voice,
}

impl Participant {
    /// Makes a participant before the welcome. Reads messages of at most `most` bytes. No two may have one seed.
    pub fn new(bounds: Bounds, most: usize, seed: u128) -> Self {
        let (present, proposed, fulfilling, events) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        let (watch, chains) = (Watch::default(), Chains::new(bounds));
        Self { most, seed, welcomed: None, present, watch, paused: None, chains, fulfilling, proposed, held: 0, events }
    }

    /// Takes a message of the room.
    pub fn handle_message(&mut self, now: Now, bytes: &Bytes) {
        if let Some(envelope) = self.read(bytes) {
            self.apply(now, bytes, &envelope);
        }
    }

    /// Gives the pause that keeps this participant from acting alone.
    pub fn paused(&self) -> Option<&Pause> {
        self.paused.as_ref()
    }

    /// Gives the participant's own id, after the welcome.
    pub fn me(&self) -> Option<&ParticipantId> {
        self.welcomed.as_ref().map(|welcomed| &welcomed.me)
    }

    /// Gives the participant's own capabilities, after the welcome.
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.welcomed.as_ref().map(|welcomed| &welcomed.capabilities)
    }

    /// Lists the others with their capabilities.
    pub fn present(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.present.iter().map(|(id, capabilities)| (id.as_str(), capabilities.as_slice()))
    }

    /// Gives the chains of proposals and requests.
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// Gives the counts of mismatches.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Gives the payload of a waiting proposal.
    pub fn proposed(&self, id: ChainId) -> Option<&Bytes> {
        self.proposed.get(&id)
    }
}

impl Machine for Participant {
    type Output = Event;

    fn handle_timeout(&mut self, now: Now) {
        if self.paused.as_ref().and_then(|pause| pause.until).is_some_and(|until| until <= now.instant) {
            self.paused = None;
            self.events.push_back(Event::Resumed { by: None });
        }
        self.chains.handle_timeout(now);
        while let Some(id) = self.chains.poll_output() {
            self.let_go(id);
            self.events.push_back(Event::Expired(id));
        }
    }

    fn poll_output(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let paused = self.paused.as_ref().and_then(|pause| pause.until).map(|until| (until, "a pause ends"));
        self.chains.poll_timeout().into_iter().chain(paused).min_by_key(|(at, _)| *at)
    }
}

/// Messages of the participant.
impl Participant {
    /// Says something to people; `to` empty: to everybody.
    pub fn chat(&mut self, now: Now, to: &[&str], text: &str) -> Result<Utterance, SpeechError> {
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.chat(now.wall, to, text, None);
        welcomed.may_say(spoken)
    }

    /// Proposes a call.
    pub fn propose(&mut self, now: Now, to: &[&str], call: Call<'_>) -> Result<Utterance, SpeechError> {
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.proposal(now.wall, to, call)?;
        welcomed.may_say(spoken)
    }

    /// Requests a call. `fulfils` is the id of a proposal.
    pub fn request(&mut self, now: Now, to: &[&str], call: Call<'_>, fulfils: Option<&str>) -> Result<Utterance, SpeechError> {
        let proposal = fulfils.and_then(|proposal| self.chains.proposed_by(proposal));
        if proposal.is_some_and(|proposal| self.fulfilling.contains_key(&proposal)) {
            return Err(SpeechError::Underway);
        }
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.request(now.wall, to, call, fulfils)?;
        let spoken = welcomed.may_say(spoken)?;
        self.fulfilling.extend(proposal.map(|proposal| (proposal, spoken.id.clone())));
        Ok(spoken)
    }

    /// Notifies a server, or the sender of a request.
    pub fn notify(&mut self, now: Now, to: &[&str], call: Call<'_>) -> Result<Utterance, SpeechError> {
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.notification(now.wall, to, call)?;
        welcomed.may_say(spoken)
    }

    /// Requests a proposed call. `to` names the executors where the proposal names none.
    pub fn fulfil(&mut self, now: Now, id: ChainId, to: &[&str]) -> Result<Utterance, SpeechError> {
        let proposal = self.open(id)?.clone();
        let payload = self.proposed.get(&id).cloned().ok_or(SpeechError::Forgotten)?;
        let payload = Members::again(&payload);
        let method = payload.str("method").unwrap_or_default();
        let own: Vec<&str> = proposal.to.iter().map(String::as_str).collect();
        let call = Call { method: &method, params: payload.get("params") };
        self.request(now, if own.is_empty() { to } else { &own }, call, Some(&proposal.id))
    }

    /// Rejects a proposal, or withdraws the participant's own.
    pub fn end_proposal(&mut self, now: Now, id: ChainId, ending: Ending, reason: Option<&str>) -> Result<Utterance, SpeechError> {
        let proposal = self.open(id)?.clone();
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.end_proposal(now.wall, &proposal, ending, reason);
        welcomed.may_say(spoken)
    }

    /// Asks others not to act alone for `seconds`, unless they are resumed before.
    pub fn pause(&mut self, now: Now, to: &[&str], seconds: Option<u64>, reason: Option<&str>) -> Result<Utterance, SpeechError> {
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.pause(now.wall, to, seconds, reason)?;
        welcomed.may_say(spoken)
    }

    /// Asks paused participants to go on.
    pub fn resume(&mut self, now: Now, to: &[&str]) -> Result<Utterance, SpeechError> {
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.resume(now.wall, to)?;
        welcomed.may_say(spoken)
    }

    /// Answers a raw request: to its sender, and to the proposer (3.2.1).
    pub fn respond(&mut self, now: Now, request: &Bytes, answer: Answer<'_>) -> Result<Utterance, SpeechError> {
        let request = Envelope::decode(request, self.most).map_err(|_| SpeechError::Json)?;
        let audience = self.chains.audience(&request);
        let audience: Vec<&str> = audience.iter().map(String::as_str).collect();
        let welcomed = self.welcomed()?;
        let spoken = welcomed.voice.response(now.wall, &audience, &request, answer)?;
        welcomed.may_say(spoken)
    }
}

impl Participant {
    /// Reads a message; a failed check drops the message and leaves an event.
    pub(crate) fn read<'a>(&mut self, bytes: &'a Bytes) -> Option<Envelope<'a>> {
        let envelope = match Envelope::decode(bytes, self.most) {
            Ok(envelope) => envelope,
            Err(refused) => {
                self.events.push_back(Event::Unread(refused.why));
                return None;
            }
        };
        if let Err(why) = self.watch.check(&envelope) {
            self.events.push_back(Event::Dropped { from: envelope.from.to_string(), why });
            return None;
        }
        Some(envelope)
    }

    /// Applies a message, and gives its role in the chains.
    pub(crate) fn apply(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) -> MessageRole {
        self.handle_timeout(now);
        let payload = || Members::again(envelope.payload);
        match envelope.kind().as_str() {
            "chat" => self.events.push_back(Event::Said(ChatMessage::from_envelope(envelope))),
            PAUSE if self.is_for_me(envelope) => {
                let pause = Pause::from_envelope(envelope, now.instant);
                self.events.push_back(Event::Paused(pause.clone()));
                self.paused = Some(pause);
            }
            RESUME if self.is_for_me(envelope) => {
                if self.paused.take().is_some() {
                    self.events.push_back(Event::Resumed { by: Some(envelope.from.to_string()) });
                }
            }
            "system/error" => {
                let text = |member| payload().str(member).unwrap_or_default().into_owned();
                let of = envelope.correlation_id.as_ref().map(ToString::to_string);
                // A refusal that names no message may be of any.
                self.fulfilling.retain(|_, id| of.as_deref().is_some_and(|of| of != id));
                self.events.push_back(Event::Refused { code: text("error"), message: text("message"), of });
            }
            "system/presence" => self.presence(&payload()),
            "system/welcome" => self.welcome(&payload()),
            _ => return self.link(now, bytes, envelope),
        }
        MessageRole::Unrelated
    }

    fn link(&mut self, now: Now, bytes: &Bytes, envelope: &Envelope<'_>) -> MessageRole {
        let found = self.chains.handle_envelope(now, envelope);
        let is_open = |id: &ChainId| self.chains.get(*id).is_some_and(|chain| chain.state == State::Open);
        self.fulfilling.retain(|chain, id| *id != *envelope.id && is_open(chain));
        if let MessageRole::Proposed(id) = found {
            self.hold(id, envelope.payload);
        } else if let MessageRole::Ended(id) | MessageRole::Fulfilled(id) = found {
            self.let_go(id);
        }
        let from = envelope.from.to_string();
        self.events.push_back(Event::Linked { found, from, payload: bytes.slice_ref(envelope.payload) });
        let is_mine = self.is_for_me(envelope);
        // What wants an answer has an id; a notification has none.
        if envelope.kind().class() == "mcp/request"
            && is_mine
            && found != MessageRole::Repeated
            && Members::again(envelope.payload).has("id")
        {
            self.events.push_back(Event::Asked(bytes.clone()));
        }
        found
    }

    /// Tells whether a message names this participant; a message for everybody does not.
    fn is_for_me(&self, envelope: &Envelope<'_>) -> bool {
        self.me().is_some_and(|me| envelope.to.iter().any(|to| *to == me.as_str()))
    }

    fn hold(&mut self, id: ChainId, payload: &[u8]) {
        self.held += payload.len();
        self.proposed.insert(id, Bytes::copy_from_slice(payload));
        while let Some((oldest, _)) = self.proposed.first_key_value()
            && (self.held > HELD || self.chains.get(*oldest).is_none())
        {
            self.let_go(*oldest);
        }
    }

    fn let_go(&mut self, id: ChainId) {
        self.held -= self.proposed.remove(&id).map_or(0, |payload| payload.len());
    }

    fn welcome(&mut self, payload: &Members<'_>) {
        let Some((id, patterns)) = payload.object("you").as_ref().and_then(somebody) else { return };
        let (Ok(me), Ok(capabilities)) = (ParticipantId::new(&id), Capabilities::read(patterns.iter().map(String::as_str))) else { return };
        let others = payload.get("participants").and_then(json::elements).unwrap_or_default();
        self.present = others.into_iter().filter_map(|raw| somebody(&Members::again(raw))).collect();
        match &mut self.welcomed {
            Some(welcomed) if welcomed.me == me => welcomed.capabilities = capabilities,
            welcomed => *welcomed = Some(Welcome { voice: Voice::new(me.clone(), self.seed), me, capabilities }),
        }
        self.events.push_back(Event::Welcomed);
    }

    fn presence(&mut self, payload: &Members<'_>) {
        let Some((id, capabilities)) = payload.object("participant").as_ref().and_then(somebody) else { return };
        if self.me().is_some_and(|me| me.as_str() == id) {
            return;
        }
        match payload.str("event").as_deref() {
            Some("join") => {
                self.present.insert(id.clone(), capabilities);
                self.events.push_back(Event::Joined { id });
            }
            Some("leave") => {
                self.present.remove(&id);
                self.events.push_back(Event::Left { id });
            }
            Some(_) | None => {}
        }
    }

    fn welcomed(&mut self) -> Result<&mut Welcome, SpeechError> {
        self.welcomed.as_mut().ok_or(SpeechError::NotWelcomed)
    }

    fn open(&self, id: ChainId) -> Result<&crate::chain::Step, SpeechError> {
        match self.chains.get(id) {
            Some(Chain { proposal: Some(proposal), state: State::Open, .. }) => Ok(proposal),
            Some(chain) => Err(SpeechError::NotOpen(chain.state)),
            None => Err(SpeechError::Forgotten),
        }
    }
}

impl Welcome {
    /// Refuses to say a message that the room would refuse (8.2).
    fn may_say(&self, spoken: Utterance) -> Result<Utterance, SpeechError> {
        let kind = Envelope::decode(&spoken.bytes, usize::MAX).map_err(|_| SpeechError::Kind)?.kind().as_str().to_owned();
        if self.capabilities.cover(crate::kind::Kind::new(&kind)) { Ok(spoken) } else { Err(SpeechError::Lacking { kind }) }
    }
}

/// Reads an id with its capabilities.
fn somebody(who: &Members<'_>) -> Option<(String, Vec<String>)> {
    let patterns = who.get("capabilities").and_then(json::elements).unwrap_or_default();
    Some((who.str("id")?.into_owned(), patterns.into_iter().filter_map(json::as_str).map(Into::into).collect()))
}

#[cfg(test)]
mod tests;
