//! What is to be written and is not yet: one buffer that calls fill and the writer empties, used again and again. Bounded: what does not
//! fit is counted, and becomes a gap in the record. It does not know files.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::JournalError;
use super::clock::now;

/// How much text may wait, in bytes, and how many records.
const MOST_BYTES: usize = 8 << 20;
const MOST_ITEMS: usize = 1 << 16;
/// What nobody waits for is written this much later at most, together with what came meanwhile.
const LINGER: Duration = Duration::from_millis(50);

/// Whoever waits until a record is on the disk.
pub(super) type Waiting = oneshot::Sender<Result<(), JournalError>>;

/// One record that waits to be written.
pub(super) struct Item {
    pub(super) event: &'static str,
    pub(super) time: u64,
    /// Where its facts stand in the text of the batch.
    pub(super) facts: Range<usize>,
    /// An intent whose call was over before it was written: where the outcome stands.
    pub(super) outcome: Option<Range<usize>>,
    pub(super) waiting: Option<Waiting>,
}

/// What is written with one go.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    pub(super) items: Vec<Item>,
    /// Records that did not fit, and since when.
    pub(super) missing: u64,
    pub(super) missing_since: u64,
    /// Somebody waits for it.
    is_urgent: bool,
    number: u64,
}

/// Where an intent stands, for its outcome to be put beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    batch: u64,
    item: usize,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    filling: Mutex<Batch>,
    wake: Condvar,
    ends: std::sync::atomic::AtomicBool,
}

impl Queue {
    /// Adds a record. `None`: there is no room, and it was counted as missing; one that somebody waits for always has room, for there are
    /// no more of those than calls.
    pub(super) fn push(&self, event: &'static str, facts: &[u8], waiting: Option<Waiting>) -> Option<Ticket> {
        let mut batch = self.lock();
        let is_urgent = waiting.is_some();
        let is_full = batch.text.len() + facts.len() > MOST_BYTES || batch.items.len() >= MOST_ITEMS;
        if is_full && !is_urgent {
            if batch.missing == 0 {
                batch.missing_since = now();
            }
            batch.missing += 1;
            return None;
        }
        let start = batch.text.len();
        batch.text.extend_from_slice(facts);
        let (first, item) = (batch.items.is_empty(), batch.items.len());
        let facts = start..batch.text.len();
        batch.items.push(Item { event, time: now(), facts, outcome: None, waiting });
        let wakes = first || (is_urgent && !batch.is_urgent) || item == MOST_ITEMS / 2;
        batch.is_urgent |= is_urgent;
        let ticket = Ticket { batch: batch.number, item };
        drop(batch);
        if wakes {
            self.wake.notify_one();
        }
        Some(ticket)
    }

    /// Puts the outcome beside an intent that is still here; `false`: it has been written.
    pub(super) fn join(&self, ticket: Ticket, outcome: &[u8]) -> bool {
        let mut batch = self.lock();
        if batch.number != ticket.batch {
            return false;
        }
        let start = batch.text.len();
        batch.text.extend_from_slice(outcome);
        let outcome = start..batch.text.len();
        if let Some(item) = batch.items.get_mut(ticket.item) {
            item.outcome = Some(outcome);
        }
        true
    }

    /// What has come, once there is something and nobody would gain by waiting; `empty` is filled from now on. `None`: nothing came until
    /// `longest` had passed, or it ends.
    pub(super) fn take(&self, empty: Batch, longest: Option<Duration>) -> Option<Batch> {
        let is_idle = |batch: &mut Batch| batch.items.is_empty() && batch.missing == 0 && !self.is_ending();
        let batch = self.lock();
        let mut batch = match longest {
            Some(longest) => self.wake.wait_timeout_while(batch, longest, is_idle).unwrap_or_else(PoisonError::into_inner).0,
            None => self.wake.wait_while(batch, is_idle).unwrap_or_else(PoisonError::into_inner),
        };
        if batch.items.is_empty() && batch.missing == 0 {
            return None;
        }
        batch = self.linger(batch, LINGER);
        let number = batch.number + 1;
        let taken = std::mem::replace(&mut *batch, Batch { number, ..empty });
        Some(taken)
    }

    /// Returns after so long, or as soon as what has come can't wait.
    pub(super) fn rest(&self, longest: Duration) {
        drop(self.linger(self.lock(), longest));
    }

    fn linger<'a>(&self, batch: MutexGuard<'a, Batch>, longest: Duration) -> MutexGuard<'a, Batch> {
        let can_wait = |batch: &mut Batch| !batch.is_urgent && batch.items.len() <= MOST_ITEMS / 2 && !self.is_ending();
        self.wake.wait_timeout_while(batch, longest, can_wait).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.ends.store(true, std::sync::atomic::Ordering::Release);
        // So that nobody looks between the store and the waiting.
        drop(self.lock());
        self.wake.notify_one();
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ends.load(std::sync::atomic::Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// The same buffers without what was in them.
    pub(super) fn emptied(mut self) -> Self {
        self.text.clear();
        self.items.clear();
        self.text.shrink_to(1 << 20);
        Self { text: self.text, items: self.items, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_joins_its_intent_until_that_is_taken() {
        let queue = Queue::default();
        let ticket = queue.push("intended", b"intent", None).unwrap();
        assert!(queue.join(ticket, b"outcome"));
        let batch = queue.take(Batch::default(), None).unwrap();
        let item = &batch.items[0];
        assert_eq!((&batch.text[item.facts.clone()], &batch.text[item.outcome.clone().unwrap()]), (&b"intent"[..], &b"outcome"[..]));
        assert!(!queue.join(ticket, b"late"));
        assert!(queue.take(batch.emptied(), Some(Duration::ZERO)).is_none());
    }

    #[test]
    fn what_does_not_fit_is_counted_and_what_is_waited_for_fits() {
        let queue = Queue::default();
        let long = vec![b'x'; MOST_BYTES];
        assert!(queue.push("a", &long, None).is_some());
        assert!(queue.push("a", b"x", None).is_none() && queue.push("a", b"x", None).is_none());
        assert!(queue.push("a", b"x", Some(oneshot::channel().0)).is_some());
        let batch = queue.take(Batch::default(), None).unwrap();
        assert_eq!((batch.missing, batch.items.len()), (2, 2));
        assert!(batch.missing_since > 0);
    }
}
