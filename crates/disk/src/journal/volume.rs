//! The chain that is being written: lines to the end of a file, and the next file where that one is full. One thread has it, and it never
//! waits for the disk: what makes lines last is in `keeper.rs`. What is written is not decided here, nor when.
//!
//! The next file is begun while the one before may still be on its way to the disk. Whoever waits for an entry in it hears of it only when
//! both are there, so that a loss of power in between takes nothing that somebody was told of.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use audit::chain::{Chain, Full};
use audit::record::Record;
use runtime::clock::wall;
use runtime::whole::sync_dir;

use super::draft::{Draft, Piece};
use super::keeper::{Head, Order};
use super::layout::ChainDir;
use super::queue::Waiting;

/// How much of the record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Lines are kept up to about this size, in bytes.
    pub(crate) bytes: u64,
    /// And for this long.
    pub(crate) age: Option<Duration>,
    /// Lines younger than this are kept, whatever their size.
    pub(crate) least: Duration,
    /// Beyond this size nothing new is begun, in bytes; `None`: a part of the disk.
    pub(crate) most: Option<u64>,
}

/// Part of a full record after which it is looked again who has how much of it.
const LOOK_AFTER: u64 = 64;
/// Part of what the disk has for the record, where its size is not set.
const OF_DISK: u64 = 2;
/// Largest size of a full record that is not set, in sizes that are kept.
const MOST_KEPT: u64 = 256;

impl Bounds {
    /// The length of one file: a sixteenth of all, so that what is taken away is little beside what stays.
    fn segment(&self) -> u64 {
        (self.bytes / 16).clamp(1 << 16, 8 << 20)
    }

    /// Bytes after which it is looked again who has how much of the record.
    pub(super) fn look_after(&self) -> u64 {
        self.most.unwrap_or(self.bytes.saturating_mul(4)) / LOOK_AFTER
    }

    /// Size of a full record, in bytes, while the disk has `free` bytes beside the `taken` ones of the record.
    pub(super) fn full(&self, taken: u64, free: u64) -> u64 {
        let of_disk = taken.saturating_add(free) / OF_DISK;
        self.most.unwrap_or_else(|| of_disk.clamp(self.bytes, self.bytes.saturating_mul(MOST_KEPT)))
    }
}

/// The chain at its end.
pub(super) struct Volume {
    place: ChainDir,
    chain: Chain,
    bounds: Bounds,
    file: Arc<File>,
    /// The length of the file.
    bytes: u64,
    /// The length up to which the file is signed for, or is about to be.
    signed: u64,
    /// Bytes that were written since the record was opened.
    written: u64,
    /// Full tiles that nobody was told to keep yet.
    due: Full,
    /// Files that are full, and have to be made to last.
    full: Vec<Order>,
    /// What is in the file is not known any more: it has to be read again before more is written.
    pub(super) is_torn: bool,
}

impl Volume {
    /// Goes on behind `chain`, the last `bytes` of which are in the file that begins with entry `first`.
    pub(super) fn at(place: ChainDir, chain: Chain, bounds: Bounds, (first, bytes): (u64, u64)) -> io::Result<Self> {
        let file = opened(&place.segment(first))?;
        sync_dir(&place.entries())?;
        let (due, full) = (Vec::new(), Vec::new());
        Ok(Self { place, chain, bounds, file, bytes, signed: bytes, written: 0, due, full, is_torn: false })
    }

    /// Full tiles that have to be written.
    pub(super) fn owe(&mut self, tiles: Full) {
        self.due.extend(tiles);
    }

    /// A file before this one, of which nobody knows whether it is on the disk.
    pub(super) fn unsynced(&mut self, path: &Path) -> io::Result<()> {
        self.full.push(Order { file: opened(path)?, waiting: Vec::new(), head: None, is_full: false });
        Ok(())
    }

    /// How many entries there are.
    pub(super) fn size(&self) -> u64 {
        self.chain.size()
    }

    /// Bytes that were written since the record was opened.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Tells if so much was written since the last signature that the next one is due.
    pub(super) fn is_much(&self) -> bool {
        self.bytes - self.signed >= self.bounds.look_after()
    }

    /// Which chain it is.
    pub(super) fn number(&self) -> u32 {
        self.place.number
    }

    /// Where lines are put that come behind what is written.
    pub(super) fn draft(&self) -> Draft {
        Draft::behind(self.chain.clone(), self.bytes, self.bounds.segment()).after(self.written)
    }

    /// Writes a piece that was made behind what is written; its lines count as none once they are. Whoever waits for one of them is left in
    /// it, unless the file is full with it: then they hear of it along with that.
    pub(super) fn write(&mut self, piece: &mut Piece) -> io::Result<()> {
        self.commit(&piece.text)?;
        piece.entries = 0;
        self.chain = std::mem::take(&mut piece.chain);
        self.due.append(&mut piece.full);
        self.bytes += piece.text.len() as u64;
        self.written += piece.text.len() as u64;
        if piece.is_last {
            self.turn()?;
            if let Some(order) = self.full.last_mut() {
                order.waiting.append(&mut piece.waiting);
            }
        }
        Ok(())
    }

    fn commit(&mut self, out: &[u8]) -> io::Result<()> {
        let written = (&*self.file).write_all(out);
        if written.is_err() {
            // Half a line must not stay: the next one would be put behind it.
            self.is_torn |= self.file.set_len(self.bytes).is_err();
        }
        written
    }

    /// Appends one record, at the present time.
    pub(super) fn note(&mut self, record: &Record<'_>) -> io::Result<()> {
        let mut draft = self.draft();
        draft.note(wall(), record);
        draft.take(Vec::new()).iter_mut().try_for_each(|piece| self.write(piece))
    }

    /// To make last what was written so far, after the files that are full; `is_signed`: and to sign for it.
    pub(super) fn orders(&mut self, waiting: Vec<Waiting>, is_signed: bool) -> Vec<Order> {
        let mut orders = std::mem::take(&mut self.full);
        if is_signed || !waiting.is_empty() {
            let head = is_signed.then(|| self.head());
            orders.push(Order { file: Arc::clone(&self.file), waiting, head, is_full: false });
        }
        orders
    }

    fn head(&mut self) -> Head {
        self.signed = self.bytes;
        let growing = self.chain.partial().collect();
        Head { size: self.chain.size(), root: self.chain.root(), full: std::mem::take(&mut self.due), growing }
    }

    /// Goes on in the next file.
    fn turn(&mut self) -> io::Result<()> {
        let next = opened(&self.place.segment(self.chain.size()))?;
        let head = Some(self.head());
        let file = std::mem::replace(&mut self.file, next);
        (self.bytes, self.signed) = (0, 0);
        self.full.push(Order { file, waiting: Vec::new(), head, is_full: true });
        Ok(())
    }
}

fn opened(path: &Path) -> io::Result<Arc<File>> {
    OpenOptions::new().append(true).create(true).open(path).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_record_takes_half_of_the_disk_within_bounds() {
        let bounds = Bounds { bytes: GIB / 4, age: None, least: Duration::ZERO, most: None };
        assert_eq!(bounds.full(0, 100 * GIB), 50 * GIB);
        assert_eq!(bounds.full(40 * GIB, 60 * GIB), 50 * GIB, "the record's own size is no loss of the disk");
        assert_eq!(bounds.full(10 * GIB, GIB), 11 * GIB / 2, "others have filled the disk: it is full before that is");
        assert_eq!(bounds.full(0, u64::MAX), 64 * GIB);
        assert_eq!(bounds.full(0, 0), GIB / 4);
        assert_eq!(Bounds { most: Some(GIB), ..bounds }.full(0, 100 * GIB), GIB);
    }
}
