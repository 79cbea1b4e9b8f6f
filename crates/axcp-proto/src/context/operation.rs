//! Operations of patches, read once and then joined to a tree. Keeps no version and checks no bound of a context.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use json::{Duplicates, Members};

use super::clock::WriteStamp;
use super::path::{ContextPath, MOST_LEVELS, MOST_POINTER, TOO_DEEP, TOO_LONG};
use super::tree::{NODE, RegisterNode, RegisterValue, RegisterWrite};
use crate::error::AxcpError;
use crate::gzip::{pack, unpack};
use crate::message::{DeltaKind, DeltaOp};

/// Bytes of the longest id of a context or a node.
pub const MOST_ID: usize = 256;
/// Bytes of the data of all operations of a patch, unpacked: short data may stand for much.
pub const MOST_UNPACKED: usize = 2 * 1024 * 1024;

/// Writes that an operation stands for.
pub(super) struct OpWrites {
    path: ContextPath,
    pub(super) stamp: WriteStamp,
    op: DeltaKind,
    text: Bytes,
    /// Bytes that the writes may add to a tree, at most.
    growth: usize,
}

impl OpWrites {
    /// Reads the operations of a patch that `peer` sent.
    pub(super) fn read_all(ops: &[DeltaOp], peer: &Arc<str>) -> Result<Vec<Self>, AxcpError> {
        let mut left = MOST_UNPACKED;
        let mut writes = Vec::with_capacity(ops.len());
        for op in ops {
            let write = Self::read(op, peer)?;
            let too_large = AxcpError::TooLarge { what: "the unpacked bytes of a patch", most: MOST_UNPACKED };
            left = left.checked_sub(write.text.len()).ok_or(too_large)?;
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
        let text = if kind == DeltaKind::Remove { Bytes::new() } else { json_of(&op.data, path.parts().len())? };
        let inside = TextShape::read(&text);
        if op.path.len() + inside.longest > MOST_POINTER {
            return Err(TOO_LONG);
        }
        let parts: usize = path.parts().iter().map(|part| NODE + part.len()).sum();
        let growth = parts + inside.members * NODE + text.len();
        Ok(Self { path, stamp, op: kind, text, growth })
    }

    pub(super) fn segment(&self) -> &str {
        self.path.segment()
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

/// Writes a register as the operation that makes it.
pub(super) fn op_of(path: &[&str], write: RegisterWrite<'_>) -> DeltaOp {
    let (op, data) = match (write.value, write.is_cover) {
        (RegisterValue::Removed, _) => (DeltaKind::Remove, Bytes::new()),
        (RegisterValue::Object, true) => (DeltaKind::Replace, Bytes::from_static(b"{}")),
        (RegisterValue::Object, false) => (DeltaKind::Merge, Bytes::from_static(b"{}")),
        (RegisterValue::Plain(text), _) => (DeltaKind::Replace, pack(text.clone())),
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

/// Shape of a text whose members become registers.
#[derive(Default)]
struct TextShape {
    /// Bytes of the longest pointer to a member: a snapshot writes each member with its path.
    longest: usize,
    /// Number of the members at all levels.
    members: usize,
}

impl TextShape {
    /// Reads valid JSON.
    fn read(text: &[u8]) -> Self {
        let mut shape = Self::default();
        if text.starts_with(b"{") {
            for (name, value) in Members::again(text).iter() {
                let inside = Self::read(value);
                shape.longest = shape.longest.max(ContextPath::write(&[name]).len() + inside.longest);
                shape.members += 1 + inside.members;
            }
        }
        shape
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
