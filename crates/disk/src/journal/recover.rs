//! State of the record at the start: whole, torn at its end by a kill or a loss of power, or broken, so that a new chain begins beside it.
//! Changes nothing that was signed for: half a line is cut, and files behind a torn one are set aside.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use audit::chain::{Chain, Full};
use audit::checkpoint::Checkpoint;
use audit::key::{Signer, Verifier};
use audit::record::{After, Broke, Record, Started};
use audit::tile::{Tile, Tiles, WIDTH};
use runtime::random;
use runtime::whole::{Readers, make_dirs, replace};

use super::keeper::{BoundedChain, Flush, Keeper};
use super::layout::{ChainDir, LOCK, PUBLIC_KEY, Segment, TORN};
use super::volume::{Bounds, Volume};
use crate::seed;

/// Place of a gate's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Home {
    /// In this directory.
    At(PathBuf),
    /// In a directory of this name below the state directory, or the next free one where another gate writes.
    Named(String),
}

/// Most gates of one name that write at once.
const MOST_BESIDE: u32 = 64;

/// Reason why a chain is not as written.
struct BreakReason(String);

/// A record open for writing.
pub(super) struct OpenRecord {
    pub(super) volume: Volume,
    pub(super) keeper: Keeper,
    /// Number of entries found in the chain.
    pub(super) found: u64,
    /// State of the chain after old entries were removed.
    pub(super) bounded: BoundedChain,
    /// Directory of the record.
    pub(super) dir: PathBuf,
    pub(super) lock: File,
}

/// Opens or begins the record, and records the start of the gate `node`.
pub(super) fn open(state_dir: &Path, home: &Home, bounds: Bounds, node: &str, flush: &Flush) -> io::Result<OpenRecord> {
    let (dir, lock) = locked(state_dir, home)?;
    let seed = seed::seed(state_dir, seed::SIGNING)?;
    let mut chains = ChainDir::all(&dir)?;
    let mut last = chains.pop();
    while let Some(place) = &last
        && place.is_unbegun()?
    {
        last = chains.pop();
    }
    let ((mut volume, signer, place), torn, after) = match last {
        None => (begin(&dir, 1, &seed, bounds)?, None, None),
        Some(place) => match resume(&place, &seed, bounds)? {
            Ok((volume, signer, torn)) => ((volume, signer, place), torn, None),
            Err(BreakReason(why)) => {
                tracing::error!(chain = %place.path.display(), %why, "the record is broken: it is left as it is, and a new chain begins beside it; `banyan audit verify` says more");
                let next = begin(&dir, place.number + 1, &seed, bounds)?;
                (next, None, Some((place, why)))
            }
        },
    };
    let found = volume.size();
    let mut keeper = Keeper::new(place, signer, bounds, Arc::clone(flush));
    if let Some(TornEnd { cut, why }) = torn {
        tracing::warn!(bytes = cut, why, "the end of the record was torn when the gate ended: it was taken away, and the record says so");
        volume.note(&Record::BrokeHere(Broke { cut, why: why.into() }))?;
    }
    let signed = after.as_ref().and_then(|(place, _)| Checkpoint::parse(&place.checkpoint().ok()??).ok());
    let after = after.as_ref().map(|(place, why)| After {
        chain: place.name().into(),
        root: signed.as_ref().map(|s| s.root),
        size: signed.as_ref().map_or(0, |s| s.size),
        why: why.as_str().into(),
    });
    volume.note(&Record::Started(Started { after, node: node.into(), version: env!("CARGO_PKG_VERSION").into() }))?;
    for mut order in volume.orders(Vec::new(), true) {
        keeper.sync(&order.file)?;
        order.head.as_mut().map_or(Ok(()), |head| keeper.sign(head))?;
    }
    // A gate that loses power again and again may never fill a file.
    let bounded = keeper.bound()?;
    Ok(OpenRecord { volume, keeper, found, bounded, dir, lock })
}

fn locked(state_dir: &Path, home: &Home) -> io::Result<(PathBuf, File)> {
    let most = if matches!(home, Home::At(_)) { 1 } else { MOST_BESIDE };
    for beside in 1..=most {
        let dir = match home {
            Home::At(dir) => dir.clone(),
            Home::Named(name) if beside == 1 => state_dir.join("audit").join(name),
            Home::Named(name) => state_dir.join("audit").join(format!("{name}.{beside}")),
        };
        make_dirs(&dir, 0o700)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(dir.join(LOCK))?;
        if lock.try_lock().is_ok() {
            return Ok((dir, lock));
        }
    }
    Err(io::Error::other("another gate writes its record there: give each its own `path` in [audit]"))
}

fn begin(dir: &Path, number: u32, seed: &[u8; 32], bounds: Bounds) -> io::Result<(Volume, Signer, ChainDir)> {
    let place = ChainDir::numbered(dir, number);
    place.make()?;
    let name = format!("banyan/{}", random::token().get(..16).unwrap_or_default());
    let signer = Signer::new(&name, seed).map_err(io::Error::other)?;
    let key = signer.verifier().map_err(io::Error::other)?;
    replace(&place.path.join(PUBLIC_KEY), format!("{key}\n").as_bytes(), Readers::Others)?;
    Ok((Volume::at(place.clone(), Chain::new(), bounds, (0, 0))?, signer, place))
}

/// Public key of a chain.
pub(super) fn public_key(place: &ChainDir) -> Result<Verifier, String> {
    let path = place.path.join(PUBLIC_KEY);
    let text = fs::read_to_string(&path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    Verifier::parse(text.trim()).map_err(|error| format!("{}: {error}", path.display()))
}

type Resumption = Result<(Volume, Signer, Option<TornEnd>), BreakReason>;

/// Removed end of a chain, which was never acknowledged.
struct TornEnd {
    /// Length in bytes.
    cut: u64,
    why: &'static str,
}

/// Continues a chain without its torn end. Reads no more of the last files than needed; `verify` reads all.
fn resume(place: &ChainDir, seed: &[u8; 32], bounds: Bounds) -> io::Result<Resumption> {
    let key = match public_key(place) {
        Ok(key) => key,
        Err(why) => return Ok(Err(BreakReason(why))),
    };
    let signer = Signer::new(key.name(), seed).map_err(io::Error::other)?;
    if !signer.verifier().is_ok_and(|own| own == key) {
        return Ok(Err(BreakReason("the key in the state directory is not the one that signed this chain".into())));
    }
    let signed = match place.checkpoint()?.map(|text| Checkpoint::open(&text, &key)).transpose() {
        Ok(signed) => signed,
        Err(error) => return Ok(Err(BreakReason(format!("its checkpoint can't be used: {error}")))),
    };
    let mut segments = place.segments()?;
    // An empty file begun last would stand in the way of entries for the file before.
    while segments.len() > 1
        && let Some(empty) = segments.pop_if(|last| last.bytes == 0)
    {
        fs::remove_file(&empty.path)?;
    }
    if segments.is_empty() {
        return Ok(match signed {
            None => Ok((Volume::at(place.clone(), Chain::new(), bounds, (0, 0))?, signer, None)),
            Some(_) => Err(BreakReason("its entries are gone".into())),
        });
    }
    let read = match read(place, &segments, signed.as_ref())? {
        Ok(read) => read,
        Err(broken) => return Ok(Err(broken)),
    };
    let torn = mend(&read, &segments)?;
    let last = &segments[read.last];
    let mut volume = Volume::at(place.clone(), read.chain, bounds, (last.first, read.whole))?;
    volume.owe(read.full);
    // The gate that wrote them may have been killed before they were synced.
    let is_signed = |next: &Segment| signed.as_ref().is_some_and(|signed| signed.size >= next.first);
    for pair in segments[..=read.last].windows(2).filter(|pair| !is_signed(&pair[1])) {
        volume.unsynced(&pair[0].path)?;
    }
    Ok(Ok((volume, signer, torn)))
}

/// Removes the torn end. A loss of power may leave later lines without earlier ones: lines of the next file, while the end of the file
/// before was not yet on the disk. None was acknowledged, and they are set aside.
fn mend(read: &Read, segments: &[Segment]) -> io::Result<Option<TornEnd>> {
    if read.cut > 0 {
        let file = OpenOptions::new().write(true).open(&segments[read.last].path)?;
        file.set_len(read.whole)?;
        file.sync_all()?;
    }
    let behind = &segments[read.last + 1..];
    for segment in behind {
        #[expect(clippy::disallowed_methods, reason = "nothing was written: the next start would do it again")]
        fs::rename(&segment.path, segment.path.with_extension(TORN))?;
    }
    let cut = read.cut + behind.iter().map(|segment| segment.bytes).sum::<u64>();
    let why = if behind.is_empty() { "the last line was cut short" } else { "lines were lost before others, which were set aside" };
    Ok((cut > 0 || !behind.is_empty()).then_some(TornEnd { cut, why }))
}

struct Read {
    chain: Chain,
    full: Full,
    /// Last file that continues the file before.
    last: usize,
    /// Length of its whole lines, and of the bytes behind them.
    whole: u64,
    cut: u64,
}

fn read(place: &ChainDir, segments: &[Segment], signed: Option<&Checkpoint>) -> io::Result<Result<Read, BreakReason>> {
    // Without the tiles over the lines before a file, the lines of the file before are read too, if still there.
    let mut why = String::new();
    let behind = |segment: &Segment| behind(place, segment.first).map_err(|error| why = error).ok();
    let known = segments.iter().map(behind).enumerate().rev().find_map(|(at, chain)| Some((chain?, at)));
    let Some((chain, from)) = known else { return Ok(Err(BreakReason(why))) };
    let mut read = Read { chain, full: Vec::new(), last: from, whole: 0, cut: 0 };
    for (at, segment) in segments.iter().enumerate().skip(from) {
        if segment.first != read.chain.size() {
            break;
        }
        if read.cut > 0 {
            return Ok(Err(BreakReason(format!("{} ends within a line", segments[read.last].path.display()))));
        }
        let content = fs::read(&segment.path)?;
        let whole = content.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        (read.last, read.whole, read.cut) = (at, whole as u64, (content.len() - whole) as u64);
        for line in content[..whole].split_inclusive(|b| *b == b'\n') {
            match read.chain.follow(&line[..line.len() - 1]) {
                Ok((_, full)) => read.full.extend(full),
                Err(broken) => return Ok(Err(BreakReason(broken.to_string()))),
            }
            if let Some(signed) = signed.filter(|s| s.size == read.chain.size())
                && signed.root != read.chain.root()
            {
                return Ok(Err(BreakReason(format!("its first {} entries are not those that were signed for", signed.size))));
            }
        }
    }
    let missing = signed.map_or(0, |s| s.size.saturating_sub(read.chain.size()));
    Ok(if missing > 0 { Err(BreakReason(format!("{missing} entries that were signed for are missing at its end"))) } else { Ok(read) })
}

/// Chain after `size` entries that are not read.
pub(super) fn behind(place: &ChainDir, size: u64) -> Result<Chain, String> {
    if size == 0 {
        return Ok(Chain::new());
    }
    if !size.is_multiple_of(WIDTH) {
        return Err(format!("no file of entries begins with entry {size}"));
    }
    let mut tiles = Tiles::new(size, |tile: &Tile| place.tile(tile));
    let edge = tiles.edge().map_err(|error| error.to_string())?;
    let growing = tiles.growing().map_err(|error| error.to_string())?;
    Ok(Chain::behind(edge, growing))
}
