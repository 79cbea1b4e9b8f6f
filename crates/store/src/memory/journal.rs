//! Record in memory: a real chain, of which the newest entries are kept. Never full, so that no principal has too large a part.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use audit::arguments::ArgumentDetail;
use audit::chain::Chain;
use audit::record::{Ended, Intent, Outcome, Record, Started};
use futures_util::future::{BoxFuture, ready};

use crate::{AROUND, CallIds, Journal, JournalError, OverShare, Part, Refusal, Repeats, Standing, Ticket, Way};

/// Bytes of entries kept; the oldest go first.
const MOST: usize = 16 << 20;

/// Record that ends with the process.
#[derive(Debug)]
pub struct MemoryJournal {
    ids: CallIds,
    kept: Mutex<Lines>,
    parts: Mutex<HashMap<Arc<str>, Arc<Part>>>,
    repeats: Mutex<Repeats>,
    unrecorded: AtomicU64,
    has_ended: AtomicBool,
}

#[derive(Debug, Default)]
struct Lines {
    chain: Chain,
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    removed: u64,
}

impl Lines {
    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > MOST
            && let Some(oldest) = self.lines.pop_front()
        {
            self.bytes -= oldest.len();
            self.removed += 1;
        }
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new("0123456789abcdef")
    }
}

impl MemoryJournal {
    /// Begins a record. Ids of calls begin with these hexadecimal digits.
    pub fn new(random: &str) -> Self {
        Self {
            ids: CallIds::new(random),
            kept: Mutex::default(),
            parts: Mutex::default(),
            repeats: Mutex::new(Repeats::new(MOST as u64, Instant::now())),
            unrecorded: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Lines of kept entries, the oldest first.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        lock(&self.kept).lines.iter().cloned().collect()
    }

    /// Appends a record; gives the length of its facts, in bytes.
    fn push(&self, record: &Record<'_>) -> Result<usize, JournalError> {
        if self.has_ended.load(Relaxed) {
            return Err(JournalError("the gate is ending".to_owned()));
        }
        let mut record = record.clone();
        record.fit();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (time, mut line) = (u64::try_from(since.as_micros()).unwrap_or(u64::MAX), Vec::new());
        let mut kept = lock(&self.kept);
        match kept.chain.append(time, &record, &mut line) {
            Ok(_) => {
                let length = line.len();
                kept.push(line);
                Ok(length.saturating_sub(usize::try_from(AROUND).unwrap_or(usize::MAX)))
            }
            Err(error) => {
                self.unrecorded.fetch_add(1, Relaxed);
                Err(JournalError(error.to_string()))
            }
        }
    }

    fn push_for(&self, part: &Part, record: &Record<'_>) -> Result<(), JournalError> {
        let bytes = self.push(record)?;
        part.add(bytes as u64 + AROUND);
        Ok(())
    }

    fn tell_counted(&self, is_end: bool) {
        let due = lock(&self.repeats).due(Instant::now(), is_end);
        due.iter().for_each(|record| self.append(record));
    }
}

impl Journal for MemoryJournal {
    fn is_on(&self) -> bool {
        true
    }

    fn wanted(&self) -> ArgumentDetail {
        ArgumentDetail::default()
    }

    fn ids(&self) -> &CallIds {
        &self.ids
    }

    fn part(&self, principal: &str) -> Arc<Part> {
        let mut parts = lock(&self.parts);
        parts.retain(|name, part| Arc::strong_count(part) > 1 || **name == *principal);
        let name: Arc<str> = principal.into();
        Arc::clone(parts.entry(Arc::clone(&name)).or_insert_with(|| Part::empty(&name)))
    }

    fn share_by(&self, _percent: usize) {}

    fn over_share(&self) -> Vec<OverShare> {
        Vec::new()
    }

    fn append(&self, record: &Record<'_>) {
        // What could not be appended was counted.
        let (Ok(_) | Err(_)) = self.push(record);
    }

    fn append_for(&self, principal: &str, record: &Record<'_>) {
        let (Ok(()) | Err(_)) = self.push_for(&self.part(principal), record);
    }

    fn append_durable(&self, part: &Part, record: &Record<'_>) -> BoxFuture<'static, Result<(), JournalError>> {
        Box::pin(ready(self.push_for(part, record)))
    }

    fn intend(&self, part: &Part, intent: Intent<'_>) -> Option<Ticket> {
        let (Ok(()) | Err(_)) = self.push_for(part, &Record::Intended(intent));
        None
    }

    fn ended(&self, part: &Part, _ticket: Option<Ticket>, call: &dyn Fn() -> String, outcome: Outcome<'_>) {
        let ended = Ended { call: call().into(), outcome };
        let (Ok(()) | Err(_)) = self.push_for(part, &Record::Ended(ended));
    }

    fn count_refusal(&self, principal: &str, reason: &str) -> Way {
        lock(&self.repeats).count(principal, reason, false, Instant::now())
    }

    fn refuse(&self, way: Way, refusal: Refusal<'_>) {
        match way {
            Way::Alone => {
                let principal = refusal.principal().to_owned();
                let Ok(bytes) = self.push(&refusal.into_record()) else { return };
                self.part(&principal).add(bytes as u64 + AROUND);
                lock(&self.repeats).spend(&principal, bytes, Instant::now());
            }
            Way::First => lock(&self.repeats).keep(&refusal, Instant::now()),
            Way::Counted => {}
        }
    }

    fn sweep(&self) {
        self.tell_counted(false);
    }

    fn standing(&self) -> Arc<Standing> {
        Arc::default()
    }

    fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Relaxed)
    }

    fn removed(&self) -> u64 {
        lock(&self.kept).removed
    }

    fn is_full(&self) -> bool {
        false
    }

    fn start(&self) {
        let version = env!("CARGO_PKG_VERSION").into();
        self.append(&Record::Started(Started { after: None, node: "memory".into(), version }));
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.tell_counted(true);
        self.append(&Record::Stopped);
        self.has_ended.store(true, Relaxed);
        Box::pin(ready(()))
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_in_memory_keeps_what_every_journal_promises() {
        crate::contract::journal::holds(|| {
            let journal = Arc::new(MemoryJournal::default());
            let read = Arc::clone(&journal);
            (journal, Box::new(move || read.lines()))
        })
        .await;
    }

    #[test]
    fn the_oldest_entries_go_beyond_the_size() {
        let mut kept = Lines::default();
        (0..5).for_each(|_| kept.push(vec![b'x'; MOST / 4]));
        assert_eq!((kept.lines.len(), kept.bytes, kept.removed), (4, MOST, 1));
    }
}
