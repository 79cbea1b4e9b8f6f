//! The chain that is being written: lines to the end of a file, tiles and a signed checkpoint behind them, old files taken away. One
//! thread has it. What is written is not decided here, nor when.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use audit::chain::{Chain, Full};
use audit::checkpoint::Checkpoint;
use audit::key::Signer;
use audit::record::{Gap, Record};
use audit::tile::{Tile, WIDTH};

use super::clock::now;
use super::layout::{CHECKPOINT, ChainDir, replace, sync_dir};

/// How much of the record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Lines are kept up to about this size, in bytes.
    pub(crate) bytes: u64,
    /// And for this long.
    pub(crate) age: Option<Duration>,
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
    pub(super) place: ChainDir,
    pub(super) chain: Chain,
    signer: Signer,
    bounds: Bounds,
    file: File,
    /// The length of the file.
    bytes: u64,
    /// How many entries the last checkpoint has.
    signed: u64,
    /// Full tiles that are not on the disk yet.
    due: Full,
    /// Tiles that grow, as they are on the disk.
    grown: Vec<Tile>,
    lines: Vec<u8>,
    /// What is in the file is not known any more: it has to be read again before more is written.
    pub(super) is_torn: bool,
}

impl Volume {
    /// Goes on behind `chain`, the last `bytes` of which are in the file that begins with entry `first`.
    pub(super) fn at(place: ChainDir, chain: Chain, signer: Signer, bounds: Bounds, segment: (u64, u64)) -> io::Result<Self> {
        let path = place.segment(segment.0);
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        let (due, grown, lines) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { place, chain, signer, bounds, file, bytes: segment.1, signed: 0, due, grown, lines, is_torn: false })
    }

    /// Full tiles that have to be written. Those of the lowest level are the hashes of the lines, and are made from them when they are wanted.
    pub(super) fn owe(&mut self, tiles: Full) {
        self.due.extend(tiles.into_iter().filter(|(tile, _)| tile.level != Some(0)));
    }

    /// How many entries no checkpoint has yet.
    pub(super) fn unsigned(&self) -> u64 {
        self.chain.size() - self.signed
    }

    /// Appends lines. `is_kept`: they are on the disk when this returns. What it says beside an error is how many were written before.
    pub(super) fn write<'a>(&mut self, lines: impl Iterator<Item = Line<'a>>, is_kept: bool) -> Result<u64, (u64, io::Error)> {
        let (mut written, mut pending) = (0, 0);
        let mut chain = self.chain.clone();
        let mut full = Vec::new();
        let mut out = std::mem::take(&mut self.lines);
        out.clear();
        for line in lines {
            let length = self.bytes + out.len() as u64;
            if length >= self.segment_bytes() && chain.size().is_multiple_of(WIDTH) {
                self.commit(&out, is_kept).map_err(|error| (written, error))?;
                self.take(std::mem::take(&mut chain), std::mem::take(&mut full), out.len());
                written += std::mem::take(&mut pending);
                out.clear();
                self.rotate().map_err(|error| (written, error))?;
                chain = self.chain.clone();
            }
            let appended = chain.append_facts(line.time, line.event, &line.facts, &mut out).or_else(|error| {
                tracing::error!(%error, event = line.event, "a record could not be written");
                chain.append(line.time, &Record::Gap(Gap { missing: 1, since: line.time }), &mut out)
            });
            full.extend(appended.map(|a| a.full).unwrap_or_default());
            pending += 1;
        }
        self.commit(&out, is_kept).map_err(|error| (written, error))?;
        self.take(chain, full, out.len());
        self.lines = out;
        Ok(written + pending)
    }

    fn commit(&mut self, out: &[u8], is_kept: bool) -> io::Result<()> {
        if let Err(error) = self.file.write_all(out) {
            // Half a line must not stay: the next one would be put behind it.
            self.is_torn |= self.file.set_len(self.bytes).is_err();
            return Err(error);
        }
        if is_kept { self.sync() } else { Ok(()) }
    }

    /// After a failure the system may have forgotten what it could not write.
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data().inspect_err(|_| self.is_torn = true)
    }

    fn take(&mut self, chain: Chain, full: Full, bytes: usize) {
        self.chain = chain;
        self.owe(full);
        self.bytes += bytes as u64;
    }

    /// Appends one record, at the present time.
    pub(super) fn note(&mut self, record: &Record<'_>, is_kept: bool) -> io::Result<()> {
        let mut facts = Vec::new();
        record.facts(&mut facts).map_err(io::Error::other)?;
        let line = Line { event: record.event(), time: now(), facts: [&facts, b"", b"", b"", b""] };
        self.write(std::iter::once(line), is_kept).map(drop).map_err(|(_, error)| error)
    }

    /// Writes the tiles and signs for all entries; they are on the disk then.
    pub(super) fn checkpoint(&mut self) -> io::Result<()> {
        self.sync()?;
        for (tile, content) in &self.due {
            replace(&self.place.path_of(tile), content, true)?;
        }
        let mut grown = Vec::new();
        for (tile, content) in self.chain.partial().filter(|(tile, _)| tile.level != Some(0)) {
            replace(&self.place.path_of(&tile), &content, false)?;
            grown.push(tile);
        }
        let checkpoint = Checkpoint { origin: self.signer.name().to_owned(), size: self.chain.size(), root: self.chain.root() };
        let text = checkpoint.sign(&self.signer).map_err(io::Error::other)?;
        replace(&self.place.path.join(CHECKPOINT), text.as_bytes(), true)?;
        for tile in self.grown.iter().filter(|tile| !grown.contains(tile)) {
            let path = self.place.path_of(tile);
            remove(&path)?;
            // Where the tile is full now, nothing else is in there.
            _ = path.parent().map(fs::remove_dir);
        }
        (self.grown, self.signed) = (grown, checkpoint.size);
        self.due.clear();
        Ok(())
    }

    /// A sixteenth of all, so that what is taken away is little beside what stays.
    fn segment_bytes(&self) -> u64 {
        (self.bounds.bytes / 16).clamp(1 << 16, 8 << 20)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.checkpoint()?;
        let path = self.place.segment(self.chain.size());
        self.file = OpenOptions::new().append(true).create(true).open(&path)?;
        self.bytes = 0;
        sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        self.prune()
    }

    /// Takes away the oldest lines. The tiles above them stay: with those everything that is left can be proved.
    fn prune(&self) -> io::Result<()> {
        let segments = self.place.segments()?;
        let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        for pair in segments.windows(2) {
            let [old, next] = pair else { continue };
            let is_old = || {
                let written = fs::metadata(&old.path).and_then(|m| m.modified());
                self.bounds
                    .age
                    .is_some_and(|age| written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|since| since > age)))
            };
            if bytes <= self.bounds.bytes && !is_old() {
                break;
            }
            self.keep_upper_tiles()?;
            remove(&old.path)?;
            bytes -= old.bytes;
            tracing::info!(from = old.first, to = next.first, "old entries of the record were taken away, as its bounds say");
        }
        Ok(())
    }

    /// Once the lines are gone, the hashes over them can't be made again.
    fn keep_upper_tiles(&self) -> io::Result<()> {
        for tile in Tile::all(self.signed).filter(|tile| tile.level != Some(0) && !tile.is_full()) {
            File::open(self.place.path_of(&tile))?.sync_all()?;
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
