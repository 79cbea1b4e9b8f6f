//! Queue of calls' records. While the record is open, each call appends its own line to the chain, in memory, and the writing thread takes
//! many at once; while the record is closed, lines are held. Bounded: records beyond are counted, and become a gap in the record. Knows no
//! files.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use audit::bounds::MAX_FACTS;
use audit::record::{Gap, Record};
use runtime::clock::{micros, wall};
use store::{JournalError, Ticket};
use tokio::sync::oneshot;

use super::draft::{Draft, Piece};
use super::running::RunningIntents;

/// Most bytes and most records that may wait.
const MOST_BYTES: usize = 8 << 20;
const MOST_ITEMS: usize = 1 << 16;
/// Bytes written at once; bounded, since the writing thread shares a core with waiting calls.
const PIECE: usize = 64 << 10;
/// Longest delay of a record without a waiter, written together with those that come meanwhile. An intent waits as long for its outcome,
/// and up to as long again until the next look.
const LINGER: Duration = Duration::from_millis(25);

/// Waiter for a record to be on the disk.
pub(super) type Waiter = oneshot::Sender<Result<(), JournalError>>;

/// A record without a place in the chain.
pub(super) struct Item {
    pub(super) event: &'static str,
    pub(super) time: u64,
    /// Range of its facts in the text.
    pub(super) facts: Range<usize>,
}

/// Records that came while the record was not open.
#[derive(Default)]
pub(super) struct HeldRecords {
    pub(super) text: Vec<u8>,
    pub(super) items: Vec<Item>,
    /// Waiters for any of these records.
    pub(super) waiting: Vec<Waiter>,
    /// Records without room, and the time of the first.
    pub(super) missing: u64,
    pub(super) missing_since: u64,
}

/// Records written together: pieces of the chain, or records without a place in it.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) pieces: Vec<Piece>,
    pub(super) held: HeldRecords,
}

/// Queue of records.
#[derive(Default)]
pub(super) struct Queue {
    desk: Mutex<Desk>,
    wake: Condvar,
    ends: AtomicBool,
    missed: AtomicU64,
    /// Set while what is on its way takes all the room that was found for the record.
    is_out: AtomicBool,
}

#[derive(Default)]
struct Desk {
    /// `None` while the record is not open.
    draft: Option<Draft>,
    /// Bytes of all lines since the record was opened with which the record is full; `None` until that is known.
    room: Option<u64>,
    held: HeldRecords,
    running: RunningIntents,
    /// A waiter is there.
    is_urgent: bool,
}

impl Queue {
    /// Adds a record. Returns `false` for a record without room, or too long for an entry, which counts as missing. An awaited record
    /// always has room, since there are no more of those than calls.
    pub(super) fn push(&self, event: &'static str, facts: &[u8], waiting: Option<Waiter>) -> bool {
        let time = wall();
        self.at(|desk| desk.put(event, time, &[facts], waiting))
    }

    /// Keeps an intent made at `since` for its outcome. `None` without room to keep it: the intent becomes a record of its own.
    pub(super) fn intend(&self, since: u64, facts: &[u8]) -> Option<Ticket> {
        let mut ticket = None;
        self.at(|desk| {
            let is_full = desk.running.len() >= MOST_ITEMS || desk.running.bytes() + facts.len() > MOST_BYTES;
            if is_full || facts.len() > MAX_FACTS {
                return desk.put("intended", wall(), &[facts], None);
            }
            ticket = Some(desk.running.put(since, facts));
            true
        });
        ticket
    }

    /// Writes the outcome together with its intent; `false` if the intent has been written.
    pub(super) fn join(&self, ticket: Ticket, outcome: &[u8]) -> bool {
        let (time, mut is_here) = (wall(), false);
        self.at(|desk| {
            let Some(intent) = desk.running.take_facts(ticket) else { return true };
            is_here = true;
            let fits = desk.put("called", time, &[b"{\"intent\":", &intent, b",\"outcome\":", outcome, b"}"], None);
            desk.running.done(ticket, intent);
            fits
        });
        is_here
    }

    /// Takes all records, once there are some and waiting would gain nothing; `spare` is filled next. `None` after `longest` without any,
    /// or at the end.
    pub(super) fn take_batch(&self, spare: Vec<u8>, longest: Option<Duration>) -> Option<Batch> {
        let is_idle = |desk: &mut Desk| desk.is_idle() && !self.is_ending();
        let desk = self.lock();
        let mut desk = match longest {
            Some(longest) => self.wake.wait_timeout_while(desk, longest, is_idle).unwrap_or_else(PoisonError::into_inner).0,
            None => self.wake.wait_while(desk, is_idle).unwrap_or_else(PoisonError::into_inner),
        };
        if desk.is_idle() {
            return None;
        }
        let can_wait = |desk: &mut Desk| !desk.is_urgent && !desk.is_much() && !self.is_ending();
        desk = self.wake.wait_timeout_while(desk, LINGER, can_wait).unwrap_or_else(PoisonError::into_inner).0;
        let now = wall();
        // Threads may not see quite the same time.
        let young = if self.is_ending() { 0..0 } else { now.saturating_sub(micros(LINGER))..now.saturating_add(micros(LINGER)) };
        Some(desk.take_batch(spare, &young))
    }

    /// Opens the record: calls put their lines behind `draft` from now on.
    pub(super) fn open(&self, mut draft: Draft) {
        let mut desk = self.lock();
        let held = std::mem::take(&mut desk.held);
        held.write(&mut draft);
        draft.wait(held.waiting);
        desk.draft = Some(draft);
    }

    /// Closes the record; returns the pieces of the chain not taken.
    pub(super) fn close(&self) -> Vec<Piece> {
        self.lock().draft.take().map(|mut draft| draft.take_pieces(Vec::new())).unwrap_or_default()
    }

    /// Sets the bytes of all lines since the record was opened with which the record is full.
    pub(super) fn set_room(&self, bytes: u64) {
        let mut desk = self.lock();
        desk.room = Some(bytes);
        self.is_out.store(desk.is_out(), Ordering::Relaxed);
    }

    /// Tells if the lines on their way take all the room that was found for the record.
    pub(super) fn is_out(&self) -> bool {
        self.is_out.load(Ordering::Relaxed)
    }

    /// Records without room since the gate began.
    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Ends the queue; nothing more will come.
    pub(super) fn end_queue(&self) {
        self.ends.store(true, Ordering::Release);
        // The lock keeps `take_batch` from missing the flag between its check and its wait.
        drop(self.lock());
        self.wake.notify_one();
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    fn at(&self, change: impl FnOnce(&mut Desk) -> bool) -> bool {
        let mut desk = self.lock();
        let before = (desk.is_idle(), desk.is_urgent, desk.is_much());
        let fits = change(&mut desk);
        if desk.is_out() {
            self.is_out.store(true, Ordering::Relaxed);
        }
        let wakes = before.0 || (desk.is_urgent && !before.1) || (desk.is_much() && !before.2);
        drop(desk);
        if wakes {
            self.wake.notify_one();
        }
        if !fits {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn put(&mut self, event: &'static str, time: u64, facts: &[&[u8]], waiting: Option<Waiter>) -> bool {
        if facts.iter().map(|part| part.len()).sum::<usize>() > MAX_FACTS {
            // Refused now, since held records have no place at which a single waiter could be refused.
            if let Some(waiting) = waiting {
                drop(waiting.send(Err(JournalError("it is longer than an entry of the record may be".into()))));
            }
            return self.miss(time);
        }
        let is_urgent = waiting.is_some();
        let waits = self.draft.as_ref().map_or(self.held.text.len(), Draft::len);
        if !is_urgent && (waits > MOST_BYTES || self.held.items.len() >= MOST_ITEMS) {
            return self.miss(time);
        }
        self.is_urgent |= is_urgent;
        match &mut self.draft {
            Some(draft) => draft.append(event, time, facts, waiting),
            None => {
                self.held.put(event, time, facts);
                self.held.waiting.extend(waiting);
                true
            }
        }
    }

    /// Counts a missing record.
    fn miss(&mut self, time: u64) -> bool {
        if self.held.missing == 0 {
            self.held.missing_since = time;
        }
        self.held.missing += 1;
        false
    }

    fn take_batch(&mut self, spare: Vec<u8>, young: &Range<u64>) -> Batch {
        let Self { draft, held, running, is_urgent, .. } = self;
        *is_urgent = false;
        running.long(young, |intent| match draft {
            Some(draft) => _ = draft.append("intended", wall(), &[intent], None),
            None => held.put("intended", wall(), &[intent]),
        });
        let Some(draft) = draft else { return Batch { pieces: Vec::new(), held: std::mem::take(held) } };
        if held.missing > 0 {
            draft.note(wall(), &Record::Gap(Gap { missing: std::mem::take(&mut held.missing), since: held.missing_since }));
        }
        Batch { pieces: draft.take_pieces(spare), held: HeldRecords::default() }
    }

    fn is_idle(&self) -> bool {
        let has_lines = self.draft.as_ref().is_some_and(Draft::has_some);
        !has_lines && self.held.is_empty() && self.running.is_empty()
    }

    fn is_out(&self) -> bool {
        let made = self.draft.as_ref().map(Draft::made);
        made.zip(self.room).is_some_and(|(made, room)| made + self.running.bytes() as u64 >= room)
    }

    fn is_much(&self) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.len() >= PIECE) || self.held.items.len() > MOST_ITEMS / 2
    }
}

impl HeldRecords {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.missing == 0
    }

    /// Adds a record, its facts in pieces.
    pub(super) fn put(&mut self, event: &'static str, time: u64, facts: &[&[u8]]) {
        let start = self.text.len();
        facts.iter().for_each(|part| self.text.extend_from_slice(part));
        self.items.push(Item { event, time, facts: start..self.text.len() });
    }

    /// Puts the records of a closed draft in front of those held.
    pub(super) fn behind(self, pieces: Vec<Piece>) -> Self {
        let mut all = Self { missing: self.missing, missing_since: self.missing_since, ..Self::default() };
        for piece in pieces {
            piece.each(|event, time, facts| all.put(event, time, &[facts]));
            all.waiting.extend(piece.waiting);
        }
        self.items.iter().for_each(|item| all.put(item.event, item.time, &[&self.text[item.facts.clone()]]));
        all.waiting.extend(self.waiting);
        all
    }

    /// Writes all records to `draft`, without their waiters.
    pub(super) fn write(&self, draft: &mut Draft) {
        for item in &self.items {
            draft.append(item.event, item.time, &[&self.text[item.facts.clone()]], None);
        }
        if self.missing > 0 {
            draft.note(wall(), &Record::Gap(Gap { missing: self.missing, since: self.missing_since }));
        }
    }
}

#[cfg(test)]
mod tests {
    use audit::chain::Chain;

    use super::*;

    fn lines(taken: &Batch) -> Vec<&str> {
        taken.pieces.iter().flat_map(|piece| std::str::from_utf8(&piece.text).unwrap().lines()).collect()
    }

    #[test]
    fn an_outcome_joins_its_intent_until_that_is_taken() {
        let queue = Queue::default();
        queue.open(Draft::behind(Chain::new(), 0, 1 << 20));
        let (quick, slow) = (queue.intend(wall(), b"1").unwrap(), queue.intend(0, b"2").unwrap());
        assert!(queue.join(quick, b"3"));
        let taken = queue.take_batch(Vec::new(), None).unwrap();
        let begins = lines(&taken).iter().map(|line| line.split(",\"prev\"").next().unwrap()).collect::<Vec<_>>();
        assert_eq!(begins, [r#"{"event":"called","facts":{"intent":1,"outcome":3}"#, r#"{"event":"intended","facts":2"#]);
        assert!(!queue.join(slow, b"late") && !queue.join(quick, b"twice"));
        assert!(queue.take_batch(Vec::new(), Some(Duration::ZERO)).is_none());
    }

    #[test]
    fn records_held_while_closed_are_written_with_their_waiters() {
        let queue = Queue::default();
        let (done, mut kept) = oneshot::channel();
        assert!(queue.push("a", b"1", Some(done)));
        queue.open(Draft::behind(Chain::new(), 0, 1 << 20));
        assert!(queue.push("b", b"2", None));
        let mut taken = queue.take_batch(Vec::new(), None).unwrap();
        assert_eq!((taken.pieces[0].entries, taken.pieces[0].waiting.len()), (2, 1));
        assert!(kept.try_recv().is_err());
        assert!(taken.pieces[0].waiting.pop().unwrap().send(Ok(())).is_ok());
        assert!(queue.push("c", b"3", None));
        let held = HeldRecords::default().behind(queue.close());
        assert_eq!((held.items.len(), held.waiting.len()), (0, 0), "an event of this version is wanted");
    }

    #[test]
    fn h1_a_record_that_fits_no_entry_is_refused() {
        for is_open in [false, true] {
            let queue = Queue::default();
            if is_open {
                queue.open(Draft::behind(Chain::new(), 0, 1 << 20));
            }
            let (done, mut kept) = oneshot::channel();
            assert!(!queue.push("a", &[b'x'; 70_000], Some(done)));
            assert!(matches!(kept.try_recv(), Ok(Err(_))), "{is_open}");
            assert!(queue.intend(wall(), &[b'x'; 70_000]).is_none());
            assert_eq!(queue.missed(), 2);
            let taken = queue.take_batch(Vec::new(), None).unwrap();
            if is_open {
                assert!(lines(&taken)[0].contains(r#""missing":2"#));
            } else {
                assert_eq!(taken.held.missing, 2);
            }
        }
    }

    #[test]
    fn lines_and_intents_take_the_room_of_a_record() {
        let queue = Queue::default();
        assert!(queue.push("a", b"1", None));
        queue.open(Draft::behind(Chain::new(), 0, 1 << 20).after(1000));
        queue.set_room(2000);
        assert!(queue.push("a", &[b'x'; 500], None) && !queue.is_out(), "what was written before counts");
        let ticket = queue.intend(wall(), &[b'x'; 500]).unwrap();
        assert!(queue.is_out());
        queue.set_room(9000);
        assert!(!queue.is_out() && queue.join(ticket, b"done"));
        assert!(queue.take_batch(Vec::new(), None).is_some() && !queue.is_out());
        assert!(queue.push("a", &[b'x'; 8000], None) && queue.is_out(), "what was taken counts");
    }

    #[test]
    fn only_awaited_records_fit_into_a_full_queue() {
        for is_open in [false, true] {
            let queue = Queue::default();
            if is_open {
                queue.open(Draft::behind(Chain::new(), 0, 1 << 20));
            }
            let long = vec![b'x'; 60 << 10];
            let fits = (0..).take_while(|_| queue.push("a", &long, None)).count();
            assert_eq!(fits, MOST_BYTES / long.len() + 1, "{is_open}");
            assert!(!queue.push("a", b"x", None) && queue.missed() == 2);
            assert!(queue.push("a", b"x", Some(oneshot::channel().0)));
            let taken = queue.take_batch(Vec::new(), None).unwrap();
            if is_open {
                assert!(lines(&taken).last().unwrap().contains(r#""missing":2"#));
            } else {
                assert!(taken.held.missing == 2 && taken.held.missing_since > 0);
            }
        }
    }
}
