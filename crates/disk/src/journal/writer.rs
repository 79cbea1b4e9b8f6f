//! The thread that writes the record. Calls make its lines as long as it can write them; what it can't write it counts, and tries again with
//! what comes next. It does not wait for the disk: that is done behind it, in `keeper.rs`.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant, SystemTime};

use audit::record::{Gap, Record};
use config::resolved::Audit;
use runtime::clock::wall;
use store::{JournalError, Standing};

use super::Shared;
use super::broken::broken;
use super::draft::Piece;
use super::keeper::Keeping;
use super::queue::{Held, Taken, Waiting};
use super::recover::{self, Opened};
use super::volume::{Bounds, Volume};

/// Entries are signed for after this long at most, or when there are this many.
const SIGNED_AFTER: Duration = Duration::from_secs(1);
const SIGNED_AT: u64 = 1 << 16;
/// How much room is kept for what comes next, in bytes.
const ROOM: usize = 1 << 20;

/// Writes until the queue ends.
pub(super) fn run(shared: &Arc<Shared>) {
    let signed = Instant::now();
    let mut writer = Writer { shared, open: None, is_drafted: false, missing: 0, missing_since: 0, signed, reached: None };
    let mut spare = Vec::new();
    match writer.open().map(drop) {
        Ok(()) => writer.draft(),
        Err(error) => drop(writer.failed(&error)),
    }
    loop {
        let taken = shared.queue.take(std::mem::take(&mut spare), writer.due());
        let left = writer.look();
        match taken {
            Some(taken) => spare = writer.write(taken, left),
            None if shared.queue.is_ending() => break,
            None => drop(writer.write(Taken::default(), left)),
        }
        writer.sign();
    }
    writer.stop();
}

struct Writer<'a> {
    shared: &'a Arc<Shared>,
    open: Option<Open>,
    /// Calls put their lines behind what is written.
    is_drafted: bool,
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

    /// Writes what was taken, and what was `left` where the record was closed since. What comes back is room for more.
    fn write(&mut self, taken: Taken, left: Vec<Piece>) -> Vec<u8> {
        let Taken { mut pieces, held } = taken;
        if !self.is_drafted {
            pieces.extend(left);
            let held = held.behind(pieces);
            if !held.is_empty() {
                self.go_on_with(held);
            }
            return Vec::new();
        }
        self.go_on(&mut pieces);
        let mut spare = pieces.pop().map(|piece| piece.text).unwrap_or_default();
        spare.clear();
        spare.shrink_to(ROOM);
        spare
    }

    /// Writes pieces that have their place behind what is written.
    fn go_on(&mut self, pieces: &mut Vec<Piece>) {
        let Some(open) = &mut self.open else { return };
        let (mut written, mut waiting, mut failed) = (0, Vec::new(), None);
        for piece in pieces.iter_mut() {
            if let Err(error) = open.volume.write(piece) {
                failed = Some(error);
                break;
            }
            waiting.append(&mut piece.waiting);
            written += 1;
        }
        self.shared.written.store(open.volume.written(), Release);
        // Those who wait hear of it once it is on the disk.
        open.order(waiting, false);
        if let Some(error) = failed {
            // What came meanwhile stands behind what is not there.
            let rest = self.close();
            self.unwritten(pieces.drain(written..).chain(rest), &error);
        }
    }

    fn unwritten(&mut self, pieces: impl Iterator<Item = Piece>, error: &io::Error) {
        let (mut lost, mut since, mut waiting) = (0, wall(), Vec::new());
        for mut piece in pieces {
            // Whoever waits is told, and does without what was to be recorded: that is no gap.
            lost += piece.entries.saturating_sub(piece.waiting.len() as u64);
            since = since.min(piece.since);
            waiting.append(&mut piece.waiting);
        }
        self.count(lost, since);
        self.tell(waiting, error);
    }

    /// Opens the record where it is not, writes what was held meanwhile, and has calls write behind it.
    fn go_on_with(&mut self, mut held: Held) {
        let waiting = std::mem::take(&mut held.waiting);
        match self.try_with(&held) {
            Ok(()) => {
                if let Some(open) = &mut self.open {
                    open.order(waiting, false);
                }
                self.draft();
            }
            Err((written, error)) => {
                let lost = (held.items.len() as u64).saturating_sub(written + waiting.len() as u64);
                // Those that did not fit were counted by whoever brought them.
                self.lost(held.missing, held.missing_since);
                self.count(lost, held.items.first().map_or_else(wall, |item| item.time));
                self.tell(waiting, &error);
            }
        }
    }

    fn try_with(&mut self, held: &Held) -> Result<(), (u64, io::Error)> {
        // Reading files again may show that something is gone.
        self.open().map_err(|error| (0, error))?;
        if self.missing > 0 {
            let gap = Gap { missing: self.missing, since: self.missing_since };
            self.open().and_then(|open| open.volume.note(&Record::Gap(gap))).map_err(|error| (0, error))?;
            (self.missing, self.missing_since) = (0, 0);
        }
        let shared = Arc::clone(self.shared);
        let volume = &mut self.open().map_err(|error| (0, error))?.volume;
        let mut draft = volume.draft();
        held.write(&mut draft);
        let mut written = 0;
        for mut piece in draft.take(Vec::new()) {
            let entries = piece.entries;
            let done = volume.write(&mut piece);
            shared.written.store(volume.written(), Release);
            written += entries - piece.entries;
            done.map_err(|error| (written, error))?;
        }
        Ok(())
    }

    /// Calls put their lines behind what is written from now on.
    fn draft(&mut self) {
        if let Some(open) = &self.open {
            self.shared.queue.open(open.volume.draft());
            self.is_drafted = true;
        }
    }

    /// They do not any more: what they put there that was not taken.
    fn close(&mut self) -> Vec<Piece> {
        self.is_drafted = false;
        self.shared.queue.close()
    }

    fn count(&mut self, lost: u64, since: u64) {
        self.lost(lost, since);
        self.shared.unrecorded.fetch_add(lost, Relaxed);
    }

    fn tell(&mut self, waiting: Vec<Waiting>, error: &io::Error) {
        let told = self.failed(error);
        waiting.into_iter().for_each(|waiting| _ = waiting.send(Err(told.clone())));
    }

    fn lost(&mut self, lost: u64, since: u64) {
        if self.missing == 0 && lost > 0 {
            self.missing_since = since;
        }
        self.missing += lost;
    }

    /// The open record; where it is not open, it is opened.
    fn open(&mut self) -> io::Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let settings = &self.shared.settings;
                let Audit { keep_bytes, keep_for, keep_at_least, full_bytes, .. } = settings.audit;
                let bounds = Bounds { bytes: keep_bytes, age: keep_for, least: keep_at_least, most: full_bytes };
                let opened = recover::open(&settings.state_dir, &settings.home, bounds, &settings.node, &settings.flush)?;
                let Opened { volume, keeper, found, bounded, dir, lock } = opened;
                self.shared.parts.open(&bounded.files, SystemTime::now());
                self.shared.written.store(volume.written(), Release);
                self.shared.bounded(bounded, volume.written());
                if let Some((_, reached)) = self.reached.take().filter(|(number, _)| *number == volume.number()) {
                    let lost = reached.saturating_sub(found);
                    self.count(lost, wall());
                }
                let broken = broken(&dir);
                self.shared.status.store(Arc::new(Standing { dir: Some(dir), failing: None, broken }));
                Open { volume, keeping: Keeping::start(keeper, self.shared)?, _lock: lock }
            }
        };
        Ok(self.open.insert(open))
    }

    /// Says so. Where it is not known what is in the files, they are read again before anything else is written.
    fn failed(&mut self, error: &io::Error) -> JournalError {
        let told = self.shared.failed(error);
        let left = self.look();
        debug_assert!(left.is_empty(), "nothing is taken from calls any more where something failed");
        told
    }

    /// Closes files that have to be read again. What calls put behind them and was not taken.
    fn look(&mut self) -> Vec<Piece> {
        let Some(open) = self.open.take_if(|open| open.volume.is_torn || open.keeping.is_torn()) else { return Vec::new() };
        self.reached = Some((open.volume.number(), open.volume.size()));
        self.close()
    }

    fn sign(&mut self) {
        let Some(open) = &mut self.open else { return };
        let is_late = self.signed.elapsed() >= SIGNED_AFTER;
        let unsigned = open.unsigned();
        if unsigned >= SIGNED_AT || (unsigned > 0 && (is_late || open.volume.is_much())) {
            open.order(Vec::new(), true);
        } else if !is_late {
            return;
        }
        self.signed = Instant::now();
    }

    /// Says that the gate ends, and waits until all of it is on the disk.
    fn stop(&mut self) {
        let mut rest = self.close();
        self.go_on(&mut rest);
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
