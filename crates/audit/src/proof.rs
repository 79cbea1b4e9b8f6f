//! Proofs that a tree holds an entry, and that a tree grew from a smaller tree (RFC 6962, section 2.1; checks as in RFC 9162).
//! The owner of a tree is named by a checkpoint, not here.

use std::fmt::Write as _;

use crate::AuditError;
use crate::hash::{self, Hash};
use crate::tile::decimal;

/// Length of the longest proof in a tree of 2^64 entries.
pub const MAX_HASHES: usize = 64;
/// The first line of a portable proof (C2SP tlog-proof).
const MAGIC: &str = "c2sp.org/tlog-proof@v1";

/// The roots of complete subtrees.
pub trait Nodes {
    /// Gives the root of the `index`th subtree of 2^`height` entries.
    ///
    /// # Errors
    /// When the root is not at hand.
    fn root(&mut self, height: u32, index: u64) -> Result<Hash, AuditError>;
}

/// The proof that the entry at `index` is in the tree of `size` entries.
///
/// # Errors
/// When there is no such entry, or a hash is not at hand.
pub fn inclusion(index: u64, size: u64, nodes: &mut impl Nodes) -> Result<Vec<Hash>, AuditError> {
    if index >= size {
        return Err(AuditError::form("an entry of the tree", format!("it has {size}, and entry {index} is asked for")));
    }
    let (mut from, mut to, mut path) = (0, size, Vec::new());
    while to - from > 1 {
        let middle = from + split(to - from);
        if index < middle {
            path.push(range(middle, to, nodes)?);
            to = middle;
        } else {
            path.push(range(from, middle, nodes)?);
            from = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// The proof that the tree of `size` entries begins with those of the tree of `old`. Empty where `old` is 0 or `size`.
///
/// # Errors
/// When `old` is more than `size`, or a hash is not at hand.
pub fn consistency(old: u64, size: u64, nodes: &mut impl Nodes) -> Result<Vec<Hash>, AuditError> {
    if old > size {
        return Err(AuditError::form("a smaller tree", format!("this one has {size} entries, and the other {old}")));
    }
    if old == 0 || old == size {
        return Ok(Vec::new());
    }
    let (mut from, mut to, mut path) = (0, size, Vec::new());
    while to != old {
        let middle = from + split(to - from);
        if old <= middle {
            path.push(range(middle, to, nodes)?);
            to = middle;
        } else {
            path.push(range(from, middle, nodes)?);
            from = middle;
        }
    }
    if from > 0 {
        path.push(range(from, to, nodes)?);
    }
    path.reverse();
    Ok(path)
}

/// Checks that `leaf` is at `index` in the tree of `size` entries with this root (RFC 9162, section 2.1.3.2).
///
/// # Errors
/// [`AuditError::Proof`] for a proof that does not follow.
pub fn verify_inclusion(leaf: Hash, index: u64, size: u64, proof: &[Hash], root: Hash) -> Result<(), AuditError> {
    if index >= size {
        return Err(AuditError::Proof);
    }
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    for beside in proof {
        if last == 0 {
            return Err(AuditError::Proof);
        }
        if at & 1 == 1 || at == last {
            hash = hash::node(beside, &hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = hash::node(&hash, beside);
        }
        at >>= 1;
        last >>= 1;
    }
    if last == 0 && hash == root { Ok(()) } else { Err(AuditError::Proof) }
}

/// Size and root of a tree.
pub type Head = (u64, Hash);

/// Checks that the `new` tree begins with the entries of the `old` tree (RFC 9162, section 2.1.4.2).
///
/// # Errors
/// [`AuditError::Proof`] for a proof that does not follow.
pub fn verify_consistency(old: Head, new: Head, proof: &[Hash]) -> Result<(), AuditError> {
    let follows = |is_so: bool| if is_so { Ok(()) } else { Err(AuditError::Proof) };
    if old.0 == 0 {
        return follows(proof.is_empty() && old.1 == hash::empty_root());
    }
    if old.0 >= new.0 {
        return follows(old == new && proof.is_empty());
    }
    let mut rest = proof.iter();
    let mut next = || rest.next().ok_or(AuditError::Proof);
    let seed = if old.0.is_power_of_two() { old.1 } else { *next()? };
    let (mut at, mut last) = (old.0 - 1, new.0 - 1);
    while at & 1 == 1 {
        at >>= 1;
        last >>= 1;
    }
    let (mut first, mut second) = (seed, seed);
    for beside in rest {
        if last == 0 {
            return Err(AuditError::Proof);
        }
        if at & 1 == 1 || at == last {
            first = hash::node(beside, &first);
            second = hash::node(beside, &second);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            second = hash::node(&second, beside);
        }
        at >>= 1;
        last >>= 1;
    }
    follows(last == 0 && first == old.1 && second == new.1)
}

/// A portable proof: everything needed to check an entry but the entry and the log's key (C2SP tlog-proof).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Place of the entry.
    pub index: u64,
    pub hashes: Vec<Hash>,
    /// The signed checkpoint of the tree, as published.
    pub checkpoint: String,
}

impl Standing {
    /// Writes the proof as text.
    pub fn encode(&self) -> String {
        let mut text = format!("{MAGIC}\nindex {}\n", self.index);
        for hash in &self.hashes {
            _ = writeln!(text, "{hash}");
        }
        text + "\n" + &self.checkpoint
    }

    /// Reads the text. Extra data is passed over; the checkpoint is not read.
    ///
    /// # Errors
    /// When `text` is no proof.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        let wrong = |why: &str| AuditError::form("a proof", why);
        let (head, checkpoint) = text.split_once("\n\n").ok_or_else(|| wrong("no empty line and checkpoint follow"))?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(MAGIC) {
            return Err(wrong(&format!("it does not begin with `{MAGIC}`")));
        }
        _ = lines.next_if(|line| line.starts_with("extra "));
        let index = lines.next().and_then(|line| decimal(line.strip_prefix("index ")?)).ok_or_else(|| wrong("it has no index"))?;
        let hashes = lines.map(Hash::parse).collect::<Result<Vec<_>, _>>()?;
        if hashes.len() > MAX_HASHES {
            return Err(wrong("it is longer than any tree"));
        }
        Ok(Self { index, hashes, checkpoint: checkpoint.to_owned() })
    }
}

/// Computes the root over entries `from` to `to`: a complete subtree, or a subtree at the right edge.
fn range(from: u64, to: u64, nodes: &mut impl Nodes) -> Result<Hash, AuditError> {
    let length = to - from;
    if length.is_power_of_two() {
        return nodes.root(length.ilog2(), from / length);
    }
    let middle = from + split(length);
    let left = range(from, middle, nodes)?;
    Ok(hash::node(&left, &range(middle, to, nodes)?))
}

/// The largest power of two below `length`, for a `length` of 2 or more.
fn split(length: u64) -> u64 {
    1 << (length - 1).ilog2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::naive;

    struct Leaves(Vec<Hash>);

    impl Nodes for Leaves {
        fn root(&mut self, height: u32, index: u64) -> Result<Hash, AuditError> {
            let from = usize::try_from(index << height).unwrap();
            Ok(naive::root(&self.0[from..from + (1 << height)]))
        }
    }

    fn leaves(count: u64) -> Leaves {
        Leaves((0..count).map(|i| hash::leaf(&i.to_be_bytes())).collect())
    }

    fn at(n: u64) -> usize {
        usize::try_from(n).unwrap()
    }

    #[test]
    fn small_trees_are_proved_at_every_place() {
        for size in 1..=33 {
            let mut tree = leaves(size);
            let root = naive::root(&tree.0);
            for index in 0..size {
                let proof = inclusion(index, size, &mut tree).unwrap();
                assert_eq!(proof, naive::inclusion(at(index), &tree.0));
                assert_eq!(verify_inclusion(tree.0[at(index)], index, size, &proof, root), Ok(()));
            }
            for old in 0..=size {
                let proof = consistency(old, size, &mut tree).unwrap();
                let before = naive::root(&tree.0[..at(old)]);
                if old < size {
                    assert_eq!(proof, naive::consistency(at(old), &tree.0));
                }
                assert_eq!(verify_consistency((old, before), (size, root), &proof), Ok(()), "{old} {size}");
            }
        }
        assert!(inclusion(3, 3, &mut leaves(3)).is_err() && consistency(4, 3, &mut leaves(3)).is_err());
    }

    proptest! {
        #[test]
        fn a_proof_of_anything_else_fails(size in 2_u64..400, a in any::<u64>(), b in any::<u64>(), bit in 0_usize..256) {
            let (index, old) = (a % size, 1 + b % (size - 1));
            let mut tree = leaves(size);
            let root = naive::root(&tree.0);
            let flip = |hash: Hash| { let mut raw = hash.0; raw[bit / 8] ^= 1 << (bit % 8); Hash(raw) };
            let leaf = tree.0[at(index)];
            let proof = inclusion(index, size, &mut tree).unwrap();
            prop_assert_eq!(verify_inclusion(leaf, index, size, &proof, root), Ok(()));
            prop_assert!(verify_inclusion(flip(leaf), index, size, &proof, root).is_err());
            prop_assert!(verify_inclusion(leaf, index, size, &proof, flip(root)).is_err());
            prop_assert!(verify_inclusion(leaf, (index + 1) % size, size, &proof, root).is_err());
            prop_assert!(verify_inclusion(leaf, index, size, &proof[1..], root).is_err());
            let mut longer = proof.clone();
            longer.push(root);
            prop_assert!(verify_inclusion(leaf, index, size, &longer, root).is_err());
            for place in 0..proof.len() {
                let mut bad = proof.clone();
                bad[place] = flip(bad[place]);
                prop_assert!(verify_inclusion(leaf, index, size, &bad, root).is_err());
            }
            let before = naive::root(&tree.0[..at(old)]);
            let proof = consistency(old, size, &mut tree).unwrap();
            prop_assert_eq!(&proof, &naive::consistency(at(old), &tree.0));
            prop_assert_eq!(verify_consistency((old, before), (size, root), &proof), Ok(()));
            prop_assert!(verify_consistency((old, flip(before)), (size, root), &proof).is_err());
            prop_assert!(verify_consistency((old, before), (size, flip(root)), &proof).is_err());
            for place in 0..proof.len() {
                let mut bad = proof.clone();
                bad[place] = flip(bad[place]);
                prop_assert!(verify_consistency((old, before), (size, root), &bad).is_err());
            }
        }
    }

    #[test]
    fn a_standing_proof_is_read_as_it_was_written() {
        let proof = Standing { index: 7, hashes: vec![Hash::ZERO, hash::empty_root()], checkpoint: "o\n8\nx\n\n— o y\n".into() };
        assert_eq!(Standing::parse(&proof.encode()), Ok(proof.clone()));
        assert_eq!(Standing::parse(&proof.encode().replace("index", "extra eA==\nindex")), Ok(proof.clone()));
        for (good, bad) in [("proof@v1", "proof@v2"), ("index 7", "index 07"), ("index 7\n", ""), ("AAAA", "AA*A"), ("\n\n", "\n")] {
            assert!(Standing::parse(&proof.encode().replace(good, bad)).is_err(), "{bad}");
        }
    }
}
