//! The record on the disk, for readers: an entry, the entries of a call, a proof. Reads beside a gate that writes. Does not check the
//! files; `examine` does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use audit::bundle;
use audit::checkpoint::Checkpoint;
use audit::entry::Entry;
use audit::proof::{Standing, inclusion};
use audit::tile::{Tile, Tiles, WIDTH};

pub use super::layout::{ChainDir, Segment};
use super::layout::{lines, lowest};
use super::recover::public_key;

/// Reasons for failed reading or proving.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Failure of a file.
    #[error("{path} can't be read: {source}")]
    Io {
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    #[error("{0}")]
    NotFound(String),
    /// The files do not yield a proof.
    #[error("{0}\n  `banyan audit verify` says where the record breaks")]
    Unproved(String),
    /// Failure of the index.
    #[error("the index can't be used: {0}\n  take `index.db` in the directory of the record away: it is made again")]
    Index(String),
}

/// Entries in a full bundle.
const FULL: u16 = 256;

/// An entry, as written in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEntry {
    /// Number of the chain.
    pub chain: u32,
    /// Place in the chain.
    pub seq: u64,
    /// The line, without its end.
    pub line: String,
}

/// A record on the disk.
#[derive(Debug, Clone)]
pub struct Archive {
    pub(super) dir: PathBuf,
}

/// The directories of all records below a state directory.
pub fn records(state_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(state_dir.join("audit")) else { return Vec::new() };
    let mut records: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|path| Archive::is_one(path)).collect();
    records.sort();
    records
}

impl Archive {
    /// Checks for a record in `dir`.
    pub fn is_one(dir: &Path) -> bool {
        ChainDir::all(dir).is_ok_and(|chains| !chains.is_empty())
    }

    /// Opens the record in `dir`.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(dir: &Path) -> Result<Self, ArchiveError> {
        if Self::is_one(dir) {
            return Ok(Self { dir: dir.to_owned() });
        }
        let above = dir.parent().filter(|above| dir.join("entries").is_dir() && Self::is_one(above));
        Err(ArchiveError::NotFound(match above {
            Some(above) => format!("{} is one chain of a record: name the directory above it, {}", dir.display(), above.display()),
            None => format!("there is no record in {}: a gate makes one with its first call", dir.display()),
        }))
    }

    /// Directory of the record.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Chains, the oldest first.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub fn chains(&self) -> Result<Vec<ChainDir>, ArchiveError> {
        ChainDir::all(&self.dir).map_err(|source| ArchiveError::Io { path: self.dir.clone(), source })
    }

    /// Finds a chain by number, or the last.
    ///
    /// # Errors
    /// When there is no such chain.
    pub fn chain(&self, number: Option<u32>) -> Result<ChainDir, ArchiveError> {
        let mut chains = self.chains()?;
        let found = match number {
            None => chains.pop(),
            Some(number) => chains.into_iter().find(|chain| chain.number == number),
        };
        found.ok_or_else(|| ArchiveError::NotFound(format!("there is no chain {}", number.unwrap_or(1))))
    }

    /// Public key of a chain, in the form handed on.
    ///
    /// # Errors
    /// When it is gone.
    pub fn key(&self, chain: &ChainDir) -> Result<String, ArchiveError> {
        public_key(chain).map(|key| key.to_string()).map_err(ArchiveError::Unproved)
    }

    /// Signed checkpoint of a chain, as text.
    ///
    /// # Errors
    /// When there is none yet.
    pub fn checkpoint(&self, chain: &ChainDir) -> Result<String, ArchiveError> {
        let text = chain.checkpoint().map_err(|source| ArchiveError::Io { path: chain.path.clone(), source })?;
        text.ok_or_else(|| ArchiveError::NotFound("nothing is signed for yet: a checkpoint follows within a second".to_owned()))
    }

    /// Finds an entry by place.
    ///
    /// # Errors
    /// When the entry is not there, or not any more.
    pub fn entry(&self, chain: &ChainDir, seq: u64) -> Result<FoundEntry, ArchiveError> {
        let none = || ArchiveError::NotFound(format!("there is no entry {seq} in {}, or not any more", chain.name()));
        let segments = segments(chain)?;
        let segment = segments.iter().rev().find(|segment| segment.first <= seq).ok_or_else(none)?;
        let content = read(segment)?;
        let nth = usize::try_from(seq - segment.first).map_err(|_| none())?;
        let line = lines(&content).nth(nth).ok_or_else(none)?;
        Ok(FoundEntry { chain: chain.number, seq, line: String::from_utf8_lossy(line).into_owned() })
    }

    /// Gives every entry since `since` (microseconds since 1970), the oldest first. Skips unreadable lines.
    ///
    /// # Errors
    /// When the files can't be read.
    pub fn each(&self, since: u64, mut give: impl FnMut(&Entry<'_>)) -> Result<(), ArchiveError> {
        for chain in self.chains()? {
            for segment in segments(&chain)? {
                let content = read(&segment)?;
                lines(&content)
                    .filter_map(|line| Entry::decode(line).ok())
                    .filter(|entry| entry.time >= since)
                    .for_each(|entry| give(&entry));
            }
        }
        Ok(())
    }

    /// Gives everything under the last checkpoint as a static log (C2SP tlog-tiles): path and content of each file. Leaves out what is no
    /// longer kept.
    ///
    /// # Errors
    /// When something is missing, or `write` fails.
    pub fn log(&self, chain: &ChainDir, mut write: impl FnMut(&str, &[u8]) -> io::Result<()>) -> Result<(), ArchiveError> {
        let text = self.checkpoint(chain)?;
        let size = Checkpoint::parse(&text).map_err(|error| ArchiveError::Unproved(error.to_string()))?.size;
        let mut write = |path: &str, content: &[u8]| write(path, content).map_err(|source| ArchiveError::Io { path: path.into(), source });
        let segments = segments(chain)?;
        for segment in segments.iter().filter(|segment| segment.first < size) {
            let content = read(segment)?;
            let signed: Vec<&[u8]> = lines(&content).take(usize::try_from(size - segment.first).unwrap_or(usize::MAX)).collect();
            for (nth, entries) in (segment.first / WIDTH..).zip(signed.chunks(usize::from(FULL))) {
                let tile = Tile { level: None, index: nth, width: u16::try_from(entries.len()).unwrap_or(FULL) };
                let bundle = bundle::encode(entries.iter().copied());
                write(&tile.to_string(), &bundle.ok_or_else(|| ArchiveError::Unproved(format!("{tile} holds an entry too long")))?)?;
                write(&Tile { level: Some(0), ..tile }.to_string(), &lowest(entries.iter().copied()))?;
            }
        }
        for tile in Tile::all(size).filter(|tile| tile.level != Some(0)) {
            let content = chain.tile(&tile).filter(|content| content.len() >= usize::from(tile.width) * 32);
            let content = content.ok_or_else(|| ArchiveError::Unproved(format!("{tile} is missing")))?;
            write(&tile.to_string(), &content[..usize::from(tile.width) * 32])?;
        }
        write("checkpoint", text.as_bytes())
    }

    /// Finds an entry, with the proof of its inclusion under the last checkpoint.
    ///
    /// # Errors
    /// When the entry is not there or not signed for yet, or the tiles yield no proof.
    pub fn prove(&self, chain: &ChainDir, seq: u64) -> Result<(FoundEntry, Standing), ArchiveError> {
        let found = self.entry(chain, seq)?;
        let text = self.checkpoint(chain)?;
        let checkpoint = Checkpoint::parse(&text).map_err(|error| ArchiveError::Unproved(error.to_string()))?;
        if checkpoint.size <= seq {
            return Err(ArchiveError::NotFound(format!("entry {seq} is not signed for yet: try again in a second")));
        }
        let mut tiles = Tiles::new(checkpoint.size, |tile: &Tile| chain.tile(tile));
        let hashes = inclusion(seq, checkpoint.size, &mut tiles).map_err(|error| ArchiveError::Unproved(error.to_string()))?;
        let proof = Standing { index: seq, hashes, checkpoint: text };
        audit::proof::verify_inclusion(audit::hash::leaf(found.line.as_bytes()), seq, checkpoint.size, &proof.hashes, checkpoint.root)
            .map_err(|error| ArchiveError::Unproved(error.to_string()))?;
        Ok((found, proof))
    }
}

pub(super) fn segments(chain: &ChainDir) -> Result<Vec<Segment>, ArchiveError> {
    chain.segments().map_err(|source| ArchiveError::Io { path: chain.path.clone(), source })
}

pub(super) fn read(segment: &Segment) -> Result<Vec<u8>, ArchiveError> {
    fs::read(&segment.path).map_err(|source| ArchiveError::Io { path: segment.path.clone(), source })
}
