//! Nodes below a node by the oldest write in each, so that dead writes are found without a walk over living ones. Knows no value.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::clock::WriteStamp;

/// Nodes below, from which on they are kept in order. Fewer are looked at one by one.
pub(super) const WIDE: usize = 8;
/// Memory of an entry, with its share of a block that is half full.
pub(super) const AGE: usize = 2 * size_of::<(WriteStamp, Arc<str>)>() + 32;

/// Names of nodes, oldest write first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeAges(BTreeSet<(WriteStamp, Arc<str>)>);

impl NodeAges {
    /// Notes that the oldest write of a node is another now; `None`: there is none.
    pub(super) fn replace(&mut self, name: &Arc<str>, before: Option<&WriteStamp>, after: Option<&WriteStamp>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.0.remove(&(before.clone(), Arc::clone(name)));
        }
        self.0.extend(after.map(|after| (after.clone(), Arc::clone(name))));
    }

    /// Gives the oldest write of all.
    pub(super) fn oldest(&self) -> Option<&WriteStamp> {
        self.0.first().map(|(stamp, _)| stamp)
    }

    /// Lists the nodes that have a write as old as `floor`, or older.
    pub(super) fn until(&self, floor: &WriteStamp) -> Vec<Arc<str>> {
        self.0.iter().take_while(|(stamp, _)| stamp <= floor).map(|(_, name)| Arc::clone(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_11_old_nodes_are_found_by_their_oldest_write() {
        let stamp = |ts| WriteStamp { ts, node: "x".into() };
        let names: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
        let mut ages = NodeAges::default();
        for (name, ts) in names.iter().zip([5, 3, 9]) {
            ages.replace(name, None, Some(&stamp(ts)));
        }
        assert_eq!((ages.oldest(), ages.until(&stamp(5))), (Some(&stamp(3)), vec![names[1].clone(), names[0].clone()]));
        ages.replace(&names[1], Some(&stamp(3)), Some(&stamp(7)));
        ages.replace(&names[0], Some(&stamp(5)), None);
        assert_eq!((ages.oldest(), ages.until(&stamp(6))), (Some(&stamp(7)), vec![]));
    }
}
