//! The thread that writes the record. Nobody else touches the files; what it can't write it counts, and tries again with what comes next.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use audit::record::{Gap, Record};

use super::queue::{Batch, Item};
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
    let mut writer = Writer { shared, open: None, missing: 0, missing_since: 0, signed: Instant::now() };
    let mut recycled = Batch::default();
    if let Err(error) = writer.volume().map(drop) {
        writer.failed(&error);
    }
    loop {
        match shared.queue.take(std::mem::take(&mut recycled), writer.due()) {
            Some(batch) => recycled = writer.write(batch),
            None if shared.queue.is_ending() => break,
            None => {}
        }
        writer.sign(false);
    }
    writer.stop();
}

struct Writer<'a> {
    shared: &'a Shared,
    open: Option<(Volume, File)>,
    /// What could not be written, and since when; the record is told of it as soon as it can be.
    missing: u64,
    missing_since: u64,
    signed: Instant,
}

impl Writer<'_> {
    /// When to come back although nothing is to be written; `None`: never.
    fn due(&self) -> Option<Duration> {
        let (volume, _) = self.open.as_ref()?;
        (volume.unsigned() > 0).then(|| SIGNED_AFTER.saturating_sub(self.signed.elapsed()))
    }

    fn write(&mut self, mut batch: Batch) -> Batch {
        let waiting: Vec<_> = batch.items.iter_mut().filter_map(|item| item.waiting.take()).collect();
        let outcome = self.try_write(&batch, !waiting.is_empty());
        let lost = match &outcome {
            Ok(()) => 0,
            // Whoever waits is told, and does without what was to be recorded: that is no gap.
            Err((written, _)) => batch.missing + (batch.items.len() as u64).saturating_sub(*written + waiting.len() as u64),
        };
        if lost > 0 {
            let since = batch.items.first().map(|item| item.time).filter(|_| outcome.is_err());
            if self.missing == 0 {
                self.missing_since = since.unwrap_or(batch.missing_since);
            }
            self.missing += lost;
            // Those that did not fit were counted by whoever brought them.
            self.shared.unrecorded.fetch_add(lost - batch.missing, Relaxed);
        }
        let told = outcome.map_err(|(_, error)| self.failed(&error));
        // Nobody may wait any more.
        waiting.into_iter().for_each(|waiting| _ = waiting.send(told.clone()));
        if told.is_ok() {
            self.recovered();
        }
        batch.emptied()
    }

    fn try_write(&mut self, batch: &Batch, is_kept: bool) -> Result<(), (u64, io::Error)> {
        let (missing, since) = (self.missing, self.missing_since);
        let volume = self.volume().map_err(|error| (0, error))?;
        if missing > 0 {
            volume.note(&Record::Gap(Gap { missing, since }), false).map_err(|error| (0, error))?;
            (self.missing, self.missing_since) = (0, 0);
        }
        let queue = &self.shared.queue;
        let volume = self.volume().map_err(|error| (0, error))?;
        let most = if is_kept { batch.items.len() } else { (batch.items.len() / SPREAD).max(FEW) };
        let mut written = 0;
        for items in batch.items.chunks(most.max(1)) {
            if written > 0 {
                queue.rest(PAUSE);
            }
            let lines = items.iter().map(|item| line(item, &batch.text));
            written += volume.write(lines, is_kept).map_err(|(more, error)| (written + more, error))?;
        }
        if batch.missing > 0 {
            let gap = Gap { missing: batch.missing, since: batch.missing_since };
            volume.note(&Record::Gap(gap), false).map_err(|error| (batch.items.len() as u64, error))?;
        }
        Ok(())
    }

    /// The open record; where it is not open, it is opened.
    fn volume(&mut self) -> io::Result<&mut Volume> {
        let (volume, _) = match self.open.take() {
            Some(open) => self.open.insert(open),
            None => {
                let settings = &self.shared.settings;
                let bounds = Bounds { bytes: settings.audit.keep_bytes, age: settings.audit.keep_for };
                let Opened { volume, dir, lock } = recover::open(&settings.state_dir, &settings.home, bounds, &settings.node)?;
                self.shared.status.store(Arc::new(Standing { dir: Some(dir), failing: None }));
                self.open.insert((volume, lock))
            }
        };
        Ok(volume)
    }

    /// Says so, once. Where it is not known what is in the files, they are read again before anything else is written.
    fn failed(&mut self, error: &io::Error) -> JournalError {
        let standing = self.shared.status.load_full();
        if standing.failing.is_none() {
            tracing::error!(%error, "nothing can be recorded: calls that wait for the record are refused, all others go unrecorded");
        }
        self.shared.status.store(Arc::new(Standing { failing: Some(error.to_string()), ..(*standing).clone() }));
        self.open = self.open.take().filter(|(volume, _)| !volume.is_torn);
        JournalError(error.to_string())
    }

    fn recovered(&mut self) {
        let standing = self.shared.status.load_full();
        if standing.failing.is_some() {
            tracing::warn!("the record is written again");
            self.shared.status.store(Arc::new(Standing { failing: None, ..(*standing).clone() }));
        }
    }

    fn sign(&mut self, at_once: bool) {
        let Some((volume, _)) = &mut self.open else { return };
        let is_due = volume.unsigned() > 0 && (self.signed.elapsed() >= SIGNED_AFTER || volume.unsigned() >= SIGNED_AT || at_once);
        if !is_due {
            return;
        }
        self.signed = Instant::now();
        if let Err(error) = volume.checkpoint() {
            self.failed(&error);
        }
    }

    fn stop(&mut self) {
        let missing = self.missing;
        let Some((volume, _)) = &mut self.open else { return };
        let gap = Record::Gap(Gap { missing, since: self.missing_since });
        let told = if missing > 0 { volume.note(&gap, false) } else { Ok(()) };
        if let Err(error) = told.and_then(|()| volume.note(&Record::Stopped, true)) {
            self.failed(&error);
        }
        self.sign(true);
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
