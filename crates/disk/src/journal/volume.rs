//! End of the chain being written: lines to the end of a file, and the next file when that is full. Owned by a single thread that never
//! waits for the disk; `keeper.rs` makes lines last. Does not decide what is written, nor when.
//!
//! The next file is begun while the one before may still be on its way to the disk. The waiter for an entry in it hears only when both are
//! there, so that a loss of power in between takes nothing acknowledged.

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
use super::queue::Waiter;

/// Bounds on the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Size up to which lines are kept, roughly, in bytes.
    pub(crate) bytes: u64,
    /// Age up to which lines are kept.
    pub(crate) age: Option<Duration>,
    /// Age below which lines are kept, whatever their size.
    pub(crate) least: Duration,
    /// Size of a full record, in bytes; `None`: a part of the disk.
    pub(crate) most: Option<u64>,
}

/// Fraction of a full record after which the principals' shares are judged again.
const LOOK_AFTER: u64 = 64;
/// Part of what the disk has for the record, where its size is not set.
const OF_DISK: u64 = 2;
/// Largest size of a full record that is not set, in sizes that are kept.
const MOST_KEPT: u64 = 256;

impl Bounds {
    /// Length of a file: a sixteenth of the bound, so that little is removed at a time.
    fn segment(&self) -> u64 {
        (self.bytes / 16).clamp(1 << 16, 8 << 20)
    }

    /// Bytes after which the principals' shares are judged again.
    pub(super) fn look_after(&self) -> u64 {
        self.most.unwrap_or(self.bytes.saturating_mul(4)) / LOOK_AFTER
    }

    /// Size of a full record, in bytes, while the disk has `free` bytes beside the `taken` ones of the record.
    pub(super) fn full(&self, taken: u64, free: u64) -> u64 {
        let of_disk = taken.saturating_add(free) / OF_DISK;
        self.most.unwrap_or_else(|| of_disk.clamp(self.bytes, self.bytes.saturating_mul(MOST_KEPT)))
    }
}

/// End of a chain.
pub(super) struct Volume {
    place: ChainDir,
    chain: Chain,
    bounds: Bounds,
    file: Arc<File>,
    /// Length of the file.
    bytes: u64,
    /// Length up to which the file is signed for, or about to be.
    signed: u64,
    /// Bytes written since the record was opened.
    written: u64,
    /// Full tiles not yet given to the keeper.
    due: Full,
    /// Full files to be synced.
    full: Vec<Order>,
    /// The content of the file is unknown: the file must be read again before further writes.
    pub(super) is_torn: bool,
}

impl Volume {
    /// Continues behind `chain`, the last `bytes` of which are in the file that begins with entry `first`.
    pub(super) fn at(place: ChainDir, chain: Chain, bounds: Bounds, (first, bytes): (u64, u64)) -> io::Result<Self> {
        let file = opened(&place.segment(first))?;
        sync_dir(&place.entries())?;
        let (due, full) = (Vec::new(), Vec::new());
        Ok(Self { place, chain, bounds, file, bytes, signed: bytes, written: 0, due, full, is_torn: false })
    }

    /// Adds full tiles to be written.
    pub(super) fn owe(&mut self, tiles: Full) {
        self.due.extend(tiles);
    }

    /// Adds an earlier file that may not be on the disk.
    pub(super) fn unsynced(&mut self, path: &Path) -> io::Result<()> {
        self.full.push(Order { file: opened(path)?, waiting: Vec::new(), head: None, is_full: false });
        Ok(())
    }

    /// Number of entries.
    pub(super) fn size(&self) -> u64 {
        self.chain.size()
    }

    /// Bytes written since the record was opened.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Checks that enough was written since the last signature for the next.
    pub(super) fn is_much(&self) -> bool {
        self.bytes - self.signed >= self.bounds.look_after()
    }

    /// Number of the chain.
    pub(super) fn number(&self) -> u32 {
        self.place.number
    }

    /// Draft behind the written lines.
    pub(super) fn draft(&self) -> Draft {
        Draft::behind(self.chain.clone(), self.bytes, self.bounds.segment()).after(self.written)
    }

    /// Writes a piece made behind the written lines, and sets its count of entries to 0. Its waiters stay in the piece, unless the piece
    /// completes a file: then they go with the file.
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
            // Half a line must not stay, since the next line would follow it.
            self.is_torn |= self.file.set_len(self.bytes).is_err();
        }
        written
    }

    /// Writes a record with the present time.
    pub(super) fn note(&mut self, record: &Record<'_>) -> io::Result<()> {
        let mut draft = self.draft();
        draft.note(wall(), record);
        draft.take_pieces(Vec::new()).iter_mut().try_for_each(|piece| self.write(piece))
    }

    /// Orders to sync full files and the lines so far; with `is_signed`, also to sign for them.
    pub(super) fn orders(&mut self, waiting: Vec<Waiter>, is_signed: bool) -> Vec<Order> {
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

    /// Continues in the next file.
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
