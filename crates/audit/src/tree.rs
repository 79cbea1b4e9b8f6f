//! The Merkle tree that grows at its right edge (RFC 6962, section 2.1), as the roots of its complete subtrees: another entry costs
//! `O(log n)` hashes at most and two on average. Does not keep the inner hashes: [`crate::tile`] does.

use crate::hash::{self, Hash};

/// The right edge of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    /// Roots of the complete subtrees, the largest first: a root for each set bit of `size`.
    roots: Vec<Hash>,
}

impl Edge {
    /// The edge of a tree of `size` entries with these complete subtrees, the largest first; `None` when their number does not fit.
    pub fn of(size: u64, roots: Vec<Hash>) -> Option<Self> {
        (u32::try_from(roots.len()) == Ok(size.count_ones())).then_some(Self { size, roots })
    }

    /// Counts the entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds an entry by its leaf hash. `completed` receives height and root of each subtree completed, the entry itself included. The index
    /// among subtrees of that height is the new size shifted by the height, less one.
    pub fn append(&mut self, leaf: Hash, mut completed: impl FnMut(u32, Hash)) {
        let (mut root, mut height) = (leaf, 0);
        completed(height, root);
        while self.size >> height & 1 == 1
            && let Some(left) = self.roots.pop()
        {
            root = hash::node(&left, &root);
            height += 1;
            completed(height, root);
        }
        self.roots.push(root);
        self.size += 1;
    }

    /// The root of the whole tree.
    pub fn root(&self) -> Hash {
        let right_to_left = self.roots.iter().rev().copied();
        right_to_left.reduce(|right, left| hash::node(&left, &right)).unwrap_or_else(hash::empty_root)
    }
}

/// Lists the complete subtrees of a tree of `size` entries, the largest first: height, and index among subtrees of that height.
pub fn subtrees(size: u64) -> impl Iterator<Item = (u32, u64)> {
    (0..u64::BITS).rev().filter(move |height| size >> height & 1 == 1).map(move |height| (height, (size >> height) - 1))
}

#[cfg(test)]
pub(crate) mod naive {
    //! The definition, word for word. Only for tests.

    use crate::hash::{self, Hash};

    /// RFC 6962, section 2.1.
    pub(crate) fn root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => hash::empty_root(),
            [one] => *one,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len()));
                hash::node(&root(left), &root(right))
            }
        }
    }

    /// RFC 6962, section 2.1.1.
    pub(crate) fn inclusion(index: usize, leaves: &[Hash]) -> Vec<Hash> {
        if leaves.len() < 2 {
            return Vec::new();
        }
        let k = split(leaves.len());
        let (left, right) = leaves.split_at(k);
        let (mut path, other) = if index < k { (inclusion(index, left), right) } else { (inclusion(index - k, right), left) };
        path.push(root(other));
        path
    }

    /// RFC 6962, section 2.1.2.
    pub(crate) fn consistency(old: usize, leaves: &[Hash]) -> Vec<Hash> {
        fn sub(old: usize, leaves: &[Hash], is_whole: bool) -> Vec<Hash> {
            if old == leaves.len() {
                return if is_whole { Vec::new() } else { vec![root(leaves)] };
            }
            let k = split(leaves.len());
            let (left, right) = leaves.split_at(k);
            let (mut path, other) = if old <= k { (sub(old, left, is_whole), right) } else { (sub(old - k, right, false), left) };
            path.push(root(other));
            path
        }
        if old == 0 { Vec::new() } else { sub(old, leaves, true) }
    }

    /// The largest power of two below `n`.
    fn split(n: usize) -> usize {
        n.next_power_of_two() / 2
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The vectors of the reference implementations of RFC 6962.
    #[test]
    fn roots_are_those_of_the_published_vectors() {
        let entries: [&[u8]; 8] = [b"", &[0], &[0x10], b" !", b"01", b"@ABC", b"PQRSTUVW", b"`abcdefghijklmno"];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let hex = |hash: Hash| hash.0.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let mut edge = Edge::default();
        assert_eq!(hex(edge.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        for (entry, root) in entries.iter().zip(roots) {
            edge.append(hash::leaf(entry), |_, _| {});
            assert_eq!(hex(edge.root()), root);
        }
    }

    proptest! {
        #[test]
        fn an_edge_has_the_root_of_the_definition(count in 0_u64..600) {
            let leaves: Vec<Hash> = (0..count).map(|i| hash::leaf(&i.to_be_bytes())).collect();
            let mut edge = Edge::default();
            let mut told = std::collections::BTreeMap::new();
            for leaf in &leaves {
                let next = edge.size() + 1;
                edge.append(*leaf, |height, root| { told.insert((height, (next >> height) - 1), root); });
            }
            prop_assert_eq!(edge.root(), naive::root(&leaves));
            for ((height, index), root) in &told {
                let from = usize::try_from(index << height).unwrap();
                prop_assert_eq!(*root, naive::root(&leaves[from..from + (1 << height)]));
            }
            let roots = subtrees(count).map(|place| told[&place]).collect();
            prop_assert_eq!(Edge::of(count, roots), Some(edge));
        }
    }
}
