//! Patches in parts, each of which fits an envelope. Knows no replica.

use crate::envelope::MOST_OPS;
use crate::gzip::{MOST_UNPACKED, unpacked_len};
use crate::message::{ContextPatch, DeltaOp};

/// Bytes of the operations of a part, as sent.
const MOST_SENT: usize = 1024 * 1024;

/// Divides a patch whose operations were checked before. Parts of a snapshot keep its version; others go on from version to version.
pub(super) fn parts_of(patch: ContextPatch) -> Vec<ContextPatch> {
    let ContextPatch { context_id, base_version, ops, new_version, is_part, part: _, epoch } = patch;
    let counts_ops = new_version == 0 && !is_part;
    let mut parts: Vec<ContextPatch> = Vec::new();
    let (mut size, mut base_version) = (PartSize::default(), base_version);
    for op in ops {
        if !size.takes(&op) || parts.is_empty() {
            size = PartSize::default();
            size.takes(&op);
            let part =
                ContextPatch { context_id: context_id.clone(), base_version, new_version, is_part, epoch, ..ContextPatch::default() };
            parts.push(part);
        }
        base_version = if counts_ops { base_version.saturating_add(1) } else { base_version };
        if let Some(part) = parts.last_mut() {
            part.ops.push(op);
        }
    }
    parts
}

/// Size of a part that grows.
#[derive(Debug, Default)]
pub(super) struct PartSize {
    ops: usize,
    sent: usize,
    unpacked: usize,
}

impl PartSize {
    /// Takes an operation, if there is room. The first always has room.
    pub(super) fn takes(&mut self, op: &DeltaOp) -> bool {
        let (sent, unpacked) = (self.sent + size(op), self.unpacked + unpacked_len(&op.data));
        let fits = self.ops == 0 || self.ops < MOST_OPS && sent <= MOST_SENT && unpacked <= MOST_UNPACKED;
        if fits {
            (self.ops, self.sent, self.unpacked) = (self.ops + 1, sent, unpacked);
        }
        fits
    }
}

/// Bytes of an operation on the wire, at most.
fn size(op: &DeltaOp) -> usize {
    40 + op.path.len() + op.data.len() + op.node_id.len()
}
