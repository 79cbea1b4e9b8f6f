//! The thread that writes the record. Nobody else touches the lines; what it can't write it counts, and tries again with what comes next.
//! It does not wait for the disk: that is done behind it, in `keeper.rs`.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use audit::record::{Gap, Record};

use super::clock::now;
use super::keeper::Keeping;
use super::queue::{Batch, Item, Waiting};
use super::recover::{self, Opened};
use super::volume::{Bounds, Line, Volume};
use super::{JournalError, Shared, Standing};

/// Entries are signed for after this long at most, or when there are this many.
const SIGNED_AFTER: Duration = Duration::from_secs(1);
const SIGNED_AT: u64 = 1 << 16;

/// What nobody waits for is written in so many parts at most, of so many entries at least, with a pause between them: a worker that
/// shares its core with this thread would keep all its callers waiting meanwhile.
const SPREAD: usize = 32;
const FEW: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

/// Writes until the queue ends.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut writer = Writer { shared, open: None, missing: 0, missing_since: 0, signed: Instant::now(), reached: None };
    let mut recycled = Batch::default();
    if let Err(error) = writer.open().map(drop) {
        writer.failed(&error);
    }
    loop {
        let batch = shared.queue.take(std::mem::take(&mut recycled), writer.due());
        writer.look();
        match batch {
            Some(batch) => recycled = writer.write(batch),
            None if shared.queue.is_ending() => break,
            None => {}
        }
        writer.sign();
    }
    writer.stop();
}

struct Writer<'a> {
    shared: &'a Arc<Shared>,
    open: Option<Open>,
    /// What could not be written, and since when; the record is told of it as soon as it can be.
    missing: u64,
    missing_since: u64,
    /// When it was asked to sign last.
    signed: Instant,
    /// How many entries had been written of which chain when its files had to be read again.
    reached: Option<(u32, u64)>,
}

/// The record, open for writing. In this order: what was written is made to last before another gate may write here.
struct Open {
    volume: Volume,
    keeping: Keeping,
    _lock: File,
}

impl Open {
    /// How many entries no checkpoint has yet, nor the one that is being made.
    fn unsigned(&self) -> u64 {
        self.keeping.signed().map_or(0, |signed| self.volume.size().saturating_sub(signed))
    }

    fn order(&mut self, waiting: Vec<Waiting>, is_signed: bool) {
        self.volume.orders(waiting, is_signed).into_iter().for_each(|order| self.keeping.give(order));
    }
}

impl Writer<'_> {
    /// When to come back although nothing is to be written; `None`: never.
    fn due(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        let is_signed = open.keeping.signed() == Some(open.volume.size());
        (!is_signed).then(|| SIGNED_AFTER.saturating_sub(self.signed.elapsed()))
    }

    fn write(&mut self, mut batch: Batch) -> Batch {
        let waiting: Vec<_> = batch.items.iter_mut().filter_map(|item| item.waiting.take()).collect();
        match self.try_write(&batch, !waiting.is_empty()) {
            // Those who wait hear of it once it is on the disk.
            Ok(()) => {
                if let Some(open) = &mut self.open {
                    open.order(waiting, false);
                }
            }
            Err((written, error)) => {
                // Whoever waits is told, and does without what was to be recorded: that is no gap.
                let lost = batch.missing + (batch.items.len() as u64).saturating_sub(written + waiting.len() as u64);
                self.lost(lost, batch.items.first().map_or(batch.missing_since, |item| item.time));
                // Those that did not fit were counted by whoever brought them.
                self.shared.unrecorded.fetch_add(lost - batch.missing, Relaxed);
                let told = self.failed(&error);
                waiting.into_iter().for_each(|waiting| _ = waiting.send(Err(told.clone())));
            }
        }
        batch.emptied()
    }

    fn lost(&mut self, lost: u64, since: u64) {
        if self.missing == 0 {
            self.missing_since = since;
        }
        self.missing += lost;
    }

    fn try_write(&mut self, batch: &Batch, is_urgent: bool) -> Result<(), (u64, io::Error)> {
        // Reading files again may show that something is gone.
        self.open().map_err(|error| (0, error))?;
        if self.missing > 0 {
            let gap = Gap { missing: self.missing, since: self.missing_since };
            self.open().and_then(|open| open.volume.note(&Record::Gap(gap))).map_err(|error| (0, error))?;
            (self.missing, self.missing_since) = (0, 0);
        }
        let shared = self.shared;
        let volume = &mut self.open().map_err(|error| (0, error))?.volume;
        let most = if is_urgent { batch.items.len() } else { (batch.items.len() / SPREAD).max(FEW) };
        let mut written = 0;
        for items in batch.items.chunks(most.max(1)) {
            if written > 0 {
                shared.queue.rest(PAUSE);
            }
            let lines = items.iter().map(|item| line(item, &batch.text));
            written += volume.write(lines).map_err(|(more, error)| (written + more, error))?;
        }
        if batch.missing > 0 {
            let gap = Gap { missing: batch.missing, since: batch.missing_since };
            volume.note(&Record::Gap(gap)).map_err(|error| (batch.items.len() as u64, error))?;
        }
        Ok(())
    }

    /// The open record; where it is not open, it is opened.
    fn open(&mut self) -> io::Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let settings = &self.shared.settings;
                let bounds = Bounds { bytes: settings.audit.keep_bytes, age: settings.audit.keep_for };
                let opened = recover::open(&settings.state_dir, &settings.home, bounds, &settings.node, &settings.flush)?;
                let Opened { volume, keeper, found, dir, lock } = opened;
                if let Some((_, reached)) = self.reached.take().filter(|(number, _)| *number == volume.number()) {
                    let lost = reached.saturating_sub(found);
                    self.lost(lost, now());
                    self.shared.unrecorded.fetch_add(lost, Relaxed);
                }
                self.shared.status.store(Arc::new(Standing { dir: Some(dir), failing: None }));
                Open { volume, keeping: Keeping::start(keeper, self.shared)?, _lock: lock }
            }
        };
        Ok(self.open.insert(open))
    }

    /// Says so. Where it is not known what is in the files, they are read again before anything else is written.
    fn failed(&mut self, error: &io::Error) -> JournalError {
        let told = self.shared.failed(error);
        self.look();
        told
    }

    /// Closes files that have to be read again.
    fn look(&mut self) {
        if let Some(open) = self.open.take_if(|open| open.volume.is_torn || open.keeping.is_torn()) {
            self.reached = Some((open.volume.number(), open.volume.size()));
        }
    }

    fn sign(&mut self) {
        let Some(open) = &mut self.open else { return };
        let is_late = self.signed.elapsed() >= SIGNED_AFTER;
        let unsigned = open.unsigned();
        if unsigned >= SIGNED_AT || (unsigned > 0 && is_late) {
            open.order(Vec::new(), true);
        } else if !is_late {
            return;
        }
        self.signed = Instant::now();
    }

    /// Says that the gate ends, and waits until all of it is on the disk.
    fn stop(&mut self) {
        let missing = self.missing;
        let Some(open) = &mut self.open else { return };
        let gap = Record::Gap(Gap { missing, since: self.missing_since });
        let told = if missing > 0 { open.volume.note(&gap) } else { Ok(()) };
        let stopped = told.and_then(|()| open.volume.note(&Record::Stopped));
        open.order(Vec::new(), true);
        if let Err(error) = stopped {
            self.failed(&error);
        }
        self.open = None;
    }
}

/// An intent and its outcome are one entry where both are there.
fn line<'a>(item: &Item, text: &'a [u8]) -> Line<'a> {
    let facts = &text[item.facts.clone()];
    match &item.outcome {
        None => Line { event: item.event, time: item.time, facts: [facts, b"", b"", b"", b""] },
        Some(outcome) => {
            let facts = [&b"{\"intent\":"[..], facts, b",\"outcome\":", &text[outcome.clone()], b"}"];
            Line { event: "called", time: item.time, facts }
        }
    }
}
