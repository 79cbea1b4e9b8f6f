//! A room: participants, their capabilities, and receivers of messages (MCPx v0.1, 4.2 and 6).
//!
//! Messages are passed on byte for byte. The room keeps no history unless configured, and knows no proposals: the participants do (10.2).
//! Nor does the room know tokens: newcomers have been admitted. The driver calls a `handle_*`, carries out the outputs of
//! `poll_output` in order, and reports written messages by `handle_written`, so that the room notices slow readers. A slow reader is cut
//! off before anybody has to wait, and loses the messages on the way.

mod also;
mod exclusion;
mod history;
mod output;
mod pauses;
mod ruling;
mod seat;
mod settings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now};
use bytes::Bytes;

pub use also::Also;
pub use output::{
    Change, ChangedCapabilities, CloseReason, Event, Hearing, HearingOutcome, Newcomer, Preferences, RoomError, RoomOutput, Routing,
    Transmit,
};
pub use settings::{Rate, Settings};

use crate::capability::Capabilities;
use crate::envelope::{Envelope, RefusedEnvelope};
use crate::name::{ConnectionId, ParticipantId, Topic};
use crate::refusal::Refusal;
use crate::system::System;
use exclusion::ExclusionList;
use history::{History, Past};
use ruling::Ruling;
use seat::{Concern, Seat};

/// A room.
#[derive(Debug)]
pub struct Room {
    topic: Topic,
    settings: Settings,
    seats: BTreeMap<ConnectionId, Seat>,
    /// Connections of the participants.
    present: BTreeMap<ParticipantId, ConnectionId>,
    rulings: BTreeMap<ParticipantId, Ruling>,
    excluded: ExclusionList,
    expiries: BTreeSet<(Instant, ConnectionId)>,
    history: History,
    system: System,
    /// Connections to be cut off after everybody else has the current message.
    slow: VecDeque<ConnectionId>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

impl Room {
    /// Makes an empty room. No two rooms may have one seed: the ids of their messages begin with the seed.
    pub fn new(topic: Topic, settings: Settings, seed: u128) -> Self {
        let (seats, present, rulings, expiries) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (slow, transmits, events) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (history, excluded) = (History::default(), ExclusionList::default());
        Self { topic, settings, seats, present, rulings, excluded, expiries, history, system: System::new(seed), slow, transmits, events }
    }

    /// Seats an admitted participant. The welcome goes first; then everybody, the newcomer included, gets the presence (MX-14). A
    /// participant present over another connection moves to this one, and the other is closed.
    pub fn handle_join(&mut self, now: Now, connection: ConnectionId, newcomer: Newcomer) -> Result<(), RoomError> {
        let id = newcomer.id.clone();
        let before = self.present.get(&id).copied();
        if before.is_none() && self.seats.len() >= self.settings.participants {
            return Err(RoomError::Full { most: self.settings.participants });
        }
        self.examine(now, &newcomer, before)?;
        let ruling = self.rulings.get(&id);
        let given = &newcomer.capabilities;
        let capabilities = ruling.map_or_else(|| Ok(given.clone()), |ruling| ruling.apply(given))?;
        let mut seat = Seat::new(newcomer, capabilities);
        if let Some(before) = before {
            if let Some(unseated) = self.unseat(before) {
                seat.succeed(unseated);
            }
            self.transmits.push_back(Transmit::Close { connection: before, why: CloseReason::Replaced });
        }
        self.expiries.extend(seat.expires.map(|at| (at, connection)));
        self.present.insert(id.clone(), connection);
        self.seats.insert(connection, seat);
        self.events.push_back(Event::Joined { id, connection, again: before.is_some() });
        self.welcome(now, connection);
        self.remind(now, connection);
        if let Some(seat) = self.seats.get(&connection) {
            let joined = self.system.joined(now.wall, seat.present());
            self.tell_all(&joined);
        }
        self.cut_slow(now);
        Ok(())
    }

    /// Ends a connection. Connections without a participant are ignored.
    pub fn handle_leave(&mut self, now: Now, connection: ConnectionId) {
        self.leave(now, connection, None);
        self.cut_slow(now);
    }

    /// Takes a text message.
    pub fn handle_message(&mut self, now: Now, connection: ConnectionId, bytes: &Bytes) {
        match self.judge(now, connection, bytes) {
            Some(Ok(envelope)) => {
                self.note_control(now.instant, connection, &envelope);
                self.relay(now, connection, &envelope, bytes);
            }
            Some(Err(refused)) => self.refuse(now, connection, refused),
            None => {}
        }
        self.cut_slow(now);
    }

    /// Takes a text message of `length` bytes which the translator for its sender found to be no envelope.
    pub fn handle_untranslated(&mut self, now: Now, connection: ConnectionId, length: usize, refused: RefusedEnvelope) {
        let Some(seat) = self.seats.get_mut(&connection) else { return };
        let refused = match seat.send(now.instant, length, &self.settings) {
            Ok(()) => refused,
            Err(retry_after) => RefusedEnvelope { why: Refusal::RateLimited { retry_after }, id: refused.id },
        };
        self.refuse(now, connection, refused);
        self.cut_slow(now);
    }

    /// Takes note of written messages.
    pub fn handle_written(&mut self, connection: ConnectionId, messages: usize, bytes: usize) {
        if let Some(seat) = self.seats.get_mut(&connection) {
            seat.written(messages, bytes);
        }
    }

    /// Changes the hearing of a participant (MX-15), at the rate of the participant's messages. A new welcome marks the place from where a
    /// real change holds; the connection keeps the choice.
    pub fn handle_hearing(&mut self, now: Now, id: &ParticipantId, hearing: Hearing) -> Result<HearingOutcome, RoomError> {
        let settings = self.settings.clone();
        let (connection, seat) = self.seat_of(id)?;
        seat.send(now.instant, 0, &settings).map_err(|retry_after| RoomError::RateLimited { retry_after })?;
        let preferences = hearing.over(seat.preferences);
        let is_changed = preferences != std::mem::replace(&mut seat.preferences, preferences);
        if is_changed {
            self.welcome(now, connection);
            self.cut_slow(now);
        }
        Ok(HearingOutcome { preferences, is_changed })
    }

    /// Changes a participant's capabilities from the next message on, in an admin's name (11.3). Adding a present pattern or removing an
    /// absent one is no error. The participant is welcomed anew, and the change outlives the connection.
    pub fn handle_capabilities(&mut self, now: Now, id: &ParticipantId, change: Change<'_>) -> Result<ChangedCapabilities, RoomError> {
        let Change { add, remove, by } = change;
        let most = self.settings.rulings;
        if self.rulings.len() >= most && !self.rulings.contains_key(id) {
            return Err(RoomError::Rulings { most });
        }
        let (connection, seat) = self.seat_of(id)?;
        let new = seat.capabilities.with(add, remove)?;
        let old = std::mem::replace(&mut seat.capabilities, new.clone());
        let ruling = self.rulings.entry(id.clone()).or_default();
        *ruling = ruling.then(add, remove);
        let changed = ChangedCapabilities { id: id.clone(), old, new, by: by.to_owned() };
        self.events.push_back(Event::CapabilitiesChanged(changed.clone()));
        self.welcome(now, connection);
        self.cut_slow(now);
        Ok(changed)
    }

    /// Puts a participant out in an admin's name, for a while: programs connect again at once. Afterwards coming again is up to admission.
    pub fn handle_dismissal(&mut self, now: Now, id: &ParticipantId) -> Result<(), RoomError> {
        let (connection, _) = self.seat_of(id)?;
        let until = now.instant.checked_add(self.settings.exclusion).filter(|until| *until > now.instant);
        if let Some(until) = until.filter(|_| self.excluded.len() < self.settings.rulings) {
            self.excluded.add(id, until);
        }
        self.leave(now, connection, Some(CloseReason::Dismissed));
        self.cut_slow(now);
        Ok(())
    }

    /// Puts out a participant whose admission is void.
    pub fn handle_withdrawal(&mut self, now: Now, connection: ConnectionId) {
        self.leave(now, connection, Some(CloseReason::Withdrawn));
        self.cut_slow(now);
    }

    /// Changes the bounds from the next message on. Nobody is put out for them.
    pub fn handle_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.history.bound(self.settings.history, self.settings.message_bytes);
    }

    /// Ends the room: closes all connections, without announcing departures.
    pub fn handle_end(&mut self) {
        self.expiries.clear();
        self.present.clear();
        for (connection, seat) in std::mem::take(&mut self.seats) {
            self.transmits.push_back(Transmit::Close { connection, why: CloseReason::RoomEnds });
            self.events.push_back(Event::Left { id: seat.id, why: Some(CloseReason::RoomEnds) });
        }
    }

    /// Gives the name.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Gives the bounds.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Lists participants with their capabilities and preferences, in order of connection.
    pub fn present(&self) -> impl Iterator<Item = (&ParticipantId, &Capabilities, Preferences)> {
        self.seats.values().map(|seat| (&seat.id, &seat.capabilities, seat.preferences))
    }

    /// Lists participants in order of their ids.
    pub fn participants(&self) -> impl Iterator<Item = &ParticipantId> {
        self.present.keys()
    }

    /// Tells whether the room is empty and remembers nothing, and so can be dropped.
    pub fn is_idle(&self) -> bool {
        self.seats.is_empty() && self.rulings.is_empty() && self.excluded.is_empty() && self.history.is_empty()
    }
}

impl Machine for Room {
    type Output = RoomOutput;

    fn handle_timeout(&mut self, now: Now) {
        while let Some((_, connection)) = self.expiries.first().copied().filter(|(at, _)| *at <= now.instant) {
            self.leave(now, connection, Some(CloseReason::Expired));
        }
        self.excluded.expire(now.instant);
        self.cut_slow(now);
    }

    fn poll_output(&mut self) -> Option<RoomOutput> {
        self.transmits.pop_front().map(RoomOutput::Transmit).or_else(|| self.events.pop_front().map(RoomOutput::Event))
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let expiry = self.expiries.first().map(|(at, _)| (*at, "a token expires"));
        let return_from = self.excluded.next().map(|at| (at, "a participant may come again"));
        expiry.into_iter().chain(return_from).min_by_key(|(at, _)| *at)
    }
}

impl Room {
    /// Refuses a newcomer who was put out, and one whose name goes to and fro between connections. Parts of the gate may always come.
    fn examine(&mut self, now: Now, newcomer: &Newcomer, before: Option<ConnectionId>) -> Result<(), RoomError> {
        if newcomer.is_own {
            return Ok(());
        }
        let id = &newcomer.id;
        if let Some(retry_after) = self.excluded.left(id, now.instant) {
            return Err(RoomError::PutOut { id: id.clone(), retry_after });
        }
        let Some(seat) = before.and_then(|before| self.seats.get_mut(&before)) else { return Ok(()) };
        seat.reconnect(now.instant, &self.settings).map_err(|retry_after| RoomError::Reconnections { id: id.clone(), retry_after })
    }

    fn seat_of(&mut self, id: &ParticipantId) -> Result<(ConnectionId, &mut Seat), RoomError> {
        let not_here = || RoomError::NotHere { id: id.clone() };
        let connection = *self.present.get(id).ok_or_else(not_here)?;
        self.seats.get_mut(&connection).map(|seat| (connection, seat)).ok_or_else(not_here)
    }

    /// Judges a message; `None`: the sender is not here.
    fn judge<'a>(&mut self, now: Now, connection: ConnectionId, bytes: &'a Bytes) -> Option<Result<Envelope<'a>, RefusedEnvelope>> {
        let seat = self.seats.get_mut(&connection)?;
        let decoded = Envelope::decode(bytes, self.settings.message_bytes);
        if let Err(retry_after) = seat.send(now.instant, bytes.len(), &self.settings) {
            let id = decoded.map_or_else(|refused| refused.id, |envelope| Some(envelope.id.into_owned()));
            return Some(Err(RefusedEnvelope { why: Refusal::RateLimited { retry_after }, id }));
        }
        let seat = self.seats.get(&connection)?;
        Some(decoded.and_then(|envelope| match may_send(seat, &envelope).and_then(|()| self.may_control(now.instant, seat, &envelope)) {
            Ok(()) => Ok(envelope),
            Err(why) => Err(RefusedEnvelope { why, id: Some(envelope.id.into_owned()) }),
        }))
    }

    fn relay(&mut self, now: Now, connection: ConnectionId, envelope: &Envelope<'_>, bytes: &Bytes) {
        let addressed: BTreeSet<ConnectionId> = envelope.to.iter().filter_map(|id| self.present.get(&**id).copied()).collect();
        let absent = envelope.to.iter().filter(|id| !self.present.contains_key(&***id)).count();
        let (broadcast, kind) = (envelope.is_broadcast(), envelope.kind());
        let (needed, is_stream) = (Also::needed(kind), also::is_stream(kind));
        let receivers = self.send_where(bytes, |to, seat| {
            let concern = Concern { own: to == connection, addressed: addressed.contains(&to), broadcast };
            seat.preferences.also.covers(needed) && if is_stream { concern.addressed } else { seat.gets(concern) }
        });
        let Some(seat) = self.seats.get(&connection) else { return };
        self.events.push_back(Event::Relayed { id: seat.id.clone(), bytes: bytes.clone(), receivers, absent });
        if self.settings.history > 0 && !is_stream {
            let to = envelope.to.iter().map(|id| Box::from(&**id)).collect();
            let past = Past { at: now.wall, bytes: bytes.clone(), from: seat.id.clone(), to, needed };
            self.history.keep(past, self.settings.history, self.settings.message_bytes);
        }
    }

    /// Sends the history to a participant who asked: no more than presence would have brought.
    fn remind(&mut self, now: Now, connection: ConnectionId) {
        let Some(seat) = self.seats.get(&connection).filter(|seat| seat.preferences.history > 0) else { return };
        let (last, more) = self.history.last(seat.preferences.history, |past| {
            let (own, addressed) = (past.from == seat.id, past.to.iter().any(|id| **id == *seat.id.as_str()));
            seat.preferences.also.covers(past.needed) && seat.gets(Concern { own, addressed, broadcast: past.to.is_empty() })
        });
        let reminder = self.system.history(now.wall, seat.present(), last.into_iter().map(|past| (past.at, &past.bytes)), more);
        self.send_one(connection, reminder);
    }

    fn refuse(&mut self, now: Now, connection: ConnectionId, refused: RefusedEnvelope) {
        let Some(seat) = self.seats.get_mut(&connection) else { return };
        let RefusedEnvelope { why, id } = refused;
        if seat.bear(now.instant, &self.settings) {
            let error = self.system.error(now.wall, seat.present(), id.as_deref(), &why);
            self.events.push_back(Event::Refused { id: seat.id.clone(), message: id, why });
            self.send_one(connection, error);
        } else {
            self.events.push_back(Event::Refused { id: seat.id.clone(), message: id, why });
            self.leave(now, connection, Some(CloseReason::Misbehaved));
        }
    }

    fn welcome(&mut self, now: Now, connection: ConnectionId) {
        let Some(you) = self.seats.get(&connection) else { return };
        let others = self.seats.iter().filter(|(other, _)| **other != connection).map(|(_, seat)| seat.present());
        let Preferences { routing, echo, also, history: _ } = you.preferences;
        let routing = if routing == Routing::All { "all" } else { "directed" };
        let also: Vec<String> = also.classes().map(json::quote).collect();
        let also = if also.is_empty() { String::new() } else { format!(",\"also\":[{}]", also.join(",")) };
        let more = format!(",\"topic\":{},\"routing\":\"{routing}\",\"echo\":{echo}{also}", json::quote(self.topic.as_str()));
        let welcome = self.system.welcome(now.wall, you.present(), others, &more);
        self.send_one(connection, welcome);
    }

    fn leave(&mut self, now: Now, connection: ConnectionId, why: Option<CloseReason>) {
        let Some(seat) = self.unseat(connection) else { return };
        self.present.remove(&seat.id);
        self.transmits.extend(why.map(|why| Transmit::Close { connection, why }));
        let left = self.system.left(now.wall, &seat.id);
        self.events.push_back(Event::Left { id: seat.id, why });
        self.tell_all(&left);
    }

    fn unseat(&mut self, connection: ConnectionId) -> Option<Seat> {
        let seat = self.seats.remove(&connection)?;
        if let Some(at) = seat.expires {
            self.expiries.remove(&(at, connection));
        }
        Some(seat)
    }

    fn send_one(&mut self, connection: ConnectionId, bytes: Bytes) {
        let Some(seat) = self.seats.get_mut(&connection) else { return };
        if seat.enqueue(bytes.len(), &self.settings) {
            self.transmits.push_back(Transmit::Send { connection, bytes });
        } else {
            self.slow.push_back(connection);
        }
    }

    fn tell_all(&mut self, bytes: &Bytes) {
        self.send_where(bytes, |_, _| true);
    }

    /// Sends to every seat that `gets` the message, and counts the receivers. A seat with a full queue is noted, and gets nothing any more.
    fn send_where(&mut self, bytes: &Bytes, gets: impl Fn(ConnectionId, &Seat) -> bool) -> usize {
        let mut receivers = 0;
        for (&connection, seat) in &mut self.seats {
            if !gets(connection, seat) {
                continue;
            }
            if seat.enqueue(bytes.len(), &self.settings) {
                receivers += 1;
                self.transmits.push_back(Transmit::Send { connection, bytes: bytes.clone() });
            } else {
                self.slow.push_back(connection);
            }
        }
        receivers
    }

    /// Cuts off slow readers in order. The news of a departure may be too much for another.
    fn cut_slow(&mut self, now: Now) {
        while let Some(connection) = self.slow.pop_front() {
            self.leave(now, connection, Some(CloseReason::SlowReader));
        }
    }
}

/// Checks the name of the sender and the capabilities.
fn may_send(seat: &Seat, envelope: &Envelope<'_>) -> Result<(), Refusal> {
    let kind = envelope.kind();
    if kind.is_reserved() {
        return Err(Refusal::Reserved { kind: kind.as_str().to_owned() });
    }
    if envelope.from != seat.id.as_str() {
        return Err(Refusal::From { given: envelope.from.to_string(), own: seat.id.as_str().to_owned() });
    }
    if !seat.capabilities.cover(kind) {
        return Err(Refusal::Lacking { kind: kind.as_str().to_owned() });
    }
    if also::is_stream(kind) && envelope.is_broadcast() {
        return Err(Refusal::Invalid { member: "to", why: "is missing: a stream goes to those it names, and to nobody else" });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
