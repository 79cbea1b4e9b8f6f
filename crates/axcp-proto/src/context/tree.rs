//! A tree of registers, each with its last write. Knows no operation, no version and no bound.
//!
//! A write at a path has a stamp, and the higher stamp stays. A write that places a value also covers the path: older writes below are
//! dead, younger ones live on, whoever comes first. Dead writes are dropped at once, since covers only grow. A write of a value makes an
//! object of each level above, by the same rule.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::ages::{AGE, NodeAges, WIDE};
use super::clock::WriteStamp;

/// Content of a register. The order decides between writes of equal stamps, which only a faulty author makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RegisterValue {
    Removed,
    /// An object, with its members in registers of their own.
    Object,
    /// JSON text of anything else. An array is a single value.
    Plain(Box<[u8]>),
}

/// A register and the registers below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RegisterNode {
    last: Option<(WriteStamp, RegisterValue)>,
    /// Stamp before which all writes below are dead, where the levels above do not already say so.
    cover: Option<WriteStamp>,
    /// Boxed, since a map with a single entry has room for eleven.
    below: BTreeMap<Arc<str>, Box<RegisterNode>>,
    /// Oldest write below.
    oldest: Option<WriteStamp>,
    /// Order of the nodes below, where there are many.
    ages: Option<Box<NodeAges>>,
    /// Bytes held for the value here and for all nodes below, counted with each write.
    inner: usize,
}

/// Stamp of the highest cover above a node.
pub(super) type Floor<'a> = Option<&'a WriteStamp>;

/// A write of the content of a single register.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegisterWrite<'a> {
    pub(super) stamp: &'a WriteStamp,
    pub(super) value: &'a RegisterValue,
    pub(super) is_cover: bool,
}

/// Memory of an allocation beside its content, in bytes.
const ALLOCATION: usize = 16;
/// Memory of a node beside its texts and the nodes below, in bytes.
const NODE: usize = size_of::<RegisterNode>() + ALLOCATION;
/// Memory of the name of an author beside its bytes.
const AUTHOR: usize = SHARED + ALLOCATION;
/// Memory of the counts of a shared text.
const SHARED: usize = 16;
/// Memory of a block of a map: eleven entries, and what leads from block to block.
const BLOCK: usize = 11 * size_of::<(Arc<str>, Box<RegisterNode>)>() + ALLOCATION + 40;
/// Entries of each block of a map but one, at least.
const LEAST_IN_BLOCK: usize = 5;
/// Bytes that the order of a map takes at once, when the map gets wide.
const STEP: usize = size_of::<NodeAges>() + ALLOCATION + AGE * (LEAST_IN_BLOCK + WIDE);

/// Gives the most bytes that nodes take, with names and values of `texts` bytes in all, and authors of `author` bytes.
pub(super) const fn most_held(nodes: usize, texts: usize, author: usize) -> usize {
    let steps = 1 + nodes / WIDE;
    nodes * (NODE + SHARED + 2 * ALLOCATION + 2 * (AUTHOR + author) + BLOCK + AGE) + steps * STEP + texts
}

/// Gives the bytes of a map with `entries` entries, and of their order, at most.
const fn table(entries: usize) -> usize {
    let ages = if entries < WIDE { 0 } else { size_of::<NodeAges>() + ALLOCATION + AGE * (LEAST_IN_BLOCK + entries) };
    if entries == 0 { 0 } else { BLOCK * (1 + entries / LEAST_IN_BLOCK) + ages }
}

impl RegisterValue {
    fn held(&self) -> usize {
        match self {
            Self::Plain(text) => ALLOCATION + text.len(),
            Self::Removed | Self::Object => 0,
        }
    }
}

impl RegisterNode {
    /// Joins a change with a stamp at a path below this node, the root, a place without a register. `raises`: the levels above become objects.
    /// Tells if any register changed.
    pub(super) fn join(
        &mut self,
        path: &[&str],
        stamp: &WriteStamp,
        raises: bool,
        change: impl FnOnce(&mut Self, Floor<'_>) -> bool,
    ) -> bool {
        let Some((segment, rest)) = path.split_first() else { return false };
        self.enter(segment, |below| below.descend(rest, (stamp, raises), None, change))
    }

    fn descend(
        &mut self,
        path: &[&str],
        (stamp, raises): (&WriteStamp, bool),
        floor: Floor<'_>,
        change: impl FnOnce(&mut Self, Floor<'_>) -> bool,
    ) -> bool {
        let Some((next, rest)) = path.split_first() else { return change(self, floor) };
        let is_changed = raises && self.raise(stamp, &RegisterValue::Object);
        let joined = self.join_below(next, stamp, floor, |below, floor| below.descend(rest, (stamp, raises), floor, change));
        joined.unwrap_or(false) || is_changed
    }

    /// Joins a change with a stamp to the node under `name`. Tells if any register changed; `None`: the change is dead there.
    pub(super) fn join_below(
        &mut self,
        name: &str,
        stamp: &WriteStamp,
        floor: Floor<'_>,
        change: impl FnOnce(&mut Self, Floor<'_>) -> bool,
    ) -> Option<bool> {
        let floor = floor.max(self.cover.as_ref()).cloned();
        if floor.as_ref().is_some_and(|floor| stamp < floor) {
            return None;
        }
        Some(self.enter(name, |below| change(below, floor.as_ref())))
    }

    /// Changes the node under `name`, which is made where there is none, and counts the bytes.
    fn enter(&mut self, name: &str, change: impl FnOnce(&mut Self) -> bool) -> bool {
        let name = self.below.get_key_value(name).map_or_else(|| Arc::from(name), |(name, _)| Arc::clone(name));
        let table_before = table(self.below.len());
        let is_new = !self.below.contains_key(&name);
        let node = self.below.entry(Arc::clone(&name)).or_default();
        let before = if is_new { 0 } else { node.held_under(&name) };
        let oldest_before = node.oldest_of_all().cloned();
        let is_changed = change(node);
        let after = node.held_under(&name) + table(self.below.len());
        self.inner = (self.inner + after).saturating_sub(before + table_before);
        self.note_age(&name, oldest_before.as_ref());
        is_changed
    }

    /// Notes that a node below was changed, made or removed.
    fn note_age(&mut self, name: &Arc<str>, before: Option<&WriteStamp>) {
        if self.below.len() < WIDE {
            self.ages = None;
            self.oldest = self.below.values().filter_map(|node| node.oldest_of_all()).min().cloned();
            return;
        }
        let below = &self.below;
        let ages = self.ages.get_or_insert_with(|| {
            let mut ages = NodeAges::default();
            below.iter().filter(|(other, _)| *other != name).for_each(|(other, node)| ages.replace(other, None, node.oldest_of_all()));
            ages.into()
        });
        ages.replace(name, before, below.get(name).and_then(|node| node.oldest_of_all()));
        self.oldest = ages.oldest().cloned();
    }

    /// Gives the oldest write of this node and of all below.
    fn oldest_of_all(&self) -> Option<&WriteStamp> {
        self.last.iter().map(|(stamp, _)| stamp).chain(&self.cover).chain(&self.oldest).min()
    }

    /// Writes the register of this node. Tells if anything changed.
    pub(super) fn set(&mut self, write: RegisterWrite<'_>, floor: Floor<'_>) -> bool {
        let is_raised = self.raise(write.stamp, write.value);
        let is_covered = write.is_cover && floor.max(self.cover.as_ref()).is_none_or(|cover| cover < write.stamp);
        if is_covered {
            let before = self.own();
            self.cover = Some(write.stamp.clone());
            self.inner = (self.inner + self.own()).saturating_sub(before);
            self.prune_below(write.stamp);
        }
        is_raised || is_covered
    }

    fn raise(&mut self, stamp: &WriteStamp, value: &RegisterValue) -> bool {
        let is_higher = self.last.as_ref().is_none_or(|(last, before)| (last, before) < (stamp, value));
        if is_higher {
            self.inner = self.inner.saturating_sub(self.own());
            self.last = Some((stamp.clone(), value.clone()));
            self.inner += self.own();
        }
        is_higher
    }

    /// Drops dead writes. Tells if anything is left.
    fn prune(&mut self, floor: &WriteStamp) -> bool {
        let before = self.own();
        if self.last.as_ref().is_some_and(|(stamp, _)| stamp < floor) {
            self.last = None;
        }
        if self.cover.as_ref().is_some_and(|cover| cover <= floor) {
            self.cover = None;
        }
        self.inner = (self.inner + self.own()).saturating_sub(before);
        let floor = self.cover.as_ref().unwrap_or(floor).clone();
        self.prune_below(&floor);
        self.last.is_some() || self.cover.is_some() || !self.below.is_empty()
    }

    /// Drops dead writes below. Nodes whose writes all live are not looked at, but for a few.
    fn prune_below(&mut self, floor: &WriteStamp) {
        if self.oldest.as_ref().is_none_or(|oldest| oldest > floor) {
            return;
        }
        let old = self.ages.as_ref().map_or_else(|| self.below.keys().cloned().collect(), |ages| ages.until(floor));
        for name in old {
            let Some(node) = self.below.get_mut(&name) else { continue };
            let (before, oldest_before) = (node.held_under(&name), node.oldest_of_all().cloned());
            let after = if node.prune(floor) { node.held_under(&name) } else { 0 };
            let table_before = table(self.below.len());
            if after == 0 {
                self.below.remove(&name);
            }
            self.inner = (self.inner + after + table(self.below.len())).saturating_sub(before + table_before);
            self.note_age(&name, oldest_before.as_ref());
        }
        if self.below.is_empty() {
            // An emptied map keeps a block.
            self.below = BTreeMap::new();
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.below.get(name).map(AsRef::as_ref)
    }

    /// Puts a node back in the place of another.
    pub(super) fn put(&mut self, name: &str, node: Option<Self>) {
        let name: Arc<str> = name.into();
        let (table_before, after) = (table(self.below.len()), node.as_ref().map_or(0, |node| node.held_under(&name)));
        let replaced = match node {
            Some(node) => self.below.insert(Arc::clone(&name), Box::new(node)),
            None => self.below.remove(&name),
        };
        let before = replaced.as_ref().map_or(0, |node| node.held_under(&name)) + table_before;
        self.inner = (self.inner + after + table(self.below.len())).saturating_sub(before);
        self.note_age(&name, replaced.as_ref().and_then(|node| node.oldest_of_all()));
    }

    /// Gives the nodes below whose names come after `name`, in their order.
    pub(super) fn below_after<'a>(&'a self, name: Option<&str>) -> impl Iterator<Item = (&'a str, &'a Self)> + use<'a> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.below.range::<str, _>((from, Bound::Unbounded)).map(|(name, node)| (&**name, &**node))
    }

    /// Finds out if an array stands at this node.
    pub(super) fn is_array(&self) -> bool {
        matches!(&self.last, Some((_, RegisterValue::Plain(text))) if text.starts_with(b"["))
    }

    /// Gives the bytes held here and below.
    pub(super) fn held(&self) -> usize {
        NODE + self.inner
    }

    fn held_under(&self, name: &str) -> usize {
        SHARED + ALLOCATION + name.len() + self.held()
    }

    fn own(&self) -> usize {
        let author = |stamp: &WriteStamp| AUTHOR + stamp.node.len();
        let last = self.last.as_ref().map_or(0, |(stamp, value)| author(stamp) + value.held());
        let is_other = |cover: &&WriteStamp| self.last.as_ref().is_none_or(|(stamp, _)| stamp != *cover);
        last + self.cover.as_ref().filter(is_other).map_or(0, author)
    }

    /// Counts the bytes held anew, node by node.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        let below: usize = self.below.iter().map(|(name, node)| SHARED + ALLOCATION + name.len() + node.counted()).sum();
        NODE + self.own() + table(self.below.len()) + below
    }

    /// Checks the oldest writes noted here and below against the writes that are there.
    #[cfg(test)]
    pub(super) fn ages_are_right(&self) -> bool {
        let oldest = self.below.values().filter_map(|node| node.oldest_of_all()).min();
        let is_ordered = self.ages.as_ref().map_or(self.below.len() < WIDE, |ages| self.below.len() >= WIDE && ages.oldest() == oldest);
        self.oldest.as_ref() == oldest && is_ordered && self.below.values().all(|node| node.ages_are_right())
    }

    /// Adds the JSON text of the node to `out`. Tells if the node has a value.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) -> bool {
        match &self.last {
            None | Some((_, RegisterValue::Removed)) => return false,
            Some((_, RegisterValue::Plain(text))) => out.extend_from_slice(text),
            Some((_, RegisterValue::Object)) => self.write_members(out),
        }
        true
    }

    /// Adds the nodes below to `out`, as an object.
    pub(super) fn write_members(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let first = out.len();
        for (name, node) in &self.below {
            let start = out.len();
            if start > first {
                out.push(b',');
            }
            json::push_quoted(out, name);
            out.push(b':');
            if !node.write_json(out) {
                out.truncate(start);
            }
        }
        out.push(b'}');
    }

    /// Visits the writes that make this node and all below, each with the names that lead there, until the visitor breaks off. `after`: names
    /// that lead to the last node visited before, whose own writes are left out, and so is all that came before; `None`: nothing is left out.
    pub(super) fn visit<'a>(
        &'a self,
        after: Option<&[String]>,
        path: &mut Vec<&'a str>,
        visit: &mut impl FnMut(&[&str], RegisterWrite<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut last = None;
        match after.map(<[String]>::split_first) {
            None => self.visit_own(path, visit)?,
            Some(None) => {}
            Some(Some((name, rest))) => {
                last = Some(name.as_str());
                if let Some((name, node)) = self.below.get_key_value(name.as_str()) {
                    path.push(name);
                    node.visit(Some(rest), path, visit)?;
                    path.pop();
                }
            }
        }
        for (name, node) in self.below_after(last) {
            path.push(name);
            node.visit(None, path, visit)?;
            path.pop();
        }
        ControlFlow::Continue(())
    }

    fn visit_own(&self, path: &[&str], visit: &mut impl FnMut(&[&str], RegisterWrite<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        if let Some(cover) = self.cover.as_ref().filter(|cover| self.last.as_ref().is_none_or(|(last, _)| last > *cover)) {
            visit(path, RegisterWrite { stamp: cover, value: &RegisterValue::Removed, is_cover: true })?;
        }
        if let Some((stamp, value)) = &self.last {
            let is_cover = *value != RegisterValue::Object || self.cover.as_ref() == Some(stamp);
            visit(path, RegisterWrite { stamp, value, is_cover })?;
        }
        ControlFlow::Continue(())
    }
}
