//! Thread that writes the record. Calls make its lines while it can write them; lines that could not be written are counted, and the next
//! lines are tried again. Does not wait for the disk; `keeper.rs` does.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant, SystemTime};

use audit::record::{Gap, Record};
use config::resolved::Audit;
use runtime::clock::wall;
use store::{JournalError, Standing};

use super::JournalState;
use super::broken::broken;
use super::draft::Piece;
use super::keeper::KeeperHandle;
use super::queue::{Batch, HeldRecords, Waiter};
use super::recover::{self, OpenRecord};
use super::volume::{Bounds, Volume};

/// Time and number of entries after which a signature is due.
const SIGNED_AFTER: Duration = Duration::from_secs(1);
const SIGNED_AT: u64 = 1 << 16;
/// Buffer kept for the next lines, in bytes.
const ROOM: usize = 1 << 20;

/// Writes until the queue ends.
pub(super) fn run(shared: &Arc<JournalState>) {
    let signed = Instant::now();
    let mut writer = Writer { shared, open: None, is_drafted: false, missing: 0, missing_since: 0, signed, reached: None };
    let mut spare = Vec::new();
    match writer.open().map(drop) {
        Ok(()) => writer.draft(),
        Err(error) => drop(writer.failed(&error)),
    }
    loop {
        let taken = shared.queue.take_batch(std::mem::take(&mut spare), writer.due());
        let left = writer.look();
        match taken {
            Some(taken) => spare = writer.write(taken, left),
            None if shared.queue.is_ending() => break,
            None => drop(writer.write(Batch::default(), left)),
        }
        writer.sign();
    }
    writer.stop();
}

struct Writer<'a> {
    shared: &'a Arc<JournalState>,
    open: Option<Open>,
    /// Calls put their lines behind the written ones.
    is_drafted: bool,
    /// Records lost, and the time of the first; recorded as a gap as soon as possible.
    missing: u64,
    missing_since: u64,
    /// Time of the last order to sign.
    signed: Instant,
    /// Chain, and number of entries written, when its files had to be read again.
    reached: Option<(u32, u64)>,
}

/// The record, open for writing. Dropped in this order, so that lines are synced before another gate may write.
struct Open {
    volume: Volume,
    keeping: KeeperHandle,
    _lock: File,
}

impl Open {
    /// Number of entries under no checkpoint, finished or in the making.
    fn unsigned(&self) -> u64 {
        self.keeping.signed().map_or(0, |signed| self.volume.size().saturating_sub(signed))
    }

    fn order(&mut self, waiting: Vec<Waiter>, is_signed: bool) {
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

    /// Writes the records taken, and the pieces `left` of a record closed since. Returns a spare buffer.
    fn write(&mut self, taken: Batch, left: Vec<Piece>) -> Vec<u8> {
        let Batch { mut pieces, held } = taken;
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

    /// Writes pieces made behind the written lines.
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
        // Their waiters hear once the lines are on the disk.
        open.order(waiting, false);
        if let Some(error) = failed {
            // Lines that came meanwhile follow a line that is not there.
            let rest = self.close();
            self.unwritten(pieces.drain(written..).chain(rest), &error);
        }
    }

    fn unwritten(&mut self, pieces: impl Iterator<Item = Piece>, error: &io::Error) {
        let (mut lost, mut since, mut waiting) = (0, wall(), Vec::new());
        for mut piece in pieces {
            // A waiter is told and does without its record, which leaves no gap.
            lost += piece.entries.saturating_sub(piece.waiting.len() as u64);
            since = since.min(piece.since);
            waiting.append(&mut piece.waiting);
        }
        self.count(lost, since);
        self.tell(waiting, error);
    }

    /// Opens the record if closed, writes the held records, and lets calls append again.
    fn go_on_with(&mut self, mut held: HeldRecords) {
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
                // Records without room were counted when they came.
                self.lost(held.missing, held.missing_since);
                self.count(lost, held.items.first().map_or_else(wall, |item| item.time));
                self.tell(waiting, &error);
            }
        }
    }

    fn try_with(&mut self, held: &HeldRecords) -> Result<(), (u64, io::Error)> {
        // Reading the files again may show a loss.
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
        for mut piece in draft.take_pieces(Vec::new()) {
            let entries = piece.entries;
            let done = volume.write(&mut piece);
            shared.written.store(volume.written(), Release);
            written += entries - piece.entries;
            done.map_err(|error| (written, error))?;
        }
        Ok(())
    }

    /// Lets calls put their lines behind the written ones.
    fn draft(&mut self) {
        if let Some(open) = &self.open {
            self.shared.queue.open(open.volume.draft());
            self.is_drafted = true;
        }
    }

    /// Stops calls from drafting; returns the pieces not taken.
    fn close(&mut self) -> Vec<Piece> {
        self.is_drafted = false;
        self.shared.queue.close()
    }

    fn count(&mut self, lost: u64, since: u64) {
        self.lost(lost, since);
        self.shared.unrecorded.fetch_add(lost, Relaxed);
    }

    fn tell(&mut self, waiting: Vec<Waiter>, error: &io::Error) {
        let told = self.failed(error);
        waiting.into_iter().for_each(|waiting| _ = waiting.send(Err(told.clone())));
    }

    fn lost(&mut self, lost: u64, since: u64) {
        if self.missing == 0 && lost > 0 {
            self.missing_since = since;
        }
        self.missing += lost;
    }

    /// Opens the record, unless open.
    fn open(&mut self) -> io::Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let settings = &self.shared.settings;
                let Audit { keep_bytes, keep_for, keep_at_least, full_bytes, .. } = settings.audit;
                let bounds = Bounds { bytes: keep_bytes, age: keep_for, least: keep_at_least, most: full_bytes };
                let opened = recover::open(&settings.state_dir, &settings.home, bounds, &settings.node, &settings.flush)?;
                let OpenRecord { volume, keeper, found, bounded, dir, lock } = opened;
                self.shared.parts.open(&bounded.files, SystemTime::now());
                self.shared.written.store(volume.written(), Release);
                self.shared.bounded(bounded, volume.written());
                if let Some((_, reached)) = self.reached.take().filter(|(number, _)| *number == volume.number()) {
                    let lost = reached.saturating_sub(found);
                    self.count(lost, wall());
                }
                let broken = broken(&dir);
                self.shared.status.store(Arc::new(Standing { dir: Some(dir), failing: None, broken }));
                Open { volume, keeping: KeeperHandle::start(keeper, self.shared)?, _lock: lock }
            }
        };
        Ok(self.open.insert(open))
    }

    /// Notes a failure. Files of unknown content are read again before further writes.
    fn failed(&mut self, error: &io::Error) -> JournalError {
        let told = self.shared.failed(error);
        let left = self.look();
        debug_assert!(left.is_empty(), "nothing is taken from calls any more where something failed");
        told
    }

    /// Closes files that must be read again; returns the pieces not taken.
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

    /// Records the end of the gate, and waits until everything is on the disk.
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
