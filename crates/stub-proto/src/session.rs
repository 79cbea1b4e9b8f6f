//! Conversation with a part: one call at a time, executed once or reported as of unknown outcome. Has no wire and no clock.
//!
//! A call that is not repeatable leaves once. After each silence a part of profile B is asked for its table, and with the table for the
//! number of the last call that the part took, so that both sides count on from the same number.

mod hearing;
mod outcome;
mod terms;
mod wire;

#[cfg(test)]
mod faulty;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::table::PartTable;

pub use self::outcome::{CallEnd, NeverRan, Unknown};
pub use self::terms::{Order, PartStanding, PartStep, SessionSettings, WireTally};
pub use self::wire::{Content, Profile};
use self::wire::{PartSignal, PartWire};

/// Tries of a repeatable call, at most.
pub const MOST_TRIES: u8 = 3;
/// Unanswered questions after which a part counts as silent.
pub const MOST_MISSES: u8 = 3;
/// Starts of a part in a row that are answered at once; the others wait for the next question.
const MOST_STARTS: u8 = 8;
/// Noise, and messages without sense or without a question, after which a part counts as babbling if nothing with sense was between them.
pub const MOST_BABBLE: u32 = 100;
/// Numbers at least between those of an earlier conversation and the first: more than the tries that may still be on their way.
const LEAST_JUMP: u8 = 8;
/// Numbers by which the jump differs from run to run. Of the 128 for which a part takes a frame for a late one, both together leave 95 or more.
const JUMPS: u8 = 25;

/// Patience with a part beyond the wire and the tool.
const GRACE: Duration = Duration::from_millis(50);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Years, where a sum of times would overflow.
const NEVER: Duration = Duration::MAX;

/// A call with its tries.
#[derive(Clone, Debug)]
struct Flight {
    order: Order,
    tries: u8,
    /// Refused by a part that had started anew.
    was_refused: bool,
}

#[derive(Debug)]
enum PartTurn {
    Closed,
    Asking { misses: u8, table: PartTable, due: Duration },
    Resting { misses: u8, due: Duration },
    Beating { seq: u8, misses: u8, due: Duration },
    Calling { flight: Flight, seq: u8, due: Duration },
}

/// A conversation. The owner hands in bytes, calls and time, and takes the steps.
#[derive(Debug)]
pub struct PartSession {
    settings: SessionSettings,
    wire: PartWire,
    /// Number of the last call.
    seq: u8,
    /// The number follows one that the part has told, or has taken.
    is_numbered: bool,
    /// Number of the last heartbeat.
    beats: u8,
    /// Mark of the part's last start.
    boot: Option<u8>,
    /// Marks and numbers of the part, other than asked for, since it last agreed.
    starts: u8,
    phase: PartTurn,
    /// Begin of a message that still goes out, in frames for which the part gives leave.
    sending: Option<Duration>,
    standing: PartStanding,
    table: Option<PartTable>,
    waiting: VecDeque<Flight>,
    steps: VecDeque<PartStep>,
    tally: WireTally,
    babble: u32,
    heard: Duration,
}

impl PartSession {
    /// Makes a conversation for a wire not open yet.
    pub fn new(settings: SessionSettings) -> Self {
        Self {
            wire: PartWire::new(settings.profile),
            seq: settings.seed.max(1),
            settings,
            is_numbered: false,
            beats: 0,
            boot: None,
            starts: 0,
            phase: PartTurn::Closed,
            sending: None,
            standing: PartStanding::Opening,
            table: None,
            waiting: VecDeque::new(),
            steps: VecDeque::new(),
            tally: WireTally::default(),
            babble: 0,
            heard: Duration::ZERO,
        }
    }

    /// Begins on a wire just opened.
    pub fn open(&mut self, now: Duration) {
        self.wire = PartWire::new(self.settings.profile);
        self.send_bytes(self.wire.opening());
        self.ask(0, now);
    }

    /// Ends on a wire that is gone. What was under way is of unknown outcome, and what waited has not run.
    pub fn close(&mut self) {
        if let PartTurn::Calling { flight, .. } = core::mem::replace(&mut self.phase, PartTurn::Closed) {
            self.done(flight.order.id, CallEnd::Unknown(Unknown::WireLost));
        }
        self.stand(PartStanding::Silent);
    }

    /// Takes a call in.
    pub fn call(&mut self, order: Order, now: Duration) {
        let id = order.id;
        if matches!(self.standing, PartStanding::Silent | PartStanding::Babbling) {
            return self.done(id, CallEnd::NeverRan(NeverRan::Silent));
        }
        if self.waiting.len() >= self.settings.most_waiting {
            return self.done(id, CallEnd::NeverRan(NeverRan::Full { waiting: self.waiting.len() }));
        }
        self.waiting.push_back(Flight { order, tries: 0, was_refused: false });
        if let PartTurn::Resting { misses, .. } = self.phase {
            self.go_on(misses, now);
        }
    }

    /// Takes a call back that has not left yet.
    pub fn cancel(&mut self, id: u64) {
        if let Some(at) = self.waiting.iter().position(|flight| flight.order.id == id && flight.tries == 0) {
            self.waiting.remove(at);
            self.done(id, CallEnd::NeverRan(NeverRan::Cancelled));
        }
    }

    /// Takes bytes of the wire in.
    pub fn received(&mut self, bytes: &[u8], now: Duration) {
        // Longer than adapters and schedulers hold bytes back.
        let pause = self.wire_time(4).max(Duration::from_millis(50));
        let is_cut = now.saturating_sub(self.heard) >= pause;
        self.heard = now;
        let before = self.wire.noise();
        let heard = self.wire.push(bytes, is_cut, now);
        self.pay();
        self.settle(now);
        let noise = self.wire.noise().saturating_sub(before);
        self.babble = self.babble.saturating_add(self.wire.pieces(noise));
        for heard in heard {
            self.hear(heard, now);
        }
        self.weigh();
    }

    /// Takes news of an answer too long for the owner of the wire.
    pub fn received_overlong(&mut self, seq: u8, now: Duration) {
        self.heard = now;
        self.hear(PartSignal::Answer { seq, outcome: CallEnd::TooLong }, now);
        self.weigh();
    }

    /// Lets time pass: everything due by `now` happens.
    pub fn pass(&mut self, now: Duration) {
        self.wire.pass(now);
        self.pay();
        self.settle(now);
        if self.turn_due().is_none_or(|due| due > now) {
            return;
        }
        match core::mem::replace(&mut self.phase, PartTurn::Closed) {
            PartTurn::Closed => {}
            PartTurn::Asking { misses, .. } => {
                let misses = misses.saturating_add(1);
                if misses >= MOST_MISSES {
                    self.stand(PartStanding::Silent);
                }
                self.ask(misses, now);
            }
            PartTurn::Resting { misses, .. } => self.beat(misses, now),
            PartTurn::Beating { misses, .. } if misses.saturating_add(1) < MOST_MISSES => self.go_on(misses.saturating_add(1), now),
            PartTurn::Beating { .. } => {
                self.stand(PartStanding::Silent);
                self.ask(0, now);
            }
            PartTurn::Calling { flight, seq, .. } => self.unanswered(flight, seq, now),
        }
    }

    /// Next moment at which [`Self::pass`] does something.
    pub fn due(&self) -> Option<Duration> {
        self.turn_due().map(|due| self.wire.due().map_or(due, |wire| wire.min(due)))
    }

    /// Next moment of the turn. While its message still goes out, the wire alone has moments.
    fn turn_due(&self) -> Option<Duration> {
        match &self.phase {
            _ if self.sending.is_some() => self.wire.due(),
            PartTurn::Closed => None,
            PartTurn::Asking { due, .. }
            | PartTurn::Resting { due, .. }
            | PartTurn::Beating { due, .. }
            | PartTurn::Calling { due, .. } => Some(*due),
        }
    }

    /// Next step for the owner.
    pub fn step(&mut self) -> Option<PartStep> {
        self.steps.pop_front()
    }

    /// Standing of the part.
    pub fn standing(&self) -> PartStanding {
        self.standing
    }

    /// Counters so far.
    pub fn tally(&self) -> WireTally {
        WireTally { noise: self.wire.noise(), ..self.tally }
    }

    /// Profile of the part.
    pub fn profile(&self) -> Profile {
        self.settings.profile
    }

    /// Calls under way and waiting.
    pub fn load(&self) -> usize {
        self.waiting.len().saturating_add(usize::from(matches!(self.phase, PartTurn::Calling { .. })))
    }

    /// Time of bytes on the wire.
    pub fn wire_time(&self, bytes: usize) -> Duration {
        let bits = (bytes as u64).saturating_mul(10_000_000);
        Duration::from_micros(bits / u64::from(self.settings.speed.max(1)))
    }

    /// Gives up a babbling part.
    fn weigh(&mut self) {
        if self.babble >= MOST_BABBLE {
            self.stand(PartStanding::Babbling);
        }
    }

    fn unanswered(&mut self, flight: Flight, seq: u8, now: Duration) {
        if flight.order.is_repeatable && flight.tries < MOST_TRIES {
            self.tally.repeated = self.tally.repeated.saturating_add(1);
            // A part with a memory answers the same number again without running; one without has to see a new number.
            let seq = if self.wire.lists_tools() { seq } else { self.next_seq() };
            return self.send(flight, seq, now);
        }
        self.done(flight.order.id, CallEnd::Unknown(Unknown::NoAnswer { tries: flight.tries }));
        self.ask(0, now);
    }

    fn agreed(&mut self, now: Duration) {
        self.starts = 0;
        self.babble = 0;
        self.stand(PartStanding::Alive);
        self.go_on(0, now);
    }

    /// Sends the next call, or rests. A call is held against the table that the part has now.
    fn go_on(&mut self, misses: u8, now: Duration) {
        self.phase = PartTurn::Resting { misses, due: add(now, self.settings.heartbeat) };
        self.sending = None;
        while let Some(flight) = self.waiting.pop_front() {
            if self.is_outdated(&flight.order) {
                self.drop_flight(&flight, NeverRan::OtherTable);
                continue;
            }
            let seq = self.next_seq();
            let most = self.table.as_ref().map_or(u8::MAX, |table| table.most_bytes);
            if self.wire.fits(&flight.order, seq, most) {
                return self.send(flight, seq, now);
            }
            self.drop_flight(&flight, NeverRan::TooLong { most });
        }
    }

    /// Checks for a tool that the part lists otherwise now.
    fn is_outdated(&self, order: &Order) -> bool {
        let listed = self.table.as_ref().and_then(|table| table.row(order.tool));
        self.wire.lists_tools() && order.row.is_some() && order.row.as_ref() != listed
    }

    fn send(&mut self, mut flight: Flight, seq: u8, now: Duration) {
        let bytes = self.wire.call(&flight.order, seq, flight.tries > 0, now);
        let both_ways = self.wire_time(bytes.len().saturating_add(self.wire.longest_answer()));
        let patience = patience(both_ways, flight.order.work);
        self.steps.push_back(PartStep::Send(bytes));
        flight.tries = flight.tries.saturating_add(1);
        self.phase = PartTurn::Calling { flight, seq, due: add(now, patience) };
        self.note_sending(now);
    }

    fn ask(&mut self, misses: u8, now: Duration) {
        self.ask_page(misses, PartTable::default(), now);
    }

    fn ask_page(&mut self, misses: u8, table: PartTable, now: Duration) {
        let first = u8::try_from(table.rows.len()).unwrap_or(u8::MAX);
        if !self.wire.lists_tools() {
            self.next_seq();
        }
        let bytes = if self.wire.lists_tools() || self.is_numbered {
            self.wire.ask(self.seq, first, self.boot, now)
        } else {
            self.wire.ask_count(self.seq)
        };
        self.send_bytes(bytes);
        let pause = FIRST_PAUSE.saturating_mul(1 << misses.min(5)).min(LONGEST_PAUSE);
        let due = add(now, pause.saturating_add(self.wire_time(self.wire.longest_answer())));
        self.phase = PartTurn::Asking { misses, table, due };
        self.note_sending(now);
    }

    fn beat(&mut self, misses: u8, now: Duration) {
        // Heartbeats count by themselves: numbers of calls that they used up would make a late call look like a new one.
        let seq = self.next_beat();
        let bytes = self.wire.heartbeat(seq, now);
        let patience = patience(self.wire_time(self.wire.beat_bytes(bytes.len())), Duration::ZERO);
        self.steps.push_back(PartStep::Send(bytes));
        self.phase = PartTurn::Beating { seq, misses, due: add(now, patience) };
        self.note_sending(now);
    }

    fn note_sending(&mut self, now: Duration) {
        self.sending = self.wire.is_sending().then_some(now);
    }

    /// Lets patience begin when the last frame of the message has gone.
    fn settle(&mut self, now: Duration) {
        let Some(since) = self.sending.filter(|_| !self.wire.is_sending()) else { return };
        self.sending = None;
        match &mut self.phase {
            PartTurn::Closed => {}
            PartTurn::Asking { due, .. }
            | PartTurn::Resting { due, .. }
            | PartTurn::Beating { due, .. }
            | PartTurn::Calling { due, .. } => *due = add(*due, now.saturating_sub(since)),
        }
    }

    fn next_seq(&mut self) -> u8 {
        self.seq = self.seq.checked_add(1).unwrap_or(1);
        self.seq
    }

    fn next_beat(&mut self) -> u8 {
        self.beats = self.beats.checked_add(1).unwrap_or(1);
        self.beats
    }

    /// Begins numbers anew, away from the part's own: what an earlier conversation has sent, or is answered, has none of them.
    fn jump_from(&mut self, last: u8) {
        let jump = LEAST_JUMP.saturating_add(self.settings.seed % JUMPS);
        self.seq = last.wrapping_add(jump).max(1);
        self.is_numbered = true;
    }

    fn stray(&mut self) {
        self.tally.stray = self.tally.stray.saturating_add(1);
        self.babble = self.babble.saturating_add(1);
    }

    /// Sends what the wire owes: leave for the part, and frames that the part gave leave for.
    fn pay(&mut self) {
        let owed = self.wire.owed();
        self.send_bytes(owed);
    }

    fn send_bytes(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.steps.push_back(PartStep::Send(bytes));
        }
    }

    fn done(&mut self, id: u64, outcome: CallEnd) {
        self.steps.push_back(PartStep::Done { id, outcome });
    }

    /// Ends a call that waits. Nobody knows of a try before a start of the part.
    fn drop_flight(&mut self, flight: &Flight, why: NeverRan) {
        let outcome = if flight.tries > 0 { CallEnd::Unknown(Unknown::StartedAnew) } else { CallEnd::NeverRan(why) };
        self.done(flight.order.id, outcome);
    }

    /// Notes a standing. Nothing waits for a silent part.
    fn stand(&mut self, standing: PartStanding) {
        if matches!(standing, PartStanding::Silent | PartStanding::Babbling) {
            for flight in core::mem::take(&mut self.waiting) {
                self.drop_flight(&flight, NeverRan::Silent);
            }
        }
        if self.standing != standing {
            self.standing = standing;
            self.steps.push_back(PartStep::Standing(standing));
        }
    }
}

/// Patience with a single try of a call, whose frames take `both_ways` on the wire and whose tool works for `work`.
pub fn patience(both_ways: Duration, work: Duration) -> Duration {
    both_ways.saturating_mul(2).saturating_add(work).saturating_add(GRACE)
}

fn add(now: Duration, length: Duration) -> Duration {
    now.checked_add(length).unwrap_or(NEVER)
}
