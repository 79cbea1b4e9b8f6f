//! A tree of registers, each with its last write. Knows no operation, no version and no bound.
//!
//! A write at a path has a stamp, and the higher stamp stays. A write that places a value also covers the path: older writes below are
//! dead, younger ones live on, whoever comes first. Dead writes are dropped at once, since covers only grow. A write of a value makes an
//! object of each level above, by the same rule.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::clock::WriteStamp;

/// Content of a register. The order decides between writes of equal stamps, which only a faulty author makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RegisterValue {
    Removed,
    /// An object, with its members in registers of their own.
    Object,
    /// JSON text of anything else. An array is a single value.
    Plain(Bytes),
}

/// A register and the registers below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RegisterNode {
    last: Option<(WriteStamp, RegisterValue)>,
    /// Stamp before which all writes below are dead, where the levels above do not already say so.
    cover: Option<WriteStamp>,
    below: BTreeMap<String, RegisterNode>,
    /// Bytes held for the value here and for all nodes below, counted with each write.
    inner: usize,
}

/// A write of the content of a single register.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegisterWrite<'a> {
    pub(super) stamp: &'a WriteStamp,
    pub(super) value: &'a RegisterValue,
    pub(super) is_cover: bool,
}

/// Memory of a node beside its texts, in bytes.
pub(super) const NODE: usize = 200;

impl RegisterNode {
    /// Joins a write at a path below this node, the root, a place without a register. Tells if any register changed.
    pub(super) fn join(&mut self, path: &[&str], write: RegisterWrite<'_>) -> bool {
        let Some((segment, rest)) = path.split_first() else { return false };
        self.enter(segment, |below| below.descend(rest, write, None))
    }

    /// Changes the node under `name`, which is made where there is none, and counts the bytes.
    fn enter(&mut self, name: &str, change: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.below.get(name).map_or(0, |node| node.held_under(name));
        let node = self.below.entry(name.to_owned()).or_default();
        let is_changed = change(node);
        self.inner = (self.inner + node.held_under(name)).saturating_sub(before);
        is_changed
    }

    /// `floor`: the highest cover above.
    fn descend(&mut self, path: &[&str], write: RegisterWrite<'_>, floor: Option<&WriteStamp>) -> bool {
        if floor.is_some_and(|floor| write.stamp < floor) {
            return false;
        }
        let Some((next, rest)) = path.split_first() else { return self.set(write, floor) };
        let mut is_changed = false;
        if *write.value != RegisterValue::Removed {
            is_changed = self.raise(write.stamp, &RegisterValue::Object);
        }
        let floor = floor.max(self.cover.as_ref()).cloned();
        if floor.as_ref().is_some_and(|floor| write.stamp < floor) {
            return is_changed;
        }
        self.enter(next, |below| below.descend(rest, write, floor.as_ref())) || is_changed
    }

    fn set(&mut self, write: RegisterWrite<'_>, floor: Option<&WriteStamp>) -> bool {
        let is_raised = self.raise(write.stamp, write.value);
        let is_covered = write.is_cover && floor.max(self.cover.as_ref()).is_none_or(|cover| cover < write.stamp);
        if is_covered {
            self.cover = Some(write.stamp.clone());
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
        if self.last.as_ref().is_some_and(|(stamp, _)| stamp < floor) {
            self.last = None;
        }
        if self.cover.as_ref().is_some_and(|cover| cover <= floor) {
            self.cover = None;
        }
        let floor = self.cover.as_ref().unwrap_or(floor).clone();
        self.prune_below(&floor);
        self.last.is_some() || self.cover.is_some() || !self.below.is_empty()
    }

    fn prune_below(&mut self, floor: &WriteStamp) {
        let mut held = 0;
        self.below.retain(|name, node| {
            let lives = node.prune(floor);
            held += if lives { node.held_under(name) } else { 0 };
            lives
        });
        self.inner = self.own() + held;
    }

    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.below.get(name)
    }

    /// Puts a node back in the place of another.
    pub(super) fn put(&mut self, name: &str, node: Option<Self>) {
        let before = self.below.remove(name).map_or(0, |node| node.held_under(name));
        self.inner = self.inner.saturating_sub(before);
        if let Some(node) = node {
            self.inner += node.held_under(name);
            self.below.insert(name.to_owned(), node);
        }
    }

    /// Gives the nodes below whose names come after `name`, in their order.
    pub(super) fn below_after<'a>(&'a self, name: Option<&str>) -> impl Iterator<Item = (&'a str, &'a Self)> + use<'a> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.below.range::<str, _>((from, Bound::Unbounded)).map(|(name, node)| (name.as_str(), node))
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
        name.len() + self.held()
    }

    fn own(&self) -> usize {
        match &self.last {
            Some((_, RegisterValue::Plain(text))) => text.len(),
            Some((_, RegisterValue::Removed | RegisterValue::Object)) | None => 0,
        }
    }

    /// Counts the bytes held anew, node by node.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        NODE + self.own() + self.below.iter().map(|(name, node)| name.len() + node.counted()).sum::<usize>()
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

    /// Visits the writes that make this node and all below, each with the names that lead there.
    pub(super) fn visit<'a>(&'a self, path: &mut Vec<&'a str>, visit: &mut impl FnMut(&[&str], RegisterWrite<'_>)) {
        if let Some(cover) = self.cover.as_ref().filter(|cover| self.last.as_ref().is_none_or(|(last, _)| last > *cover)) {
            visit(path, RegisterWrite { stamp: cover, value: &RegisterValue::Removed, is_cover: true });
        }
        if let Some((stamp, value)) = &self.last {
            let is_cover = *value != RegisterValue::Object || self.cover.as_ref() == Some(stamp);
            visit(path, RegisterWrite { stamp, value, is_cover });
        }
        for (name, node) in &self.below {
            path.push(name);
            node.visit(path, visit);
            path.pop();
        }
    }
}
