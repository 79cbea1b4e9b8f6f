//! The tree's hashes in pieces of 256 that never change once they are full (C2SP tlog-tiles): how a piece is named, which of them a tree
//! has, and where in them a subtree stands. Does not store them.

use std::collections::BTreeMap;
use std::fmt;

use crate::AuditError;
use crate::hash::{self, Hash};
use crate::proof::Nodes;
use crate::tree::{Edge, subtrees};

/// Hashes in a full tile.
pub const WIDTH: u64 = 256;
/// Levels of the tree within one level of tiles.
const HEIGHT: u32 = 8;
/// More levels of tiles no tree of 2^64 entries has.
const MAX_LEVEL: u8 = 7;
/// The beginning of every path.
const PREFIX: &str = "tile/";

/// A tile: `width` hashes beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    /// Level of the tile; `None`: a bundle of entries.
    pub level: Option<u8>,
    /// Index within the level, from the left.
    pub index: u64,
    /// 1 to 256; a width below 256 still grows.
    pub width: u16,
}

impl Tile {
    /// Gives the tile with hash `at` of `level`, in a tree of `size` entries; `None` for a hash outside the tree.
    pub fn holding(level: u8, at: u64, size: u64) -> Option<Self> {
        let hashes = size.checked_shr(HEIGHT * u32::from(level)).unwrap_or(0);
        let index = at / WIDTH;
        let width = hashes.saturating_sub(index * WIDTH).min(WIDTH);
        (at < hashes).then_some(Self { level: Some(level), index, width: u16::try_from(width).unwrap_or(0) })
    }

    /// Every tile of a tree of `size` entries, level by level.
    pub fn all(size: u64) -> impl Iterator<Item = Self> {
        (0..=MAX_LEVEL).flat_map(move |level| {
            let hashes = size.checked_shr(HEIGHT * u32::from(level)).unwrap_or(0);
            (0..hashes.div_ceil(WIDTH)).filter_map(move |index| Self::holding(level, index * WIDTH, size))
        })
    }

    /// Tells if the tile has its full width.
    pub fn is_full(&self) -> bool {
        u64::from(self.width) == WIDTH
    }

    /// Reads a path.
    ///
    /// # Errors
    /// When the path is not spelled as C2SP tlog-tiles has it.
    pub fn parse(path: &str) -> Result<Self, AuditError> {
        let wrong = |why: &str| AuditError::form("the path of a tile", why);
        let rest = path.strip_prefix(PREFIX).ok_or_else(|| wrong("it begins with `tile/`"))?;
        let (level, rest) = rest.split_once('/').ok_or_else(|| wrong("it has no level"))?;
        let level = match level {
            "entries" => None,
            digits => Some(decimal(digits).filter(|l| *l <= u64::from(MAX_LEVEL)).ok_or_else(|| wrong("its level is not 0 to 7"))?),
        };
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => {
                (number, decimal(width).filter(|w| (1..WIDTH).contains(w)).ok_or_else(|| wrong("its width is not 1 to 255"))?)
            }
            None => (rest, WIDTH),
        };
        let index = index(number).ok_or_else(|| wrong("its number is not spelled in threes"))?;
        let level = level.and_then(|l| u8::try_from(l).ok());
        Ok(Self { level, index, width: u16::try_from(width).unwrap_or(0) })
    }

    /// Takes the content of the tile apart.
    ///
    /// # Errors
    /// When the number of hashes differs from the width.
    pub fn hashes(&self, content: &[u8]) -> Result<Vec<Hash>, AuditError> {
        if content.len() != usize::from(self.width) * 32 {
            let why = format!("{} has {} bytes, and {} are wanted", self, content.len(), usize::from(self.width) * 32);
            return Err(AuditError::form("a tile", why));
        }
        Ok(content.chunks_exact(32).filter_map(|raw| raw.try_into().ok().map(Hash)).collect())
    }
}

/// Writes the path: `tile/LEVEL/NUMBER` with the number in threes, and `.p/WIDTH` behind a growing tile.
impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Some(level) => write!(f, "{PREFIX}{level}/")?,
            None => write!(f, "{PREFIX}entries/")?,
        }
        let mut above = self.index / 1000;
        let mut parts = Vec::new();
        while above > 0 {
            parts.push(above % 1000);
            above /= 1000;
        }
        for part in parts.iter().rev() {
            write!(f, "x{part:03}/")?;
        }
        write!(f, "{:03}", self.index % 1000)?;
        if self.is_full() { Ok(()) } else { write!(f, ".p/{}", self.width) }
    }
}

/// Decimal digits without a zero in front.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let is_sound = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_sound { text.parse().ok() } else { None }
}

/// `x001/x234/067` is 1234067.
fn index(text: &str) -> Option<u64> {
    let three = |part: &str| (part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<u64>().ok()).flatten();
    let mut parts = text.split('/').rev();
    let mut index = three(parts.next()?)?;
    let mut unit = 1000_u64;
    let mut first = None;
    for part in parts {
        let above = three(part.strip_prefix('x')?)?;
        index = index.checked_add(above.checked_mul(unit)?)?;
        unit = unit.saturating_mul(1000);
        first = Some(above);
    }
    (first != Some(0)).then_some(index)
}

/// The tiles at the right edge of a growing tree: full tiles go out, others are kept here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrowingTiles {
    /// Number of full tiles by level, and the hashes behind them.
    levels: Vec<(u64, Vec<Hash>)>,
}

impl GrowingTiles {
    /// Takes a completed subtree of [`Edge::append`]; returns a tile filled by it, with content.
    pub fn completed(&mut self, height: u32, root: Hash) -> Option<(Tile, Vec<u8>)> {
        if !height.is_multiple_of(HEIGHT) {
            return None;
        }
        let level = usize::try_from(height / HEIGHT).ok()?;
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Default::default);
        }
        let (full, hashes) = &mut self.levels[level];
        hashes.push(root);
        if hashes.len() < usize::from(u16::try_from(WIDTH).unwrap_or(u16::MAX)) {
            return None;
        }
        let tile = Tile { level: u8::try_from(level).ok(), index: *full, width: 256 };
        *full += 1;
        Some((tile, content(&std::mem::take(hashes))))
    }

    /// Lists the growing tiles, each with its content.
    pub fn partial(&self) -> impl Iterator<Item = (Tile, Vec<u8>)> {
        let levels = self.levels.iter().enumerate().filter(|(_, (_, hashes))| !hashes.is_empty());
        levels.map(|(level, (full, hashes))| {
            let width = u16::try_from(hashes.len()).unwrap_or(u16::MAX);
            (Tile { level: u8::try_from(level).ok(), index: *full, width }, content(hashes))
        })
    }
}

fn content(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// The subtrees of a tree of `size` entries, out of tiles that `read` gives by name.
pub struct Tiles<R> {
    size: u64,
    read: R,
    seen: BTreeMap<Tile, Vec<Hash>>,
}

impl<R: FnMut(&Tile) -> Option<Vec<u8>>> Tiles<R> {
    /// Every tile is asked for at most once. For a partial tile, `read` may give the content of a wider one.
    pub fn new(size: u64, read: R) -> Self {
        Self { size, read, seen: BTreeMap::new() }
    }

    /// The right edge of the tree.
    ///
    /// # Errors
    /// When a tile is missing.
    pub fn edge(&mut self) -> Result<Edge, AuditError> {
        let roots = subtrees(self.size).map(|(height, index)| self.root(height, index)).collect::<Result<Vec<_>, _>>()?;
        Edge::of(self.size, roots).ok_or(AuditError::Proof)
    }

    /// Collects the growing tiles in a tree of this size.
    ///
    /// # Errors
    /// When one is missing.
    pub fn growing(&mut self) -> Result<GrowingTiles, AuditError> {
        let mut levels = Vec::new();
        for level in 0..=MAX_LEVEL {
            let hashes = self.size.checked_shr(HEIGHT * u32::from(level)).unwrap_or(0);
            if hashes == 0 {
                break;
            }
            let partial = match Tile::holding(level, hashes - 1, self.size) {
                Some(tile) if !tile.is_full() => self.hashes(tile)?.to_vec(),
                Some(_) | None => Vec::new(),
            };
            levels.push((hashes / WIDTH, partial));
        }
        Ok(GrowingTiles { levels })
    }

    fn hashes(&mut self, tile: Tile) -> Result<&[Hash], AuditError> {
        if !self.seen.contains_key(&tile) {
            let missing = || AuditError::TileMissing(tile.to_string());
            let mut content = (self.read)(&tile).ok_or_else(missing)?;
            let wanted = usize::from(tile.width) * 32;
            if content.len() < wanted {
                return Err(missing());
            }
            content.truncate(wanted);
            self.seen.insert(tile, tile.hashes(&content)?);
        }
        Ok(self.seen.get(&tile).map(Vec::as_slice).unwrap_or_default())
    }
}

impl<R: FnMut(&Tile) -> Option<Vec<u8>>> Nodes for Tiles<R> {
    /// A subtree between two levels of tiles is computed from the hashes of one tile.
    fn root(&mut self, height: u32, index: u64) -> Result<Hash, AuditError> {
        let (level, within) = (u8::try_from(height / HEIGHT).unwrap_or(u8::MAX), height % HEIGHT);
        let missing = || AuditError::TileMissing(format!("tile/{level}/… for the subtree {index} of height {height}"));
        let first = index.checked_mul(1 << within).ok_or_else(missing)?;
        let tile = Tile::holding(level, first, self.size).ok_or_else(missing)?;
        let from = usize::try_from(first % WIDTH).unwrap_or(0);
        let mut hashes = self.hashes(tile)?.get(from..from + (1 << within)).ok_or_else(missing)?.to_vec();
        while hashes.len() > 1 {
            hashes = hashes.chunks_exact(2).map(|pair| hash::node(&pair[0], &pair[1])).collect();
        }
        hashes.first().copied().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_those_of_the_specification() {
        for (tile, path) in [
            (Tile { level: Some(0), index: 1_234_067, width: 256 }, "tile/0/x001/x234/067"),
            (Tile { level: Some(1), index: 0, width: 17 }, "tile/1/000.p/17"),
            (Tile { level: None, index: 273, width: 112 }, "tile/entries/273.p/112"),
            (Tile { level: Some(5), index: 1000, width: 256 }, "tile/5/x001/000"),
        ] {
            assert_eq!(tile.to_string(), path);
            assert_eq!(Tile::parse(path), Ok(tile));
        }
        for bad in [
            "",
            "tile/0",
            "tile/8/000",
            "tile/00/000",
            "tile/0/x000/001",
            "tile/0/1",
            "tile/0/001.p/256",
            "tile/0/001.p/0",
            "tile/0/001.p/01",
            "tile/0/001/002",
            "tile/-1/000",
            "tile/0/x99999/000",
        ] {
            assert!(Tile::parse(bad).is_err(), "{bad}");
        }
    }

    /// The example tree of C2SP tlog-tiles.
    #[test]
    fn a_tree_of_70000_entries_has_the_tiles_of_the_specification() {
        let mut by_level = BTreeMap::new();
        for tile in Tile::all(70_000) {
            by_level.entry(tile.level.unwrap()).or_insert_with(Vec::new).push(tile);
        }
        let sums: Vec<_> =
            by_level.values().map(|tiles| (tiles.iter().filter(|t| t.is_full()).count(), tiles.last().unwrap().width)).collect();
        assert_eq!(sums, [(273, 112), (1, 17), (0, 1)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn what_grows_is_what_the_tree_consists_of(count in 0_u64..70_000) {
            let (mut edge, mut growing, mut store) = (Edge::default(), GrowingTiles::default(), BTreeMap::new());
            for i in 0..count {
                edge.append(hash::leaf(&i.to_be_bytes()), |height, root| {
                    if let Some((tile, content)) = growing.completed(height, root) {
                        store.insert(tile, content);
                    }
                });
            }
            store.extend(growing.partial());
            prop_assert_eq!(store.keys().copied().collect::<Vec<_>>(), Tile::all(count).collect::<Vec<_>>());
            let mut tiles = Tiles::new(count, |tile: &Tile| store.get(tile).cloned());
            prop_assert_eq!(tiles.edge().unwrap(), edge);
            prop_assert_eq!(tiles.growing().unwrap(), growing);
        }

        #[test]
        fn every_path_leads_back(level in 0_u8..=7, index in any::<u64>(), width in 1_u16..=256) {
            let tile = Tile { level: Some(level), index, width };
            prop_assert_eq!(Tile::parse(&tile.to_string()), Ok(tile));
        }
    }
}
