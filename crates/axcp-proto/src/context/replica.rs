//! A replica of one context: applies patches, counts versions and keeps the last of them. Decides nothing about who may write.
//!
//! Patches are joined, not replayed: whatever the order, repetition and grouping, replicas with the same operations have the same
//! [`Replica::snapshot`], byte for byte. Only the author of a write is held to rules about the present state (an array has no parts, a
//! segment has its bound): a receiver that judged by its own state would lose what another receiver keeps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use json::{Duplicates, Members};

use super::clock::{HybridClock, WriteStamp};
use super::path::{ContextPath, MOST_LEVELS, MOST_POINTER, TOO_DEEP, TOO_LONG};
use super::tree::{RegisterNode, RegisterValue, RegisterWrite};
use crate::error::AxcpError;
use crate::gzip::{MOST_DATA, pack, unpack};
use crate::message::{ContextPatch, DeltaKind, DeltaOp};

/// Bytes of the longest id of a context or a node.
pub const MOST_ID: usize = 256;
/// Bytes of the registers of a segment, removed ones included.
pub const MOST_SEGMENT: usize = 16 * MOST_DATA;
/// Bytes of the registers of a context.
pub const MOST_CONTEXT: usize = 16 * 1024 * 1024;
/// Bytes of the operations kept for those who come back.
pub const MOST_JOURNAL: usize = 4 * 1024 * 1024;

/// An operation that changed the context, under the version it made.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextVersion {
    pub version: u64,
    /// Time and author.
    pub stamp: WriteStamp,
    /// Version that the author saw, where others wrote meanwhile: the operation merges two lines.
    pub merged: Option<u64>,
    /// The operation, with its author.
    pub op: DeltaOp,
}

/// A context at one node.
#[derive(Debug, Clone)]
pub struct Replica {
    context_id: String,
    node: Arc<str>,
    clock: HybridClock,
    tree: RegisterNode,
    version: u64,
    journal: VecDeque<ContextVersion>,
    journal_bytes: usize,
}

impl Replica {
    /// Makes an empty context of the node `node`.
    ///
    /// # Errors
    /// When an id is empty or too long.
    pub fn new(context_id: &str, node: &str) -> Result<Self, AxcpError> {
        check_id(context_id)?;
        check_id(node)?;
        Ok(Self {
            context_id: context_id.to_owned(),
            node: node.into(),
            clock: HybridClock::default(),
            tree: RegisterNode::default(),
            version: 0,
            journal: VecDeque::new(),
            journal_bytes: 0,
        })
    }

    /// Gives the number of operations that changed this replica.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Writes as this node: kinds, paths and JSON texts, all or none. Gives the patch for the others.
    ///
    /// # Errors
    /// When an operation breaks a rule, goes into an array, or makes a segment too large.
    pub fn write(&mut self, changes: &[(DeltaKind, &str, Bytes)], wall: u64) -> Result<ContextPatch, AxcpError> {
        let before = self.clone();
        let written = self.write_all(changes, wall);
        if written.is_err() {
            *self = before;
        }
        written
    }

    fn write_all(&mut self, changes: &[(DeltaKind, &str, Bytes)], wall: u64) -> Result<ContextPatch, AxcpError> {
        let base_version = self.version;
        let mut ops = Vec::with_capacity(changes.len());
        for (op, path, data) in changes {
            let at = ContextPath::read(path)?;
            self.check_arrays(&at)?;
            let (ts, data) = (self.clock.tick(wall), pack(data.clone()));
            let op = DeltaOp { op: (*op).into(), path: (*path).to_owned(), data, ts, node_id: self.node.as_ref().to_owned() };
            let patch = ContextPatch { base_version: self.version, ops: vec![op.clone()], ..ContextPatch::default() };
            self.join(&patch, &self.node.clone())?;
            self.segment(at.segment())?;
            ops.push(op);
        }
        Ok(ContextPatch { context_id: self.context_id.clone(), base_version, ops })
    }

    /// Applies a patch that the node `peer` sent, all or none. Tells how many operations changed anything.
    ///
    /// # Errors
    /// When the patch is for another context, an operation breaks a rule, or a segment or the context becomes too large.
    pub fn apply(&mut self, patch: &ContextPatch, peer: &str, wall: u64) -> Result<u64, AxcpError> {
        if patch.context_id != self.context_id {
            return Err(AxcpError::Context);
        }
        check_id(peer)?;
        let mut clock = self.clock;
        patch.ops.iter().try_for_each(|op| clock.follow(op.ts, wall))?;
        let applied = self.join(patch, &peer.into())?;
        self.clock = clock;
        Ok(applied)
    }

    /// Joins all operations or none.
    fn join(&mut self, patch: &ContextPatch, peer: &Arc<str>) -> Result<u64, AxcpError> {
        let writes: Vec<OpWrites> = patch.ops.iter().map(|op| OpWrites::read(op, peer)).collect::<Result<_, _>>()?;
        let mut before = BTreeMap::new();
        for write in &writes {
            let segment = write.path.segment();
            before.entry(segment.to_owned()).or_insert_with(|| self.tree.get(segment).cloned());
        }
        let changing: Vec<bool> = writes.iter().map(|write| write.join(&mut self.tree)).collect();
        if let Err(refused) = self.check_bounds(before.keys()) {
            before.into_iter().for_each(|(segment, node)| self.tree.put(&segment, node));
            return Err(refused);
        }
        let merged = Some(patch.base_version).filter(|base| *base < self.version);
        let applied = self.version;
        for (write, op) in writes.into_iter().zip(&patch.ops).zip(changing).filter_map(|(pair, changes)| changes.then_some(pair)) {
            self.record(write.stamp, op, merged);
        }
        Ok(self.version - applied)
    }

    fn check_bounds<'a>(&self, mut segments: impl Iterator<Item = &'a String>) -> Result<(), AxcpError> {
        if segments.any(|segment| self.tree.get(segment).is_some_and(|node| node.held() > MOST_SEGMENT)) {
            return Err(AxcpError::TooLarge { what: "the bytes held for a segment", most: MOST_SEGMENT });
        }
        if self.tree.held() > MOST_CONTEXT {
            return Err(AxcpError::TooLarge { what: "the bytes held for a context", most: MOST_CONTEXT });
        }
        Ok(())
    }

    fn check_arrays(&self, at: &ContextPath) -> Result<(), AxcpError> {
        let mut node = Some(&self.tree);
        for part in at.parts() {
            if node.is_some_and(RegisterNode::is_array) {
                return Err(AxcpError::BadDelta("an array is written as a whole: its indexes mean another element to each writer"));
            }
            node = node.and_then(|node| node.get(part));
        }
        Ok(())
    }

    fn record(&mut self, stamp: WriteStamp, op: &DeltaOp, merged: Option<u64>) {
        self.version += 1;
        // A copy of the data, which would keep the whole frame that brought it.
        let op = DeltaOp { node_id: stamp.node.as_ref().to_owned(), data: Bytes::copy_from_slice(&op.data), ..op.clone() };
        self.journal_bytes += size(&op);
        self.journal.push_back(ContextVersion { version: self.version, stamp, merged, op });
        while self.journal_bytes > MOST_JOURNAL
            && let Some(oldest) = self.journal.pop_front()
        {
            self.journal_bytes -= size(&oldest.op);
        }
    }

    /// Gives the JSON text of a segment, or `None` where there is none.
    ///
    /// # Errors
    /// When writers that did not know of each other made the segment larger than it may be: a removal or a smaller value mends it.
    pub fn segment(&self, name: &str) -> Result<Option<Bytes>, AxcpError> {
        let mut out = Vec::new();
        let is_there = self.tree.get(name).is_some_and(|node| node.write_json(&mut out));
        if out.len() > MOST_DATA {
            return Err(AxcpError::TooLarge { what: "the bytes of a segment", most: MOST_DATA });
        }
        Ok(is_there.then(|| out.into()))
    }

    /// Gives the JSON text of the whole context.
    pub fn json(&self) -> Bytes {
        let mut out = Vec::new();
        self.tree.write_members(&mut out);
        out.into()
    }

    /// Gives the versions kept, oldest first.
    pub fn history(&self) -> impl Iterator<Item = &ContextVersion> {
        self.journal.iter()
    }

    /// Gives the operations of the versions after `from`, up to `to`.
    ///
    /// # Errors
    /// When a version is not kept any more, or not made yet.
    pub fn range(&self, from: u64, to: u64) -> Result<ContextPatch, AxcpError> {
        let oldest = self.journal.front().map_or(self.version, |first| first.version - 1);
        if from < oldest || to > self.version || from > to {
            return Err(AxcpError::MissingRange { oldest, newest: self.version });
        }
        let ops = self.journal.iter().filter(|entry| entry.version > from && entry.version <= to).map(|entry| entry.op.clone()).collect();
        Ok(ContextPatch { context_id: self.context_id.clone(), base_version: from, ops })
    }

    /// Gives all registers as one patch, which makes an equal replica of an empty one. Removed values are among them.
    pub fn snapshot(&self) -> ContextPatch {
        let mut ops = Vec::new();
        for (name, node) in self.tree.below() {
            node.visit(&mut vec![name], &mut |path, write| ops.push(op_of(path, write)));
        }
        ContextPatch { context_id: self.context_id.clone(), base_version: 0, ops }
    }

    /// Makes the replica of a snapshot and its version, after a restart.
    ///
    /// # Errors
    /// When the snapshot breaks a rule.
    pub fn restore(snapshot: &ContextPatch, node: &str, version: u64) -> Result<Self, AxcpError> {
        let mut replica = Self::new(&snapshot.context_id, node)?;
        let peer = replica.node.clone();
        replica.join(snapshot, &peer)?;
        replica.journal.clear();
        replica.journal_bytes = 0;
        replica.version = version;
        replica.clock = snapshot.ops.iter().fold(HybridClock::default(), |mut clock, op| {
            // Kept times were checked when they came.
            let _followed = clock.follow(op.ts, op.ts);
            clock
        });
        Ok(replica)
    }
}

/// Writes that an operation stands for.
struct OpWrites {
    path: ContextPath,
    stamp: WriteStamp,
    op: DeltaKind,
    text: Bytes,
}

impl OpWrites {
    fn read(op: &DeltaOp, peer: &Arc<str>) -> Result<Self, AxcpError> {
        let path = ContextPath::read(&op.path)?;
        let kind = DeltaKind::try_from(op.op).map_err(|_| AxcpError::BadDelta("`op` is 0, 1, 2 or 3"))?;
        let node = if op.node_id.is_empty() { peer.clone() } else { op.node_id.as_str().into() };
        check_id(&node)?;
        let stamp = WriteStamp { ts: op.ts, node };
        let text = if kind == DeltaKind::Remove { Bytes::new() } else { json_of(&op.data, path.parts().len())? };
        if op.path.len() + longest(&text) > MOST_POINTER {
            return Err(TOO_LONG);
        }
        Ok(Self { path, stamp, op: kind, text })
    }

    fn join(&self, tree: &mut RegisterNode) -> bool {
        let path: Vec<&str> = self.path.parts().iter().map(String::as_str).collect();
        match self.op {
            DeltaKind::Add | DeltaKind::Replace => self.place(tree, &path, &self.text),
            DeltaKind::Remove => self.set(tree, &path, &RegisterValue::Removed, true),
            DeltaKind::Merge if self.text.starts_with(b"{") => self.merge(tree, &path, &self.text),
            DeltaKind::Merge => self.place(tree, &path, &self.text),
        }
    }

    fn set(&self, tree: &mut RegisterNode, path: &[&str], value: &RegisterValue, is_cover: bool) -> bool {
        tree.join(path, RegisterWrite { stamp: &self.stamp, value, is_cover })
    }

    /// Puts a value in the place of all below.
    fn place(&self, tree: &mut RegisterNode, path: &[&str], text: &Bytes) -> bool {
        if !text.starts_with(b"{") {
            return self.set(tree, path, &RegisterValue::Plain(Bytes::copy_from_slice(text)), true);
        }
        let is_changed = self.set(tree, path, &RegisterValue::Object, true);
        self.members(text, |name, value| {
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            self.place(tree, &path, value)
        }) || is_changed
    }

    /// Puts members beside those already there; null removes a member (RFC 7396).
    fn merge(&self, tree: &mut RegisterNode, path: &[&str], text: &Bytes) -> bool {
        let is_changed = self.set(tree, path, &RegisterValue::Object, false);
        self.members(text, |name, value| {
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            match value.first() {
                Some(b'{') => self.merge(tree, &path, value),
                Some(b'n') => self.set(tree, &path, &RegisterValue::Removed, true),
                _ => self.place(tree, &path, value),
            }
        }) || is_changed
    }

    /// Joins each member, and tells if any changed.
    fn members(&self, text: &Bytes, mut join: impl FnMut(&str, &Bytes) -> bool) -> bool {
        let members = Members::again(text);
        members.iter().fold(false, |changed, (name, value)| join(&name, &text.slice_ref(value)) || changed)
    }
}

/// Gives the JSON text of data, without space around it.
fn json_of(data: &[u8], levels: usize) -> Result<Bytes, AxcpError> {
    let text = unpack(data)?;
    let place =
        json::check(&text, Duplicates::RefuseDeep).map_err(|_| AxcpError::BadDelta("the data is no JSON value, or has a key twice"))?;
    let text = text.get(place).unwrap_or_default();
    if levels + depth(text) > MOST_LEVELS {
        return Err(TOO_DEEP);
    }
    Ok(Bytes::copy_from_slice(text))
}

/// Gives the bytes of the longest pointer to a member of valid JSON: a snapshot writes each member with its path.
fn longest(text: &[u8]) -> usize {
    if !text.starts_with(b"{") {
        return 0;
    }
    let members = Members::again(text);
    members.iter().map(|(name, value)| ContextPath::write(&[name]).len() + longest(value)).max().unwrap_or(0)
}

/// Counts the levels of valid JSON.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' if !quoted => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Writes a register as the operation that makes it.
fn op_of(path: &[&str], write: RegisterWrite<'_>) -> DeltaOp {
    let (op, data) = match (write.value, write.is_cover) {
        (RegisterValue::Removed, _) => (DeltaKind::Remove, Bytes::new()),
        (RegisterValue::Object, true) => (DeltaKind::Replace, Bytes::from_static(b"{}")),
        (RegisterValue::Object, false) => (DeltaKind::Merge, Bytes::from_static(b"{}")),
        (RegisterValue::Plain(text), _) => (DeltaKind::Replace, pack(text.clone())),
    };
    let WriteStamp { ts, node } = write.stamp;
    DeltaOp { op: op.into(), path: ContextPath::write(path), data, ts: *ts, node_id: node.as_ref().to_owned() }
}

fn check_id(id: &str) -> Result<(), AxcpError> {
    match id.len() {
        0 => Err(AxcpError::Malformed("an id of a context or a node is empty")),
        1..=MOST_ID => Ok(()),
        _ => Err(AxcpError::TooLarge { what: "the bytes of an id", most: MOST_ID }),
    }
}

/// Memory of an operation, in bytes.
fn size(op: &DeltaOp) -> usize {
    200 + op.path.len() + op.data.len() + op.node_id.len()
}

#[cfg(test)]
mod tests;
