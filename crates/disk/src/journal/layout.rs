//! Names and places of a record's files. Does not read them.
//!
//! `key.pub` says whose record it is. Each `chain-NNNN` is a log of its own: `checkpoint`, the lines in `entries/`, in files named after
//! their first entry, and `tile/…` as C2SP tlog-tiles names them, without the lowest level, which follows from the lines: a file for every
//! 256 entries would cost more than the entries.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use audit::tile::{Tile, WIDTH};

use runtime::whole::make_dirs;

/// Public half of the key, in the form of C2SP signed-note.
pub(super) const PUBLIC_KEY: &str = "key.pub";
/// Locked by the writing gate.
pub(super) const LOCK: &str = "lock";
/// Last signed checkpoint of a chain.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// Mode of directories inside the record: the record's own directory restricts access.
pub(super) const DIRS: u32 = 0o777;
const ENTRIES: &str = "entries";
const CHAIN: &str = "chain-";
const LINES: &str = ".jsonl";
/// Suffix of files of lines that were set aside.
pub(super) const TORN: &str = "torn";

/// A file of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Place of its first entry.
    pub first: u64,
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last write.
    pub written: SystemTime,
}

/// Directory of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainDir {
    /// Number, from 1.
    pub number: u32,
    pub path: PathBuf,
}

impl ChainDir {
    pub(super) fn numbered(record: &Path, number: u32) -> Self {
        Self { number, path: record.join(format!("{CHAIN}{number:04}")) }
    }

    /// Finds every chain of the record in `dir`, the oldest first.
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

    /// Name of the directory.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Checks for a chain whose gate was killed before writing anything, even the key.
    pub(super) fn is_unbegun(&self) -> io::Result<bool> {
        let has_mark = self.path.join(PUBLIC_KEY).try_exists()? || self.path.join(CHECKPOINT).try_exists()?;
        Ok(!has_mark && (!self.entries().try_exists()? || self.segments()?.is_empty()))
    }

    pub(super) fn make(&self) -> io::Result<()> {
        make_dirs(&self.entries(), DIRS)
    }

    /// Directory of the files of lines.
    pub(super) fn entries(&self) -> PathBuf {
        self.path.join(ENTRIES)
    }

    pub(super) fn segment(&self, first: u64) -> PathBuf {
        self.entries().join(format!("{first:020}{LINES}"))
    }

    /// Files of lines, the oldest first.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub fn segments(&self) -> io::Result<Vec<Segment>> {
        self.files(LINES)
    }

    /// Files of lines set aside, none of which was ever acknowledged, the oldest first.
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

    /// Text of the last checkpoint, if any.
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

    /// Content of a tile, or of a larger state of the same tile. `None` for a missing tile, or one whose lines are gone.
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

    /// Computes a tile of the lowest level, the hashes of the lines, since none is on the disk.
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

/// Whole lines of a file, without their ends.
pub(super) fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|b| *b == b'\n').filter_map(|line| line.strip_suffix(b"\n"))
}

/// Tile of the lowest level over these lines.
pub(super) fn lowest<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    lines.flat_map(|line| audit::hash::leaf(line).0).collect()
}

/// Syncs the content of a file, or the names in a directory.
pub(super) fn flush(file: &File) -> io::Result<()> {
    if file.metadata()?.is_dir() { file.sync_all() } else { file.sync_data() }
}

/// Free bytes of the disk where a record is.
pub(super) fn free(dir: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Frees the page cache of a file once synced, for reuse by the next. Otherwise each file would take new memory, as long as there is any,
/// and push out what others read.
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

    // Only a failing sync can be seen from here, so a file that can't be synced proves that the system was asked.
    #[test]
    fn flushing_asks_the_system_to_sync() {
        assert!(flush(&File::open("/dev/null").unwrap()).is_err());
        let dir = tempfile::tempdir().unwrap();
        flush(&File::open(dir.path()).unwrap()).unwrap();
        flush(&File::create(dir.path().join("file")).unwrap()).unwrap();
    }
}
