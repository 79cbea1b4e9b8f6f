//! The chain that grows: every entry holds the hash of the one before, and all are leaves of one tree. Where lines and tiles are
//! stored, and when a checkpoint is signed, is not decided here.

use std::ops::Range;

use crate::AuditError;
use crate::entry::{self, Entry, Place};
use crate::hash::{self, Hash};
use crate::record::Record;
use crate::tile::{Growing, Tile};
use crate::tree::Edge;

/// A chain at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    edge: Edge,
    /// `None`: the entry before the next one is not known, for it is no longer kept.
    previous: Option<Hash>,
    growing: Growing,
}

/// Tiles that are full now, with their content. Those of the lowest level are never among them: they are the hashes of the entries, and are
/// made from these when they are wanted.
pub type Full = Vec<(Tile, Vec<u8>)>;

/// What an entry became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Where its line stands in what it was written to, with the end of line.
    pub line: Range<usize>,
    /// Its place.
    pub seq: u64,
    /// Tiles that are full now, with their content.
    pub full: Full,
}

/// How a line does not follow the one before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// It does not name the entry before it: one of the two was changed, or entries between them were taken out.
    #[error("entry {0} does not hold the hash of the entry before it: that one was changed, or replaced")]
    Chain(u64),
    /// It can't be read.
    #[error("entry {seq} can't be read: {why}")]
    Entry {
        /// The place it should have.
        seq: u64,
        /// What is wrong with it.
        why: AuditError,
    },
    /// It is not the next one.
    #[error("entry {expected} is wanted and entry {found} is there: entries are missing, or stand in another order")]
    Order {
        /// The place it should have.
        expected: u64,
        /// The place it has.
        found: u64,
    },
}

impl Break {
    /// The place in the chain where it breaks.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Chain(seq) | Self::Entry { seq, .. } | Self::Order { expected: seq, .. } => *seq,
        }
    }
}

impl Chain {
    /// Goes on behind a tree of which only the edge and the tiles that grow are known. The next entry's link is taken as it is.
    pub fn behind(edge: Edge, growing: Growing) -> Self {
        let previous = (edge.size() == 0).then_some(Hash::ZERO);
        Self { edge, previous, growing }
    }

    /// A chain without entries.
    pub fn new() -> Self {
        Self::behind(Edge::default(), Growing::default())
    }

    /// How many entries there are.
    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// The root over all of them.
    pub fn root(&self) -> Hash {
        self.edge.root()
    }

    /// Tiles above the lowest level that are not full, each with its content.
    pub fn partial(&self) -> impl Iterator<Item = (Tile, Vec<u8>)> {
        self.growing.partial().filter(|(tile, _)| tile.level != Some(0))
    }

    /// Writes the next entry into `out`, with an end of line.
    ///
    /// # Errors
    /// When the entry is too long; nothing has changed then.
    pub fn append(&mut self, time: u64, record: &Record<'_>, out: &mut Vec<u8>) -> Result<Appended, AuditError> {
        self.extend(time, record.event(), |out| record.facts(out), out)
    }

    /// The same for a record whose facts were written down before ([`Record::facts`]), in pieces.
    ///
    /// # Errors
    /// As [`Chain::append`].
    pub fn append_facts(&mut self, time: u64, event: &str, facts: &[&[u8]], out: &mut Vec<u8>) -> Result<Appended, AuditError> {
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
    ) -> Result<Appended, AuditError> {
        let (start, seq) = (out.len(), self.size());
        entry::write(event, facts, &Place { previous: self.previous.unwrap_or(Hash::ZERO), seq, time }, out)?;
        let full = self.grow(hash::leaf_at(out, start));
        out.push(b'\n');
        Ok(Appended { line: start..out.len(), seq, full })
    }

    /// Takes a line, without its end, that was written before, when it is the next one.
    ///
    /// # Errors
    /// When it is not; nothing has changed then.
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
