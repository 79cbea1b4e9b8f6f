//! The growing chain: every entry holds the hash of the entry before, and all entries are leaves of one tree. The store of lines and
//! tiles, and the times of signing, are not decided here.

use std::ops::Range;

use crate::AuditError;
use crate::entry::{self, Entry, Place};
use crate::hash::{self, Hash};
use crate::record::Record;
use crate::tile::{GrowingTiles, Tile};
use crate::tree::Edge;

/// The end of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    edge: Edge,
    /// `None`: the entry before the next entry is no longer kept, so that its hash is not known.
    previous: Option<Hash>,
    growing: GrowingTiles,
}

/// Newly full tiles, with their content. Never tiles of the lowest level, which hold the hashes of entries and are made from entries
/// on demand.
pub type Full = Vec<(Tile, Vec<u8>)>;

/// An appended entry, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedEntry {
    /// Place of the line in the output buffer, with the end of line.
    pub line: Range<usize>,
    pub seq: u64,
    /// Newly full tiles, with their content.
    pub full: Full,
}

/// Faults between a line and the line before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// The hash of the entry before differs: one of the two entries was changed, or entries between them were taken out.
    #[error("entry {0} does not hold the hash of the entry before it: that one was changed, or replaced")]
    Chain(u64),
    #[error("entry {seq} can't be read: {why}")]
    Entry { seq: u64, why: AuditError },
    /// The place is not the next one.
    #[error("entry {expected} is wanted and entry {found} is there: entries are missing, or stand in another order")]
    Order { expected: u64, found: u64 },
}

impl Break {
    /// Gives the place of the break in the chain.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Chain(seq) | Self::Entry { seq, .. } | Self::Order { expected: seq, .. } => *seq,
        }
    }
}

impl Chain {
    /// Goes on behind a tree known only by edge and growing tiles. The link of the next entry is taken unchecked.
    pub fn behind(edge: Edge, growing: GrowingTiles) -> Self {
        let previous = (edge.size() == 0).then_some(Hash::ZERO);
        Self { edge, previous, growing }
    }

    /// A chain without entries.
    pub fn new() -> Self {
        Self::behind(Edge::default(), GrowingTiles::default())
    }

    /// Counts the entries.
    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// The root over all of them.
    pub fn root(&self) -> Hash {
        self.edge.root()
    }

    /// Lists growing tiles above the lowest level, with their content.
    pub fn partial(&self) -> impl Iterator<Item = (Tile, Vec<u8>)> {
        self.growing.partial().filter(|(tile, _)| tile.level != Some(0))
    }

    /// Writes the next entry into `out`, with an end of line.
    ///
    /// # Errors
    /// When the entry is too long; nothing has changed then.
    pub fn append(&mut self, time: u64, record: &Record<'_>, out: &mut Vec<u8>) -> Result<AppendedEntry, AuditError> {
        self.extend(time, record.event(), |out| record.facts(out), out)
    }

    /// The same for a record whose facts were written down before ([`Record::facts`]), in pieces.
    ///
    /// # Errors
    /// As [`Chain::append`].
    pub fn append_facts(&mut self, time: u64, event: &str, facts: &[&[u8]], out: &mut Vec<u8>) -> Result<AppendedEntry, AuditError> {
        let copy = |out: &mut Vec<u8>| {
            facts.iter().for_each(|part| out.extend_from_slice(part));
            Ok(())
        };
        self.extend(time, event, copy, out)
    }

    fn extend(
        &mut self,
        time: u64,
        event: &str,
        facts: impl FnOnce(&mut Vec<u8>) -> Result<(), AuditError>,
        out: &mut Vec<u8>,
    ) -> Result<AppendedEntry, AuditError> {
        let (start, seq) = (out.len(), self.size());
        entry::write(event, facts, &Place { previous: self.previous.unwrap_or(Hash::ZERO), seq, time }, out)?;
        let full = self.grow(hash::leaf_at(out, start));
        out.push(b'\n');
        Ok(AppendedEntry { line: start..out.len(), seq, full })
    }

    /// Takes the next line, without end of line, written earlier.
    ///
    /// # Errors
    /// When the line does not follow; the chain is then unchanged.
    pub fn follow<'a>(&mut self, line: &'a [u8]) -> Result<(Entry<'a>, Full), Break> {
        let seq = self.size();
        let entry = Entry::decode(line).map_err(|why| Break::Entry { seq, why })?;
        if entry.seq != seq {
            return Err(Break::Order { expected: seq, found: entry.seq });
        }
        if self.previous.is_some_and(|previous| previous != entry.previous) {
            return Err(Break::Chain(seq));
        }
        let full = self.grow(hash::leaf(line));
        Ok((entry, full))
    }

    fn grow(&mut self, leaf: Hash) -> Full {
        let mut full = Vec::new();
        let growing = &mut self.growing;
        self.edge.append(leaf, |height, root| {
            if height > 0 {
                full.extend(growing.completed(height, root));
            }
        });
        self.previous = Some(leaf);
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Gap;

    #[test]
    fn an_entry_has_one_hash_wherever_it_is_written() {
        let mut chains = [Chain::new(), Chain::new()];
        let mut long = b"something that stands before".to_vec();
        for i in 0..3 {
            let mut alone = Vec::new();
            let [first, second] = &mut chains;
            first.append(i, &Record::Stopped, &mut alone).unwrap();
            let line = second.append(i, &Record::Stopped, &mut long).unwrap().line;
            assert_eq!((&long[line], chains[0].root()), (&alone[..], chains[1].root()));
        }
        assert!(long.starts_with(b"something that stands before{"));
    }

    fn lines(count: u64) -> Vec<Vec<u8>> {
        let mut chain = Chain::new();
        let mut out = Vec::new();
        let each =
            (0..count).map(|i| chain.append(i, &Record::Gap(Gap { missing: i, since: 0 }), &mut out).unwrap().line).collect::<Vec<_>>();
        each.into_iter().map(|line| out[line.start..line.end - 1].to_vec()).collect()
    }

    fn walk(lines: &[Vec<u8>]) -> Result<Chain, Break> {
        let mut chain = Chain::new();
        lines.iter().try_for_each(|line| chain.follow(line).map(drop))?;
        Ok(chain)
    }

    #[test]
    fn a_chain_is_followed_to_where_it_was_written() {
        let mut chain = Chain::new();
        let mut out = Vec::new();
        for i in 0..600 {
            chain.append(i, &Record::Stopped, &mut out).unwrap();
        }
        let read: Vec<Vec<u8>> = out.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect();
        assert_eq!(walk(&read), Ok(chain));
    }

    #[test]
    fn whatever_is_done_to_it_shows_where_it_was_done() {
        let good = lines(9);
        let changed = |at: usize, from: &str, to: &str| {
            let mut lines = good.clone();
            lines[at] = String::from_utf8(lines[at].clone()).unwrap().replace(from, to).into_bytes();
            walk(&lines).unwrap_err()
        };
        assert_eq!(changed(4, "\"missing\":4", "\"missing\":5"), Break::Chain(5));
        assert_eq!(changed(4, "\"seq\":4", "\"seq\":7"), Break::Order { expected: 4, found: 7 });
        assert!(matches!(changed(4, "{", "["), Break::Entry { seq: 4, .. }));
        let mut dropped = good.clone();
        dropped.remove(3);
        assert_eq!(walk(&dropped).unwrap_err(), Break::Order { expected: 3, found: 4 });
        let mut swapped = good.clone();
        swapped.swap(3, 4);
        assert_eq!(walk(&swapped).unwrap_err(), Break::Order { expected: 3, found: 4 });
    }
}
