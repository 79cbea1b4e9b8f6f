//! Examines a record from its files alone: every line, every hash, every tile and the signed checkpoint. Says exactly where it breaks. Does
//! not repair.

use std::path::{Path, PathBuf};

use audit::chain::Chain;
use audit::checkpoint::Checkpoint;
use audit::key::Verifier;
use audit::note;
use audit::record::Record;
use audit::tile::Tile;
use serde::{Deserialize, Serialize};

use super::archive::{Archive, ArchiveError, read, segments};
use super::layout::{ChainDir, LOCK, Segment, lines};
use super::recover::{behind, public_key};

/// Knowledge of the examiner besides the files.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Key that must have signed; only its bytes count. Without it, the key of each chain's own `key.pub` counts.
    pub key: Option<Verifier>,
    /// Checkpoints seen before, each a signed note: the record must begin with the entries under them.
    pub seen: Vec<String>,
}

/// Reads a public key in the form of `banyan audit checkpoint`.
///
/// # Errors
/// In words, for other texts.
pub fn key(text: &str) -> Result<Verifier, String> {
    Verifier::parse(text).map_err(|error| error.to_string())
}

/// Reads the checkpoints of a file, one behind the other.
///
/// # Errors
/// In words, for any other content.
pub fn checkpoints(text: &str) -> Result<Vec<String>, String> {
    let notes = note::each(text);
    if notes.is_empty() {
        return Err("there is nothing in it".to_owned());
    }
    notes.into_iter().map(|note| Checkpoint::parse(note).map(|_| note.to_owned()).map_err(|error| error.to_string())).collect()
}

/// Findings about a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub sound: bool,
    /// First broken place of each chain.
    pub breaks: Vec<BrokenPlace>,
    /// Chains, the oldest first.
    pub chains: Vec<ChainReport>,
}

/// Findings about a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainReport {
    /// Name of the directory.
    pub name: String,
    /// Key that signs the chain.
    pub key: String,
    /// First entry still kept.
    pub first: u64,
    /// Number of entries, removed ones included.
    pub size: u64,
    /// Number of entries under the checkpoint.
    pub signed: u64,
    /// Root over all entries, in base64.
    pub root: String,
    /// Calls missing by the record's own account.
    pub missing: u64,
    /// Number of lines cut in the middle by the end of a gate, and removed.
    pub cut: u64,
    /// Number of gates that began to write here.
    pub starts: u64,
}

/// A place where a record is not as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenPlace {
    /// Name of the chain.
    pub chain: String,
    pub file: PathBuf,
    /// Line in the file, from 1, if the break is in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Entry, if the break is at an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Description of the break.
    pub what: String,
}

/// Examines the record in `dir`.
///
/// # Errors
/// When there is none, or it can't be read.
pub fn examine(dir: &Path, known: &Evidence) -> Result<Report, ArchiveError> {
    let mut report = Report::default();
    let chains = Archive::open(dir)?.chains()?;
    let is_locked = std::fs::OpenOptions::new().write(true).open(dir.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
    for place in &chains {
        let is_written = is_locked && chains.last() == Some(place);
        let mut walk = Walk { place, known, report: ChainReport { name: place.name(), ..ChainReport::default() }, is_written };
        let broken = walk.run()?;
        report.chains.push(walk.report);
        report.breaks.extend(broken.map(|at| *at));
    }
    let unseen = known.seen.iter().filter(|text| {
        let origin = Checkpoint::parse(text).map(|seen| seen.origin);
        !report.chains.iter().any(|chain| origin.as_ref().is_ok_and(|o| chain.key.starts_with(&format!("{o}+"))))
    });
    report.breaks.extend(unseen.map(|text| BrokenPlace {
        chain: text.lines().next().unwrap_or_default().to_owned(),
        file: dir.to_owned(),
        line: None,
        seq: None,
        what: "no chain here is the one that a checkpoint seen before is of".to_owned(),
    }));
    report.sound = report.breaks.is_empty();
    Ok(report)
}

const OTHER_TILE: &str = "the tile does not hold the hashes of the entries it is over: it was changed, or they were";

type Place = Option<Box<BrokenPlace>>;

struct Walk<'a> {
    place: &'a ChainDir,
    known: &'a Evidence,
    report: ChainReport,
    /// A gate is writing the chain.
    is_written: bool,
}

/// A size at which the root is known.
struct Head {
    checkpoint: Checkpoint,
    what: &'static str,
}

impl Walk<'_> {
    /// Finds the first broken place of the chain.
    fn run(&mut self) -> Result<Place, ArchiveError> {
        let key = match public_key(self.place) {
            Ok(key) => key,
            Err(why) => return Ok(self.at("key.pub", why)),
        };
        self.report.key = key.to_string();
        if self.known.key.as_ref().is_some_and(|known| !known.is_same_key(&key)) {
            return Ok(self.at("key.pub", "the chain names another key than the one it must be signed by"));
        }
        let heads = match self.heads(&key)? {
            Ok(heads) => heads,
            Err(broken) => return Ok(Some(broken)),
        };
        let segments = segments(self.place)?;
        let Some(first) = segments.first() else {
            let signed = heads.iter().any(|head| head.checkpoint.size > 0);
            return Ok(if signed { self.at("entries", "all entries are gone") } else { None });
        };
        self.report.first = first.first;
        let mut chain = match behind(self.place, first.first) {
            Ok(chain) => chain,
            Err(why) => return Ok(self.at("tile", format!("what stands before entry {} can't be known: {why}", first.first))),
        };
        for segment in &segments {
            if let Some(broken) = self.segment(segment, &mut chain, &heads)? {
                return Ok(Some(broken));
            }
        }
        (self.report.size, self.report.root) = (chain.size(), chain.root().to_string());
        if chain.size() > 0 && self.report.signed == 0 && !self.is_written {
            return Ok(self.at("checkpoint", "nothing signs for the entries: the checkpoint was taken away, or never written"));
        }
        if let Some(head) = heads.iter().find(|head| head.checkpoint.size > chain.size()) {
            let missing = head.checkpoint.size - chain.size();
            let file = segments.last().map_or_else(|| self.place.path.clone(), |s| s.path.clone());
            let what = format!("{missing} of the {} entries that {} signs for are missing at the end", head.checkpoint.size, head.what);
            return Ok(Some(Box::new(BrokenPlace { file, seq: Some(chain.size()), ..*self.broken("", what) })));
        }
        Ok(self.upper_tiles(&chain))
    }

    /// Checkpoints known of this chain, its own included.
    fn heads(&mut self, key: &Verifier) -> Result<Result<Vec<Head>, Box<BrokenPlace>>, ArchiveError> {
        let own = self.place.checkpoint().map_err(|source| ArchiveError::Io { path: self.place.path.clone(), source })?;
        let mut heads = Vec::new();
        if let Some(text) = own {
            match Checkpoint::open(&text, key) {
                Ok(checkpoint) => heads.push(Head { checkpoint, what: "its checkpoint" }),
                Err(error) => return Ok(Err(self.broken("checkpoint", error.to_string()))),
            }
        }
        self.report.signed = heads.first().map_or(0, |head| head.checkpoint.size);
        for text in &self.known.seen {
            if Checkpoint::parse(text).is_ok_and(|seen| seen.origin == key.name()) {
                match Checkpoint::open(text, key) {
                    Ok(checkpoint) => heads.push(Head { checkpoint, what: "a checkpoint seen before" }),
                    Err(error) => return Ok(Err(self.broken("key.pub", format!("a checkpoint seen before is not of this key: {error}")))),
                }
            }
        }
        Ok(Ok(heads))
    }

    fn segment(&mut self, segment: &Segment, chain: &mut Chain, heads: &[Head]) -> Result<Place, ArchiveError> {
        let place = |line, seq, what| Some(Box::new(BrokenPlace { chain: self.place.name(), file: segment.path.clone(), line, seq, what }));
        if segment.first != chain.size() {
            let what = format!("entries {} to {} are missing before this file", chain.size(), segment.first.saturating_sub(1));
            return Ok(place(None, Some(chain.size()), what));
        }
        let content = read(segment)?;
        for (number, line) in (1..).zip(lines(&content)) {
            let seq = chain.size();
            let full = match chain.follow(line) {
                Ok((entry, full)) => {
                    count(&mut self.report, &entry.record);
                    full
                }
                Err(broken) => return Ok(place(Some(number), Some(broken.seq()), broken.to_string())),
            };
            if let Some((tile, _)) = full.iter().find(|(tile, content)| self.is_other(tile, content)) {
                return Ok(self.at(&tile.to_string(), OTHER_TILE));
            }
            if let Some(head) = heads.iter().find(|head| head.checkpoint.size == seq + 1 && head.checkpoint.root != chain.root()) {
                let what = format!("the entries up to here are not those that {} signs for: one of them was replaced", head.what);
                return Ok(place(Some(number), Some(seq), what));
            }
        }
        let rest = content.len() - content.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if rest > 0 && !self.is_written {
            let what = format!("{rest} bytes behind the last whole line: the gate ended while it wrote, and its next start will say so");
            return Ok(place(None, Some(chain.size()), what));
        }
        Ok(None)
    }

    /// Checks that a tile on the disk holds something else. A missing tile can be made again, and proves nothing.
    fn is_other(&self, tile: &Tile, content: &[u8]) -> bool {
        std::fs::read(self.place.path_of(tile)).is_ok_and(|found| found != content)
    }

    /// Checks that growing tiles, as of the checkpoint, begin like those of the chain.
    fn upper_tiles(&self, chain: &Chain) -> Place {
        if self.report.signed != self.report.size {
            return None;
        }
        let other = chain.partial().find(|(tile, content)| self.is_other(tile, content))?;
        self.at(&other.0.to_string(), OTHER_TILE)
    }

    fn at(&self, file: &str, what: impl Into<String>) -> Place {
        Some(self.broken(file, what.into()))
    }

    fn broken(&self, file: &str, what: String) -> Box<BrokenPlace> {
        Box::new(BrokenPlace { chain: self.place.name(), file: self.place.path.join(file), line: None, seq: None, what })
    }
}

fn count(report: &mut ChainReport, record: &Record<'_>) {
    if let Record::Gap(gap) = record {
        report.missing += gap.missing;
    }
    report.cut += u64::from(matches!(record, Record::BrokeHere(_)));
    report.starts += u64::from(matches!(record, Record::Started(_)));
}
