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
    let (mut sent, mut unpacked, mut base_version) = (0, 0, base_version);
    for op in ops {
        let (adds_sent, adds_unpacked) = (size(&op), unpacked_len(&op.data));
        let fits =
            |part: &ContextPatch| part.ops.len() < MOST_OPS && sent + adds_sent <= MOST_SENT && unpacked + adds_unpacked <= MOST_UNPACKED;
        if !parts.last().is_some_and(fits) {
            (sent, unpacked) = (0, 0);
            let part =
                ContextPatch { context_id: context_id.clone(), base_version, new_version, is_part, epoch, ..ContextPatch::default() };
            parts.push(part);
        }
        (sent, unpacked) = (sent + adds_sent, unpacked + adds_unpacked);
        base_version = if counts_ops { base_version.saturating_add(1) } else { base_version };
        if let Some(part) = parts.last_mut() {
            part.ops.push(op);
        }
    }
    parts
}

/// Bytes of an operation on the wire, at most.
fn size(op: &DeltaOp) -> usize {
    40 + op.path.len() + op.data.len() + op.node_id.len()
}
