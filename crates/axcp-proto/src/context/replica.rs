//! A replica of one context: applies patches, counts versions and keeps the last of them. Decides nothing about who may write.
//!
//! Patches are joined, not replayed: whatever the order, repetition and grouping, replicas with the same operations have the same
//! [`Replica::snapshot`], byte for byte. Only the author of a write is held to rules about the present state (an array has no parts, a
//! segment has its bound): a receiver that judged by its own state would lose what another receiver keeps.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::clock::{HybridClock, WriteStamp};
use super::operation::{OpWrites, RecordedOp, check_id, op_of};
use super::part::{PartSize, parts_of};
use super::path::ContextPath;
use super::tree::RegisterNode;
use crate::error::AxcpError;
use crate::gzip::{MOST_DATA, pack, unpacked_len};
use crate::message::{ContextPatch, DeltaKind, DeltaOp};

/// Bytes of the registers of a segment, removed ones included.
pub const MOST_SEGMENT: usize = 64 * MOST_DATA;
/// Bytes of the registers of a context.
pub const MOST_CONTEXT: usize = 32 * 1024 * 1024;
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
    /// Peer whose connection brought the operation in this run; not kept.
    pub via: Option<Arc<str>>,
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
    /// Bytes held when a patch found no room.
    full: Option<usize>,
    /// Last version on the disk: no later one leaves the memory.
    kept: u64,
    bounds: HistoryBounds,
}

/// Bytes after which old versions are forgotten, and a batch of a snapshot ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryBounds {
    pub(super) journal: usize,
    pub(super) batch: usize,
}

/// Segments before a change, to be put back if the change is refused.
type SegmentCopies = BTreeMap<String, Option<RegisterNode>>;

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
            full: None,
            kept: u64::MAX,
            bounds: HistoryBounds { journal: MOST_JOURNAL, batch: SOME },
        })
    }

    /// Makes a replica with other bounds, so that a short history goes over them.
    #[cfg(test)]
    pub(super) fn bounded(self, bounds: HistoryBounds) -> Self {
        Self { bounds, ..self }
    }

    /// Gives the id of the context.
    pub fn context_id(&self) -> &str {
        &self.context_id
    }

    /// Gives the number of operations that changed this replica.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Writes as this node: kinds, paths and JSON texts, all or none. Gives the patch for the others.
    ///
    /// # Errors
    /// When an operation breaks a rule, goes into an array, or makes a segment too large: one that others made too large may only shrink.
    pub fn write(&mut self, changes: &[(DeltaKind, &str, Bytes)], wall: u64) -> Result<ContextPatch, AxcpError> {
        let paths: Vec<ContextPath> = changes.iter().map(|(_, path, _)| ContextPath::read(path)).collect::<Result<_, _>>()?;
        let (before, mut clock) = (self.copies(paths.iter().map(ContextPath::segment)), self.clock);
        let written = paths.iter().zip(changes).map(|(at, change)| clock.tick(wall).and_then(|ts| self.write_one(at, change, ts)));
        let written = written.collect::<Result<Vec<_>, _>>().and_then(|written| self.check_segments(&before).map(|()| written));
        match written {
            Ok(written) => {
                let base_version = self.version;
                let ops = written.iter().map(|(_, op)| op.clone()).collect();
                written.into_iter().for_each(|(stamp, op)| self.record(stamp, &op, None, None));
                self.clock = clock;
                Ok(ContextPatch { context_id: self.context_id.clone(), base_version, ops, ..ContextPatch::default() })
            }
            Err(refused) => {
                self.put_back(before);
                Err(refused)
            }
        }
    }

    fn write_one(
        &mut self,
        at: &ContextPath,
        (kind, path, data): &(DeltaKind, &str, Bytes),
        ts: u64,
    ) -> Result<(WriteStamp, DeltaOp), AxcpError> {
        self.check_arrays(at)?;
        let op =
            DeltaOp { op: (*kind).into(), path: (*path).to_owned(), data: pack(data.clone()), ts, node_id: self.node.as_ref().to_owned() };
        let writes = OpWrites::read_all(std::slice::from_ref(&op), &self.node)?;
        // The caller has copies of the segments, and puts them back if anything is refused.
        let is_near = self.is_near_bounds(&writes);
        self.join_writes(&writes, is_near)?;
        Ok((WriteStamp { ts, node: self.node.clone() }, op))
    }

    /// Checks that a write left each segment within its bound, or shorter than before.
    fn check_segments(&self, before: &SegmentCopies) -> Result<(), AxcpError> {
        for (name, before) in before {
            let (length, length_before) = (length(self.tree.get(name)), length(before.as_ref()));
            if length > MOST_DATA && length >= length_before {
                return Err(TOO_LARGE);
            }
        }
        Ok(())
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

    /// Joins all operations or none, and records those that changed anything.
    fn join(&mut self, patch: &ContextPatch, peer: &Arc<str>) -> Result<u64, AxcpError> {
        let changes = self.join_all(&patch.ops, peer)?;
        let merged = Some(patch.base_version).filter(|base| *base < self.version);
        let before = self.version;
        for (change, op) in changes.into_iter().zip(&patch.ops).filter_map(|(change, op)| Some((change?, op))) {
            let data = change.data.unwrap_or_else(|| op.data.clone());
            self.record(change.stamp, &DeltaOp { data, ..op.clone() }, merged, Some(peer.clone()));
        }
        Ok(self.version - before)
    }

    /// Joins all operations to the tree, or none. Gives those that changed anything, as they are recorded.
    fn join_all(&mut self, ops: &[DeltaOp], peer: &Arc<str>) -> Result<Vec<Option<RecordedOp>>, AxcpError> {
        let writes = OpWrites::read_all(ops, peer)?;
        let before = self.is_near_bounds(&writes).then(|| self.copies(writes.iter().map(OpWrites::segment)));
        let joined = self.join_writes(&writes, before.is_some());
        if let (Some(before), Err(_)) = (before, &joined) {
            self.put_back(before);
            self.full = Some(self.tree.held());
        }
        Ok(writes.into_iter().zip(joined?).map(|(write, changes)| changes.then(|| write.into_recorded())).collect())
    }

    /// Joins writes to the tree up to the first that breaks a bound, and tells of each if any register changed.
    fn join_writes(&mut self, writes: &[OpWrites], is_near_bounds: bool) -> Result<Vec<bool>, AxcpError> {
        let mut changing = Vec::with_capacity(writes.len());
        for write in writes {
            let held = is_near_bounds.then(|| self.held_of(write.segment()));
            changing.push(write.join(&mut self.tree));
            // After each: a patch that goes over a bound on its way costs that memory.
            held.map_or(Ok(()), |held| self.check_bounds(write.segment(), held))?;
        }
        Ok(changing)
    }

    /// Joins operations that were admitted before, whatever bound held then.
    fn join_kept(&mut self, ops: &[DeltaOp], peer: &Arc<str>) -> Result<(), AxcpError> {
        for write in OpWrites::read_all(ops, peer)? {
            write.join(&mut self.tree);
        }
        Ok(())
    }

    /// Gives the bytes held for a segment, and for all.
    fn held_of(&self, segment: &str) -> (usize, usize) {
        (self.tree.get(segment).map_or(0, RegisterNode::held), self.tree.held())
    }

    /// Checks if writes could break a bound. The answer needs no walk over the tree, and most patches no copy.
    fn is_near_bounds(&self, writes: &[OpWrites]) -> bool {
        let growth = OpWrites::growth(writes);
        let is_near = |(segment, growth): (&&str, &usize)| self.tree.get(segment).map_or(0, RegisterNode::held) + growth > MOST_SEGMENT;
        self.tree.held() + growth.values().sum::<usize>() > MOST_CONTEXT || growth.iter().any(is_near)
    }

    fn copies<'a>(&self, segments: impl Iterator<Item = &'a str>) -> SegmentCopies {
        let mut copies = SegmentCopies::new();
        for segment in segments {
            if !copies.contains_key(segment) {
                copies.insert(segment.to_owned(), self.tree.get(segment).cloned());
            }
        }
        copies
    }

    fn put_back(&mut self, before: SegmentCopies) {
        before.into_iter().for_each(|(segment, node)| self.tree.put(&segment, node));
    }

    /// Checks the bounds after a write, which may always free memory.
    fn check_bounds(&self, segment: &str, (segment_before, before): (usize, usize)) -> Result<(), AxcpError> {
        let (of_segment, of_all) = self.held_of(segment);
        if of_segment > MOST_SEGMENT && of_segment >= segment_before {
            return Err(AxcpError::TooLarge { what: "the bytes held for a segment", most: MOST_SEGMENT });
        }
        if of_all > MOST_CONTEXT && of_all >= before {
            return Err(AxcpError::TooLarge { what: "the bytes held for a context", most: MOST_CONTEXT });
        }
        Ok(())
    }

    /// Tells, once, that there is room again after a patch found none: what was refused can be asked for again.
    pub fn has_room_again(&mut self) -> bool {
        self.full.take_if(|full| self.tree.held() < *full).is_some()
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

    fn record(&mut self, stamp: WriteStamp, op: &DeltaOp, merged: Option<u64>, via: Option<Arc<str>>) {
        self.version += 1;
        // A copy of the data, which would keep the whole frame that brought it.
        let op = DeltaOp { node_id: stamp.node.as_ref().to_owned(), data: Bytes::copy_from_slice(&op.data), ..op.clone() };
        let made = ContextVersion { version: self.version, stamp, merged, op, via };
        self.journal_bytes += size(&made);
        self.journal.push_back(made);
        self.trim();
    }

    /// Notes that versions up to `version` are on the disk. From then on, no later version is forgotten before it is noted too.
    pub fn note_kept(&mut self, version: u64) {
        self.kept = version;
        self.trim();
    }

    fn trim(&mut self) {
        while self.journal_bytes > self.bounds.journal
            && self.journal.front().is_some_and(|oldest| oldest.version <= self.kept)
            && let Some(oldest) = self.journal.pop_front()
        {
            self.journal_bytes -= size(&oldest);
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
            return Err(TOO_LARGE);
        }
        Ok(is_there.then(|| out.into()))
    }

    /// Gives the JSON text at a path, or `None` where there is none. Parts of an array have no paths.
    ///
    /// # Errors
    /// When the path is no pointer.
    pub fn value(&self, path: &str) -> Result<Option<Bytes>, AxcpError> {
        let at = ContextPath::read(path)?;
        let found = at.parts().iter().try_fold(&self.tree, |node, part| node.get(part));
        let mut out = Vec::new();
        Ok(found.is_some_and(|node| node.write_json(&mut out)).then(|| out.into()))
    }

    /// Gives the bytes held for the registers.
    pub fn held(&self) -> usize {
        self.tree.held()
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
        self.check_range(from, to)?;
        let ops = self.between(from, to).map(|entry| entry.op.clone()).collect();
        Ok(ContextPatch { context_id: self.context_id.clone(), base_version: from, ops, ..ContextPatch::default() })
    }

    /// Gives as many operations of the versions after `from`, up to `to`, as fit an envelope. No further one is copied.
    ///
    /// # Errors
    /// When a version is not kept any more, or not made yet.
    pub(super) fn first_part(&self, from: u64, to: u64) -> Result<ContextPatch, AxcpError> {
        self.check_range(from, to)?;
        let mut size = PartSize::default();
        let ops = self.between(from, to).take_while(|entry| size.takes(&entry.op)).map(|entry| entry.op.clone()).collect();
        Ok(ContextPatch { context_id: self.context_id.clone(), base_version: from, ops, ..ContextPatch::default() })
    }

    /// Checks that the versions after `from`, up to `to`, are held. The answer takes no walk.
    ///
    /// # Errors
    /// When a version is not kept any more, or not made yet.
    pub fn check_range(&self, from: u64, to: u64) -> Result<(), AxcpError> {
        let oldest = self.journal.front().map_or(self.version, |first| first.version - 1);
        let is_held = oldest <= from && from <= to && to <= self.version;
        if is_held { Ok(()) } else { Err(AxcpError::MissingRange { oldest, newest: self.version }) }
    }

    /// Gives the kept versions after `from`, up to `to`, oldest first.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &ContextVersion> {
        let oldest = self.journal.front().map_or(self.version, |first| first.version - 1);
        let before = usize::try_from(from.saturating_sub(oldest)).unwrap_or(usize::MAX).min(self.journal.len());
        self.journal.range(before..).take_while(move |entry| entry.version <= to)
    }

    /// Gives all registers as one patch, which makes an equal replica of an empty one. Removed values are among them. The patch may be
    /// larger than an envelope: [`Replica::snapshot_after`] gives the parts.
    pub fn snapshot(&self) -> ContextPatch {
        ContextPatch { context_id: self.context_id.clone(), ops: self.registers(None, usize::MAX), ..ContextPatch::default() }
    }

    /// Gives some registers after those of the pointer `after`, and the last pointer among them; `None` where there are no more. Registers of
    /// other times make an equal replica too, once all operations since the first of them are joined.
    pub fn snapshot_after(&self, after: Option<&str>) -> Option<(String, Vec<ContextPatch>)> {
        let ops = self.registers(after, self.bounds.batch);
        let last = ops.last()?.path.clone();
        let whole = ContextPatch { context_id: self.context_id.clone(), ops, is_part: true, ..ContextPatch::default() };
        Some((last, parts_of(whole)))
    }

    /// Gives the registers after a pointer, in operations of about `most` bytes before they are packed. Those of one pointer stay together.
    fn registers(&self, after: Option<&str>, most: usize) -> Vec<DeltaOp> {
        let after = after.and_then(|after| ContextPath::read(after).ok());
        let (mut ops, mut bytes): (Vec<DeltaOp>, usize) = (Vec::new(), 0);
        // A break is no failure: the rest comes next time.
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
            self.tree.visit(after.as_ref().map(ContextPath::parts), &mut Vec::new(), &mut |path, write| {
                if bytes >= most && ops.last().is_some_and(|last| last.path != ContextPath::write(path)) {
                    return ControlFlow::Break(());
                }
                let op = op_of(path, write);
                bytes = bytes.saturating_add(size_of::<DeltaOp>() + op.path.len() + unpacked_len(&op.data) + op.node_id.len());
                ops.push(op);
                ControlFlow::Continue(())
            });
        ops
    }

    /// Makes the replica of a snapshot and its version, after a restart.
    ///
    /// # Errors
    /// When the snapshot breaks a rule.
    pub fn restore(snapshot: &ContextPatch, node: &str, version: u64) -> Result<Self, AxcpError> {
        let mut replica = Self::new(&snapshot.context_id, node)?;
        let peer = replica.node.clone();
        for part in parts_of(snapshot.clone()) {
            replica.join_kept(&part.ops, &peer)?;
        }
        replica.version = version;
        for op in &snapshot.ops {
            replica.clock.advance(op.ts);
        }
        Ok(replica)
    }

    /// Makes the next version again, as it was kept.
    ///
    /// # Errors
    /// When the version is not the next, or breaks a rule.
    pub fn replay(&mut self, entry: &ContextVersion) -> Result<(), AxcpError> {
        if self.version.checked_add(1) != Some(entry.version) {
            return Err(AxcpError::Malformed("a kept version does not follow the version before"));
        }
        self.join_kept(std::slice::from_ref(&entry.op), &entry.stamp.node)?;
        self.clock.advance(entry.stamp.ts);
        self.record(entry.stamp.clone(), &entry.op, entry.merged, None);
        Ok(())
    }
}

/// Refusal of a segment that is too long.
const TOO_LARGE: AxcpError = AxcpError::TooLarge { what: "the bytes of a segment", most: MOST_DATA };

/// Bytes of the JSON text of a segment.
fn length(segment: Option<&RegisterNode>) -> usize {
    let mut out = Vec::new();
    if let Some(node) = segment {
        node.write_json(&mut out);
    }
    out.len()
}

/// Bytes of operations after which a part of a snapshot is long enough: packing them keeps readers waiting.
const SOME: usize = 1024 * 1024;

/// Memory of a version, in bytes: four texts in allocations of their own, and a shared one.
fn size(made: &ContextVersion) -> usize {
    let op = &made.op;
    let texts = op.path.len() + op.data.len() + op.node_id.len() + made.stamp.node.len() + made.via.as_deref().map_or(0, str::len);
    size_of::<ContextVersion>() + 7 * 16 + texts
}

#[cfg(test)]
mod tests;
