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
use audit::record::{Gap, Record};
use audit::tile::WIDTH;

use super::clock::now;
use super::keeper::{Head, Order};
use super::layout::{ChainDir, sync_dir};
use super::queue::Waiting;

/// How much of the record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Lines are kept up to about this size, in bytes.
    pub(crate) bytes: u64,
    /// And for this long.
    pub(crate) age: Option<Duration>,
}

impl Bounds {
    /// The length of one file: a sixteenth of all, so that what is taken away is little beside what stays.
    fn segment(&self) -> u64 {
        (self.bytes / 16).clamp(1 << 16, 8 << 20)
    }
}

/// One line to be written.
pub(super) struct Line<'a> {
    pub(super) event: &'a str,
    pub(super) time: u64,
    /// In pieces.
    pub(super) facts: [&'a [u8]; 5],
}

/// The chain at its end.
pub(super) struct Volume {
    place: ChainDir,
    chain: Chain,
    bounds: Bounds,
    file: Arc<File>,
    /// The length of the file.
    bytes: u64,
    /// Full tiles that nobody was told to keep yet.
    due: Full,
    /// Files that are full, and have to be made to last.
    full: Vec<Order>,
    lines: Vec<u8>,
    /// What is in the file is not known any more: it has to be read again before more is written.
    pub(super) is_torn: bool,
}

impl Volume {
    /// Goes on behind `chain`, the last `bytes` of which are in the file that begins with entry `first`.
    pub(super) fn at(place: ChainDir, chain: Chain, bounds: Bounds, (first, bytes): (u64, u64)) -> io::Result<Self> {
        let file = opened(&place.segment(first))?;
        sync_dir(&place.entries())?;
        let (due, full, lines) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { place, chain, bounds, file, bytes, due, full, lines, is_torn: false })
    }

    /// Full tiles that have to be written. Those of the lowest level are the hashes of the lines, and are made from them when they are wanted.
    pub(super) fn owe(&mut self, tiles: Full) {
        self.due.extend(tiles.into_iter().filter(|(tile, _)| tile.level != Some(0)));
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

    /// Which chain it is.
    pub(super) fn number(&self) -> u32 {
        self.place.number
    }

    /// Appends lines. What it says beside an error is how many were written before.
    pub(super) fn write<'a>(&mut self, lines: impl Iterator<Item = Line<'a>>) -> Result<u64, (u64, io::Error)> {
        let (mut written, mut pending) = (0, 0);
        let mut chain = self.chain.clone();
        let mut full = Vec::new();
        let mut out = std::mem::take(&mut self.lines);
        out.clear();
        for line in lines {
            let length = self.bytes + out.len() as u64;
            if length >= self.bounds.segment() && chain.size().is_multiple_of(WIDTH) {
                self.commit(&out).map_err(|error| (written, error))?;
                self.take(std::mem::take(&mut chain), std::mem::take(&mut full), out.len());
                written += std::mem::take(&mut pending);
                out.clear();
                self.turn().map_err(|error| (written, error))?;
                chain = self.chain.clone();
            }
            let appended = chain.append_facts(line.time, line.event, &line.facts, &mut out).or_else(|error| {
                tracing::error!(%error, event = line.event, "a record could not be written");
                chain.append(line.time, &Record::Gap(Gap { missing: 1, since: line.time }), &mut out)
            });
            full.extend(appended.map(|a| a.full).unwrap_or_default());
            pending += 1;
        }
        self.commit(&out).map_err(|error| (written, error))?;
        self.take(chain, full, out.len());
        self.lines = out;
        Ok(written + pending)
    }

    fn commit(&mut self, out: &[u8]) -> io::Result<()> {
        let written = (&*self.file).write_all(out);
        if written.is_err() {
            // Half a line must not stay: the next one would be put behind it.
            self.is_torn |= self.file.set_len(self.bytes).is_err();
        }
        written
    }

    fn take(&mut self, chain: Chain, full: Full, bytes: usize) {
        self.chain = chain;
        self.owe(full);
        self.bytes += bytes as u64;
    }

    /// Appends one record, at the present time.
    pub(super) fn note(&mut self, record: &Record<'_>) -> io::Result<()> {
        let mut facts = Vec::new();
        record.facts(&mut facts).map_err(io::Error::other)?;
        let line = Line { event: record.event(), time: now(), facts: [&facts, b"", b"", b"", b""] };
        self.write(std::iter::once(line)).map(drop).map_err(|(_, error)| error)
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
        let growing = self.chain.partial().filter(|(tile, _)| tile.level != Some(0)).collect();
        Head { size: self.chain.size(), root: self.chain.root(), full: std::mem::take(&mut self.due), growing }
    }

    /// Goes on in the next file.
    fn turn(&mut self) -> io::Result<()> {
        let next = opened(&self.place.segment(self.chain.size()))?;
        let head = Some(self.head());
        let file = std::mem::replace(&mut self.file, next);
        self.bytes = 0;
        self.full.push(Order { file, waiting: Vec::new(), head, is_full: true });
        Ok(())
    }
}

fn opened(path: &Path) -> io::Result<Arc<File>> {
    OpenOptions::new().append(true).create(true).open(path).map(Arc::new)
}
