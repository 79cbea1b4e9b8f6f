//! Division of a patch by the times of its operations. Applies no operation.

use super::clock::is_from_future;
use crate::message::ContextPatch;

/// A patch of which some operations are from the future, and some are not.
#[derive(Debug)]
pub(super) struct TimelyPatch {
    /// All operations that are not from the future. Joining needs no order.
    pub(super) timely: ContextPatch,
    /// Operations before the first one from the future, where each makes a version: so far the versions are known.
    pub(super) first: Option<ContextPatch>,
}

impl TimelyPatch {
    /// Divides a patch; `None`: its operations are all of one kind.
    pub(super) fn divide(patch: &ContextPatch, wall: u64) -> Option<Self> {
        let is_timely = |ts: u64| !is_from_future(ts, wall);
        let count = patch.ops.iter().position(|op| !is_timely(op.ts))?;
        let timely: Vec<_> = patch.ops.iter().filter(|op| is_timely(op.ts)).cloned().collect();
        if timely.is_empty() {
            return None;
        }
        let counts_ops = patch.new_version == 0 && !patch.is_part && count > 0;
        let first = counts_ops.then(|| ContextPatch { ops: timely.iter().take(count).cloned().collect(), ..part_of(patch) });
        Some(Self { timely: ContextPatch { ops: timely, ..part_of(patch) }, first })
    }
}

/// Gives a patch without its operations.
fn part_of(patch: &ContextPatch) -> ContextPatch {
    let ContextPatch { context_id, base_version, ops: _, new_version, is_part, part, epoch } = patch;
    let (context_id, ops) = (context_id.clone(), Vec::new());
    ContextPatch { context_id, base_version: *base_version, ops, new_version: *new_version, is_part: *is_part, part: *part, epoch: *epoch }
}
