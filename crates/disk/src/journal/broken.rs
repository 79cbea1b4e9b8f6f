//! A broken chain still on the disk: the chain begun beside it names it in its first entry. Does not look for further breaks; `examine`
//! does.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use audit::entry::Entry;
use audit::record::{Record, Started};

use store::BrokenChain;

use super::layout::ChainDir;

/// Longer than the longest entry, in bytes.
const LONGEST: u64 = 1 << 16;

/// Finds the broken chain of the record in `dir`, the latest of several.
pub(super) fn broken(dir: &Path) -> Option<BrokenChain> {
    let chains = ChainDir::all(dir).ok()?;
    let found = chains.iter().rev().find_map(before)?;
    chains.iter().any(|chain| chain.name() == found.chain).then_some(found)
}

/// Reads from a chain's first entry which chain broke before.
fn before(chain: &ChainDir) -> Option<BrokenChain> {
    let first = chain.segments().ok()?.into_iter().next()?;
    let mut line = String::new();
    BufReader::new(File::open(first.path).ok()?).take(LONGEST).read_line(&mut line).ok()?;
    let entry = Entry::decode(line.trim_end_matches('\n').as_bytes()).ok()?;
    let Record::Started(Started { after: Some(after), .. }) = entry.record else { return None };
    Some(BrokenChain { chain: after.chain.to_string(), since: entry.time / 1_000_000, why: after.why.to_string() })
}
