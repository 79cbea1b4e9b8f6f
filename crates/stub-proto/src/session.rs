//! Conversation with a part: one call at a time, executed once or reported as of unknown outcome. Has no wire and no clock.
//!
//! A call that is not repeatable leaves once. After each silence a part of profile B is asked for its table, and with the table for the
//! number of the last call that the part took, so that both sides count on from the same number.

mod outcome;
mod wire;

#[cfg(test)]
mod faulty;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::message::{ASK_FIRST, TablePage, is_newer};
use crate::table::PartTable;

pub use self::outcome::{CallEnd, NeverRan, Unknown};
pub use self::wire::{Content, Profile};
use self::wire::{PartSignal, PartWire};

/// Tries of a repeatable call, at most.
pub const MOST_TRIES: u8 = 3;
/// Unanswered questions after which a part counts as silent.
pub const MOST_MISSES: u8 = 3;
/// Starts of a part in a row that are answered at once; the others wait for the next question.
const MOST_STARTS: u8 = 8;
/// Messages without sense, and none with sense between them, after which a part counts as babbling.
pub const MOST_BABBLE: u32 = 100;

/// Patience with a part beyond the wire and the tool.
const GRACE: Duration = Duration::from_millis(50);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Years, where a sum of times would overflow.
const NEVER: Duration = Duration::MAX;

/// Settings of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    pub profile: Profile,
    /// Speed of the wire, in bits a second with ten bits a byte.
    pub speed: u32,
    /// Rest after which the part is asked for a sign of life.
    pub heartbeat: Duration,
    /// Calls that may wait for the one under way.
    pub most_waiting: usize,
    /// Number before the first; any, and another one in each run.
    pub seq: u8,
}

/// A call for a part.
#[derive(Clone, Debug)]
pub struct Order {
    /// Name of the call for the owner, used once.
    pub id: u64,
    pub tool: u8,
    pub content: Content,
    /// Two executions do no more than one, and nobody has agreed to exactly one.
    pub is_repeatable: bool,
    /// Time that the part needs for the work.
    pub work: Duration,
}

/// PartStep for the owner, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum PartStep {
    Send(Vec<u8>),
    Done {
        id: u64,
        outcome: CallEnd,
    },
    /// The part's own table, new or changed.
    Table(PartTable),
    Standing(PartStanding),
}

/// PartStanding of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartStanding {
    /// No answer yet.
    Opening,
    Alive,
    /// Three questions without an answer.
    Silent,
    /// Nothing but messages without sense.
    Babbling,
}

/// Counters for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireTally {
    /// Pieces of the wire that were no frame.
    pub noise: u64,
    /// Frames without a sensible message.
    pub nonsense: u64,
    /// Messages without a question before.
    pub stray: u64,
    /// Calls sent again.
    pub repeated: u64,
}

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
    Resting { due: Duration },
    Beating { seq: u8, misses: u8, due: Duration },
    Calling { flight: Flight, seq: u8, due: Duration },
}

/// A conversation. The owner hands in bytes, calls and time, and takes the steps.
#[derive(Debug)]
pub struct PartSession {
    settings: SessionSettings,
    wire: PartWire,
    seq: u8,
    /// Agreed with the part at least once.
    /// Number of the last heartbeat to a part with a table.
    beats: u8,
    is_numbered: bool,
    /// Mark of the part's last start.
    boot: Option<u8>,
    /// Marks since the part last agreed.
    starts: u8,
    phase: PartTurn,
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
            seq: settings.seq.max(1),
            settings,
            beats: 0,
            is_numbered: false,
            boot: None,
            starts: 0,
            phase: PartTurn::Closed,
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
        if matches!(self.phase, PartTurn::Resting { .. }) {
            self.go_on(now);
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
        for heard in self.wire.push(bytes, is_cut) {
            self.hear(heard, now);
        }
    }

    /// Lets time pass: everything due by `now` happens.
    pub fn pass(&mut self, now: Duration) {
        if self.due().is_none_or(|due| due > now) {
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
            PartTurn::Resting { .. } => self.beat(0, now),
            PartTurn::Beating { misses, .. } if misses.saturating_add(1) < MOST_MISSES => self.beat(misses.saturating_add(1), now),
            PartTurn::Beating { .. } => {
                self.stand(PartStanding::Silent);
                self.ask(0, now);
            }
            PartTurn::Calling { flight, seq, .. } => self.unanswered(flight, seq, now),
        }
    }

    /// Next moment at which [`Self::pass`] does something.
    pub fn due(&self) -> Option<Duration> {
        match &self.phase {
            PartTurn::Closed => None,
            PartTurn::Asking { due, .. } | PartTurn::Resting { due } | PartTurn::Beating { due, .. } | PartTurn::Calling { due, .. } => {
                Some(*due)
            }
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

    /// Calls under way and waiting.
    pub fn load(&self) -> usize {
        self.waiting.len().saturating_add(usize::from(matches!(self.phase, PartTurn::Calling { .. })))
    }

    /// Time of bytes on the wire.
    pub fn wire_time(&self, bytes: usize) -> Duration {
        let bits = (bytes as u64).saturating_mul(10_000_000);
        Duration::from_micros(bits / u64::from(self.settings.speed.max(1)))
    }

    fn hear(&mut self, heard: PartSignal, now: Duration) {
        self.babble = if matches!(heard, PartSignal::Nonsense) { self.babble.saturating_add(1) } else { 0 };
        match heard {
            PartSignal::Nonsense => {
                self.tally.nonsense = self.tally.nonsense.saturating_add(1);
                if self.babble == MOST_BABBLE {
                    self.stand(PartStanding::Babbling);
                }
            }
            PartSignal::Heartbeat { seq } => self.hear_beat(seq, now),
            PartSignal::Page(page) => self.hear_page(page, now),
            PartSignal::Answer { seq, outcome } => self.hear_answer(seq, outcome, now),
        }
    }

    fn hear_beat(&mut self, heard: u8, now: Duration) {
        match &self.phase {
            // A part without a table of its own shows by its heartbeat that it is here.
            PartTurn::Asking { .. } if !self.wire.lists_tools() && heard == self.seq => self.agreed(now),
            PartTurn::Beating { seq, .. } if *seq == heard => self.agreed(now),
            PartTurn::Closed | PartTurn::Asking { .. } | PartTurn::Resting { .. } | PartTurn::Beating { .. } | PartTurn::Calling { .. } => {
                self.stray()
            }
        }
    }

    fn hear_answer(&mut self, heard: u8, outcome: CallEnd, now: Duration) {
        if !matches!(self.phase, PartTurn::Calling { seq, .. } if seq == heard) {
            return self.stray();
        }
        let PartTurn::Calling { flight, .. } = core::mem::replace(&mut self.phase, PartTurn::Closed) else { return };
        if matches!(outcome, CallEnd::Failed { code: ASK_FIRST, .. }) {
            return self.started_anew(flight, true, now);
        }
        self.done(flight.order.id, outcome);
        self.agreed(now);
    }

    fn hear_page(&mut self, page: TablePage, now: Duration) {
        let is_known = page.boot.is_none() || page.boot == self.boot;
        let is_asking = matches!(self.phase, PartTurn::Asking { .. });
        // The greeting of a start that was agreed about since: late, or sent twice.
        if page.last.is_none() && page.boot.is_some() && is_known && !is_asking {
            return self.stray();
        }
        if page.last.is_none() {
            self.boot = page.boot.or(self.boot);
        }
        match (core::mem::replace(&mut self.phase, PartTurn::Closed), page.last) {
            // The question with the mark of this start is on its way, or has just been lost.
            (PartTurn::Asking { misses, table, due }, None) if is_known || self.starts >= MOST_STARTS => {
                self.phase = PartTurn::Asking { misses, table, due };
            }
            (PartTurn::Asking { misses, .. }, None) => {
                self.starts = self.starts.saturating_add(1);
                self.ask(misses, now);
            }
            (PartTurn::Calling { flight, .. }, None) => self.started_anew(flight, false, now),
            (PartTurn::Resting { .. } | PartTurn::Beating { .. }, None) => self.ask(0, now),
            (PartTurn::Asking { table, misses, .. }, Some(last)) => self.hear_rows((table, misses), last, page, now),
            (other, _) => {
                self.phase = other;
                self.stray();
            }
        }
    }

    /// Takes a page of the table that was asked for.
    fn hear_rows(&mut self, (mut table, misses): (PartTable, u8), last: u8, page: TablePage, now: Duration) {
        // A page that came twice, or late, goes on where no other ended.
        let goes_on = usize::from(page.first) == table.rows.len();
        (table.most_bytes, table.device) = (page.table.most_bytes, page.table.device);
        let has_rows = !page.table.rows.is_empty();
        let is_new = goes_on && page.table.rows.into_iter().all(|row| table.add(row));
        let listed = u8::try_from(table.rows.len()).unwrap_or(u8::MAX);
        match page.next {
            None if is_new => {
                if !self.is_numbered || is_newer(last, self.seq) {
                    self.seq = last;
                }
                self.is_numbered = true;
                if self.table.as_ref() != Some(&table) {
                    self.table = Some(table.clone());
                    self.steps.push_back(PartStep::Table(table));
                }
                self.agreed(now);
            }
            Some(next) if is_new && has_rows && next == listed => self.ask_page(0, table, now),
            _ => {
                self.stray();
                // A part whose pages never fit together is no better than a silent one.
                self.phase = PartTurn::Asking { misses, table: PartTable::default(), due: add(now, FIRST_PAUSE) };
            }
        }
    }

    /// Ends or keeps a call whose part has started anew. `refused` is the part's word that this try did not run.
    fn started_anew(&mut self, flight: Flight, refused: bool, now: Duration) {
        if flight.order.is_repeatable && flight.tries < MOST_TRIES && !flight.was_refused {
            let tries = if refused && flight.tries == 1 { 0 } else { flight.tries };
            self.waiting.push_front(Flight { tries, was_refused: true, ..flight });
        } else {
            // A tool that has run may end by the same word: what may run once is not sent again on it.
            self.done(flight.order.id, CallEnd::Unknown(Unknown::StartedAnew));
        }
        self.ask(0, now);
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
        self.stand(PartStanding::Alive);
        self.go_on(now);
    }

    /// Sends the next call, or rests.
    fn go_on(&mut self, now: Duration) {
        self.phase = PartTurn::Resting { due: add(now, self.settings.heartbeat) };
        while let Some(flight) = self.waiting.pop_front() {
            let seq = self.next_seq();
            let most = self.table.as_ref().map_or(u8::MAX, |table| table.most_bytes);
            if self.wire.fits(&flight.order, seq, most) {
                return self.send(flight, seq, now);
            }
            self.done(flight.order.id, CallEnd::NeverRan(NeverRan::TooLong { most }));
        }
    }

    fn send(&mut self, mut flight: Flight, seq: u8, now: Duration) {
        let bytes = self.wire.call(&flight.order, seq, flight.tries > 0);
        let both_ways = self.wire_time(bytes.len().saturating_add(self.wire.longest_answer()));
        let patience = patience(both_ways, flight.order.work);
        self.steps.push_back(PartStep::Send(bytes));
        flight.tries = flight.tries.saturating_add(1);
        self.phase = PartTurn::Calling { flight, seq, due: add(now, patience) };
    }

    fn ask(&mut self, misses: u8, now: Duration) {
        self.ask_page(misses, PartTable::default(), now);
    }

    fn ask_page(&mut self, misses: u8, table: PartTable, now: Duration) {
        let first = u8::try_from(table.rows.len()).unwrap_or(u8::MAX);
        if !self.wire.lists_tools() {
            self.next_seq();
        }
        self.steps.push_back(PartStep::Send(self.wire.ask(self.seq, first, self.boot)));
        let pause = FIRST_PAUSE.saturating_mul(1 << misses.min(5)).min(LONGEST_PAUSE);
        let due = add(now, pause.saturating_add(self.wire_time(self.wire.longest_answer())));
        self.phase = PartTurn::Asking { misses, table, due };
    }

    fn beat(&mut self, misses: u8, now: Duration) {
        // A part with a table counts calls alone: numbers that heartbeats used up would make the next call look like a late one.
        let seq = if self.wire.lists_tools() { self.next_beat() } else { self.next_seq() };
        let bytes = self.wire.heartbeat(seq);
        let patience = self.wire_time(bytes.len()).saturating_mul(4).saturating_add(GRACE);
        self.steps.push_back(PartStep::Send(bytes));
        self.phase = PartTurn::Beating { seq, misses, due: add(now, patience) };
    }

    fn next_seq(&mut self) -> u8 {
        self.seq = self.seq.checked_add(1).unwrap_or(1);
        self.seq
    }

    fn next_beat(&mut self) -> u8 {
        self.beats = self.beats.checked_add(1).unwrap_or(1);
        self.beats
    }

    fn stray(&mut self) {
        self.tally.stray = self.tally.stray.saturating_add(1);
    }

    fn done(&mut self, id: u64, outcome: CallEnd) {
        self.steps.push_back(PartStep::Done { id, outcome });
    }

    /// Notes a standing. Nothing waits for a silent part.
    fn stand(&mut self, standing: PartStanding) {
        if matches!(standing, PartStanding::Silent | PartStanding::Babbling) {
            for flight in core::mem::take(&mut self.waiting) {
                let ran = flight.tries > 0;
                let outcome = if ran { CallEnd::Unknown(Unknown::StartedAnew) } else { CallEnd::NeverRan(NeverRan::Silent) };
                self.done(flight.order.id, outcome);
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
