//! How the files of a record are called, and what there is of them. Does not read what they hold.
//!
//! `key.pub` says whose record it is. Each `chain-NNNN` is a log of its own: `checkpoint`, in `entries/` the lines themselves, in files called
//! after the first entry they hold, and `tile/…` as C2SP tlog-tiles names them, but for the lowest level, which follows from the lines: a
//! file for every 256 entries would cost more than the entries.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use audit::tile::{Tile, WIDTH};

use runtime::whole::make_dirs;

/// The public half of the key, as C2SP signed-note hands keys on.
pub(super) const PUBLIC_KEY: &str = "key.pub";
/// Whoever writes holds it.
pub(super) const LOCK: &str = "lock";
/// The last signed checkpoint of a chain.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// Who may look into directories below that of the record: whoever may into that one.
pub(super) const DIRS: u32 = 0o777;
const ENTRIES: &str = "entries";
const CHAIN: &str = "chain-";
const LINES: &str = ".jsonl";
/// Files of lines that were set aside.
pub(super) const TORN: &str = "torn";

/// One file of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The place of its first entry.
    pub first: u64,
    /// Where it is.
    pub path: PathBuf,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// Time of the last write.
    pub written: SystemTime,
}

/// One chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainDir {
    /// Which it is, from 1.
    pub number: u32,
    /// Where it is.
    pub path: PathBuf,
}

impl ChainDir {
    pub(super) fn of(record: &Path, number: u32) -> Self {
        Self { number, path: record.join(format!("{CHAIN}{number:04}")) }
    }

    /// Every chain of the record in `dir`, the oldest first.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub fn all(dir: &Path) -> io::Result<Vec<Self>> {
        let mut chains = Vec::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name();
            if let Some(number) = name.to_str().and_then(|n| n.strip_prefix(CHAIN)?.parse().ok()) {
                chains.push(Self { number, path: dir.join(&name) });
            }
        }
        chains.sort_by_key(|chain| chain.number);
        Ok(chains)
    }

    /// Its directory's name.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether whoever began it was killed before anything was in it, not even its key.
    pub(super) fn is_unbegun(&self) -> io::Result<bool> {
        let has_mark = self.path.join(PUBLIC_KEY).try_exists()? || self.path.join(CHECKPOINT).try_exists()?;
        Ok(!has_mark && (!self.entries().try_exists()? || self.segments()?.is_empty()))
    }

    pub(super) fn make(&self) -> io::Result<()> {
        make_dirs(&self.entries(), DIRS)
    }

    /// Where its files of lines are.
    pub(super) fn entries(&self) -> PathBuf {
        self.path.join(ENTRIES)
    }

    pub(super) fn segment(&self, first: u64) -> PathBuf {
        self.entries().join(format!("{first:020}{LINES}"))
    }

    /// Its files of lines, the oldest first.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub fn segments(&self) -> io::Result<Vec<Segment>> {
        self.files(LINES)
    }

    /// Files of lines that were set aside, as nobody was told of them, the oldest first.
    pub(super) fn torn(&self) -> io::Result<Vec<Segment>> {
        self.files(&format!(".{TORN}"))
    }

    fn files(&self, suffix: &str) -> io::Result<Vec<Segment>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.entries())? {
            let entry = entry?;
            let first = entry.file_name().to_str().and_then(|n| n.strip_suffix(suffix)?.parse().ok());
            if let Some(first) = first {
                let metadata = entry.metadata()?;
                files.push(Segment { first, path: entry.path(), bytes: metadata.len(), written: metadata.modified()? });
            }
        }
        files.sort_by_key(|file| file.first);
        Ok(files)
    }

    /// The text of its last checkpoint; `None`: there is none.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn checkpoint(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(self.path.join(CHECKPOINT)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of a tile, or of one that has grown beyond it. `None`: it is not there, or the lines are gone that it is over.
    pub fn tile(&self, tile: &Tile) -> Option<Vec<u8>> {
        if tile.level == Some(0) {
            return self.lowest(tile);
        }
        let read = |tile: &Tile| fs::read(self.path.join(tile.to_string())).ok();
        read(tile).or_else(|| {
            let full = Tile { width: 256, ..*tile };
            read(&full).or_else(|| ((tile.width + 1)..256).find_map(|width| read(&Tile { width, ..*tile })))
        })
    }

    /// The lowest tiles are not on the disk: they are the hashes of the lines.
    fn lowest(&self, tile: &Tile) -> Option<Vec<u8>> {
        let from = tile.index * WIDTH;
        let segment = self.segments().ok()?.into_iter().rev().find(|segment| segment.first <= from)?;
        let content = fs::read(&segment.path).ok()?;
        let behind = lines(&content).skip(usize::try_from(from - segment.first).ok()?);
        let hashes = lowest(behind.take(usize::from(tile.width)));
        (hashes.len() == usize::from(tile.width) * 32).then_some(hashes)
    }

    pub(super) fn path_of(&self, tile: &Tile) -> PathBuf {
        self.path.join(tile.to_string())
    }
}

/// The whole lines of a file, without their ends.
pub(super) fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|b| *b == b'\n').filter_map(|line| line.strip_suffix(b"\n"))
}

/// A tile of the lowest level, over these lines.
pub(super) fn lowest<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    lines.flat_map(|line| audit::hash::leaf(line).0).collect()
}

/// Brings what a file holds to the disk, or the names in a directory.
pub(super) fn flush(file: &File) -> io::Result<()> {
    if file.metadata()?.is_dir() { file.sync_all() } else { file.sync_data() }
}

/// Bytes that the disk has left where a record is.
pub(super) fn free(dir: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Gives back the memory in which the system keeps what a file holds, once that is on the disk: the next one is written into it. What is
/// written takes new memory otherwise, for as long as there is any, and pushes out what others read.
pub(super) fn release(file: &File) {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed) {
        tracing::debug!(%why, "the memory of a full file of the record was not given back");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Whether a disk has got something can't be seen from here. Something that can't be synced says so when it is asked to be.
    #[test]
    fn the_system_is_asked_to_bring_it_to_the_disk() {
        assert!(flush(&File::open("/dev/null").unwrap()).is_err());
        let dir = tempfile::tempdir().unwrap();
        flush(&File::open(dir.path()).unwrap()).unwrap();
        flush(&File::create(dir.path().join("file")).unwrap()).unwrap();
    }
}
