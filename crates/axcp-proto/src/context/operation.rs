//! Operations of patches, read once and then joined to a tree. Keeps no version and checks no bound of a context.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use json::Duplicates;

use super::clock::WriteStamp;
use super::path::{ContextPath, MOST_LEVELS, MOST_POINTER, TOO_DEEP, TOO_LONG};
use super::tree::{RegisterNode, RegisterValue, RegisterWrite, most_held};
use super::value::ValueWalk;
use crate::error::AxcpError;
use crate::gzip::{MOST_UNPACKED, pack, unpack};
use crate::message::{DeltaKind, DeltaOp};

/// Bytes of the longest id of a context or a node.
pub const MOST_ID: usize = 256;

/// Writes that an operation stands for.
pub(super) struct OpWrites {
    path: ContextPath,
    pub(super) stamp: WriteStamp,
    op: DeltaKind,
    text: Bytes,
    /// Bytes of the data once unpacked, with the space around the text.
    unpacked: usize,
    /// Bytes that the writes may add to a tree, at most.
    growth: usize,
}

/// Change of a tree by an operation, as versions record it.
pub(super) struct RecordedOp {
    pub(super) stamp: WriteStamp,
    /// Data without the space around the text; `None`: there was none.
    pub(super) data: Option<Bytes>,
}

impl OpWrites {
    /// Reads the operations of a patch that `peer` sent.
    pub(super) fn read_all(ops: &[DeltaOp], peer: &Arc<str>) -> Result<Vec<Self>, AxcpError> {
        let mut left = MOST_UNPACKED;
        let mut writes = Vec::with_capacity(ops.len());
        for op in ops {
            let write = Self::read(op, peer)?;
            let too_large = AxcpError::TooLarge { what: "the unpacked bytes of a patch", most: MOST_UNPACKED };
            left = left.checked_sub(write.unpacked).ok_or(too_large)?;
            writes.push(write);
        }
        Ok(writes)
    }

    /// Reads an operation; without a named author, `peer` is the author.
    pub(super) fn read(op: &DeltaOp, peer: &Arc<str>) -> Result<Self, AxcpError> {
        let path = ContextPath::read(&op.path)?;
        let kind = DeltaKind::try_from(op.op).map_err(|_| AxcpError::BadDelta("`op` is 0, 1, 2 or 3"))?;
        let node = if op.node_id.is_empty() { peer.clone() } else { op.node_id.as_str().into() };
        check_id(&node)?;
        let stamp = WriteStamp { ts: op.ts, node };
        let (text, unpacked) = if kind == DeltaKind::Remove { (Bytes::new(), 0) } else { json_of(&op.data, path.parts().len())? };
        let mut inside = TextShape::default();
        inside.read(&mut ValueWalk::new(&text), op.path.len());
        if inside.longest > MOST_POINTER {
            return Err(TOO_LONG);
        }
        let names: usize = path.parts().iter().map(String::len).sum();
        let growth = most_held(path.parts().len() + inside.members, names + text.len(), stamp.node.len());
        Ok(Self { path, stamp, op: kind, text, unpacked, growth })
    }

    pub(super) fn segment(&self) -> &str {
        self.path.segment()
    }

    /// Gives what a version records of the operation.
    pub(super) fn into_recorded(self) -> RecordedOp {
        let Self { stamp, text, unpacked, .. } = self;
        RecordedOp { stamp, data: (text.len() != unpacked).then(|| pack(text)) }
    }

    /// Sums up the growth of the segments, at most.
    pub(super) fn growth(writes: &[Self]) -> BTreeMap<&str, usize> {
        let mut growth: BTreeMap<&str, usize> = BTreeMap::new();
        for write in writes {
            *growth.entry(write.segment()).or_default() += write.growth;
        }
        growth
    }

    /// Joins the writes to a tree. Tells if any register changed.
    pub(super) fn join(&self, tree: &mut RegisterNode) -> bool {
        let path: Vec<&str> = self.path.parts().iter().map(String::as_str).collect();
        let removes = self.op == DeltaKind::Remove;
        tree.join(&path, &self.stamp, !removes, |node, floor| match self.op {
            DeltaKind::Remove => self.set(node, &RegisterValue::Removed, floor),
            DeltaKind::Add | DeltaKind::Replace => self.place(node, &mut ValueWalk::new(&self.text), floor),
            DeltaKind::Merge => self.merge(node, &mut ValueWalk::new(&self.text), floor),
        })
    }

    /// Puts a single value in the place of all below.
    fn set(&self, node: &mut RegisterNode, value: &RegisterValue, floor: Option<&WriteStamp>) -> bool {
        node.set(RegisterWrite { stamp: &self.stamp, value, is_cover: true }, floor)
    }

    /// Puts a value and its members in the place of all below.
    fn place(&self, node: &mut RegisterNode, walk: &mut ValueWalk<'_>, floor: Option<&WriteStamp>) -> bool {
        if let Some(text) = walk.enter() {
            return self.set(node, &RegisterValue::Plain(text.into()), floor);
        }
        let is_changed = self.set(node, &RegisterValue::Object, floor);
        self.members(node, walk, floor, Self::place) || is_changed
    }

    /// Puts members beside those already there; null removes a member (RFC 7396).
    fn merge(&self, node: &mut RegisterNode, walk: &mut ValueWalk<'_>, floor: Option<&WriteStamp>) -> bool {
        if let Some(text) = walk.enter() {
            let value = if text == b"null" && walk.is_inside() { RegisterValue::Removed } else { RegisterValue::Plain(text.into()) };
            return self.set(node, &value, floor);
        }
        let object = RegisterWrite { stamp: &self.stamp, value: &RegisterValue::Object, is_cover: false };
        let is_changed = node.set(object, floor);
        self.members(node, walk, floor, Self::merge) || is_changed
    }

    /// Joins each member of the object at this place, and tells if any changed.
    fn members(
        &self,
        node: &mut RegisterNode,
        walk: &mut ValueWalk<'_>,
        floor: Option<&WriteStamp>,
        join: fn(&Self, &mut RegisterNode, &mut ValueWalk<'_>, Option<&WriteStamp>) -> bool,
    ) -> bool {
        let mut is_changed = false;
        while let Some(name) = walk.member() {
            let joined = node.join_below(&name, &self.stamp, floor, |below, floor| join(self, below, walk, floor));
            match joined {
                Some(changed) => is_changed |= changed,
                None => walk.skip(),
            }
        }
        is_changed
    }
}

/// Writes a register as the operation that makes it.
pub(super) fn op_of(path: &[&str], write: RegisterWrite<'_>) -> DeltaOp {
    let (op, data) = match (write.value, write.is_cover) {
        (RegisterValue::Removed, _) => (DeltaKind::Remove, Bytes::new()),
        (RegisterValue::Object, true) => (DeltaKind::Replace, Bytes::from_static(b"{}")),
        (RegisterValue::Object, false) => (DeltaKind::Merge, Bytes::from_static(b"{}")),
        (RegisterValue::Plain(text), _) => (DeltaKind::Replace, pack(Bytes::copy_from_slice(text))),
    };
    let WriteStamp { ts, node } = write.stamp;
    DeltaOp { op: op.into(), path: ContextPath::write(path), data, ts: *ts, node_id: node.as_ref().to_owned() }
}

/// Checks an id of a context or a node.
pub(super) fn check_id(id: &str) -> Result<(), AxcpError> {
    match id.len() {
        0 => Err(AxcpError::Malformed("an id of a context or a node is empty")),
        1..=MOST_ID => Ok(()),
        _ => Err(AxcpError::TooLarge { what: "the bytes of an id", most: MOST_ID }),
    }
}

/// Gives the JSON text of data, without the space around it, and the bytes with that space: unpacking them is what a peer makes us do.
fn json_of(data: &[u8], levels: usize) -> Result<(Bytes, usize), AxcpError> {
    let text = unpack(data)?;
    let unpacked = text.len();
    let place =
        json::check(&text, Duplicates::RefuseDeep).map_err(|_| AxcpError::BadDelta("the data is no JSON value, or has a key twice"))?;
    let text = text.get(place).unwrap_or_default();
    if levels + depth(text) > MOST_LEVELS {
        return Err(TOO_DEEP);
    }
    Ok((Bytes::copy_from_slice(text), unpacked))
}

/// Shape of a text whose members become registers.
#[derive(Default)]
struct TextShape {
    /// Bytes of the longest pointer to a member: a snapshot writes each member with its path.
    longest: usize,
    /// Number of the members at all levels.
    members: usize,
}

impl TextShape {
    /// Reads the value at a place of valid JSON, which stands under a pointer of `above` bytes.
    fn read(&mut self, walk: &mut ValueWalk<'_>, above: usize) {
        self.longest = self.longest.max(above);
        if walk.enter().is_some() {
            return;
        }
        while let Some(name) = walk.member() {
            let escaped = name.bytes().filter(|byte| matches!(byte, b'~' | b'/')).count();
            self.members += 1;
            self.read(walk, above + 1 + name.len() + escaped);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_10_no_write_grows_by_more_than_was_reckoned() {
        let mut root = RegisterNode::default();
        for number in 0_u64..40 {
            let (path, data) = (format!("/{number}"), Bytes::from_static(b"1"));
            let op = DeltaOp { op: DeltaKind::Replace.into(), path, data, ts: number + 1, node_id: "n".into() };
            let write = OpWrites::read(&op, &"n".into()).unwrap();
            let before = root.held();
            assert!(write.join(&mut root));
            assert!(root.held() - before <= write.growth, "{number}");
        }
    }
}
