//! Patches kept for a peer that is away, until its return or the end of their time. Knows no clock: milliseconds come in.
//!
//! On the wire a time to live has no beginning: a sender writes the time left, and a keeper counts the time of keeping.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::envelope::{MOST_OPS, MOST_PATCHES};
use crate::gzip::{MOST_UNPACKED, unpacked_len};
use crate::message::{ContextPatch, RetryEnvelope};

/// Bytes of the patches kept for a peer.
pub const MOST_KEPT: usize = 1024 * 1024;

/// A patch and the end of its time, in milliseconds of the caller's clock.
#[derive(Debug, Clone)]
struct KeptPatch {
    patch: ContextPatch,
    ends: u64,
    bytes: usize,
}

/// An envelope that is being filled, with the number of its operations and their bytes, unpacked.
struct RetryFilling {
    envelope: RetryEnvelope,
    ops: usize,
    unpacked: usize,
}

impl RetryFilling {
    /// Tells if a reader takes both as one.
    fn has_room(&self, other: &Self) -> bool {
        self.envelope.ttl_ms == other.envelope.ttl_ms
            && self.envelope.buffered_patches.len() < MOST_PATCHES
            && self.ops + other.ops <= MOST_OPS
            && self.unpacked + other.unpacked <= MOST_UNPACKED
    }

    fn add(&mut self, other: &Self, patch: ContextPatch) {
        self.ops += other.ops;
        self.unpacked += other.unpacked;
        self.envelope.buffered_patches.push(patch);
    }
}

/// Patches for a peer that is away.
#[derive(Debug, Clone, Default)]
pub struct RetryBuffer {
    kept: VecDeque<KeptPatch>,
    bytes: usize,
    expired: u64,
    displaced: u64,
}

impl RetryBuffer {
    /// Keeps a patch for `ttl_ms` milliseconds. The oldest patches make room: their reader finds a gap, and asks for the versions.
    pub fn keep(&mut self, mut patch: ContextPatch, ttl_ms: u32, now: u64) {
        if ttl_ms == 0 {
            self.expired += 1;
            return;
        }
        // Copies, since each would keep the whole frame that brought it.
        patch.ops.iter_mut().for_each(|op| op.data = Bytes::copy_from_slice(&op.data));
        let bytes = size(&patch);
        self.bytes += bytes;
        self.kept.push_back(KeptPatch { patch, ends: now.saturating_add(ttl_ms.into()), bytes });
        self.expire(now);
        while self.bytes > MOST_KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.bytes;
            self.displaced += 1;
        }
    }

    /// Keeps what another node kept before, for the time that is left.
    pub fn keep_on(&mut self, retry: RetryEnvelope, now: u64) {
        let RetryEnvelope { buffered_patches, ttl_ms } = retry;
        buffered_patches.into_iter().for_each(|patch| self.keep(patch, ttl_ms, now));
    }

    /// Gives all patches whose time is left, in the order of their versions, and forgets them.
    pub fn replay(&mut self, now: u64) -> Vec<RetryEnvelope> {
        self.expire(now);
        self.bytes = 0;
        let mut kept: Vec<KeptPatch> = self.kept.drain(..).collect();
        kept.sort_by(|a, b| (&a.patch.context_id, a.patch.base_version).cmp(&(&b.patch.context_id, b.patch.base_version)));
        let mut envelopes: Vec<RetryFilling> = Vec::new();
        for KeptPatch { patch, ends, .. } in kept {
            let ttl_ms = u32::try_from(ends.saturating_sub(now)).unwrap_or(u32::MAX);
            let (ops, unpacked) = (patch.ops.len(), patch.ops.iter().map(|op| unpacked_len(&op.data)).sum());
            let mut one = RetryFilling { envelope: RetryEnvelope { buffered_patches: Vec::new(), ttl_ms }, ops, unpacked };
            match envelopes.last_mut().filter(|last| last.has_room(&one)) {
                Some(last) => last.add(&one, patch),
                None => {
                    one.envelope.buffered_patches.push(patch);
                    envelopes.push(one);
                }
            }
        }
        envelopes.into_iter().map(|filling| filling.envelope).collect()
    }

    /// Gives the number of patches dropped at the end of their time.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Gives the number of patches dropped for want of room.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    fn expire(&mut self, now: u64) {
        let (mut bytes, mut expired) = (0, 0);
        self.kept.retain(|kept| {
            let lives = kept.ends > now;
            if !lives {
                bytes += kept.bytes;
                expired += 1;
            }
            lives
        });
        self.bytes -= bytes;
        self.expired += expired;
    }
}

/// Memory of a patch, in bytes.
fn size(patch: &ContextPatch) -> usize {
    let ops = patch.ops.iter().map(|op| 200 + op.path.len() + op.data.len() + op.node_id.len());
    200 + patch.context_id.len() + ops.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::DeltaOp;

    fn patch(context: &str, base_version: u64, data: usize) -> ContextPatch {
        let op = DeltaOp { data: vec![b'1'; data].into(), ..DeltaOp::default() };
        ContextPatch { context_id: context.into(), base_version, ops: vec![op], ..ContextPatch::default() }
    }

    fn versions(envelopes: &[RetryEnvelope]) -> Vec<(u32, Vec<u64>)> {
        envelopes.iter().map(|e| (e.ttl_ms, e.buffered_patches.iter().map(|patch| patch.base_version).collect())).collect()
    }

    #[test]
    fn xc_13_patches_come_back_in_order() {
        let mut buffer = RetryBuffer::default();
        for base in [47, 45, 46] {
            buffer.keep(patch("chat", base, 1), 1000, 0);
        }
        assert_eq!(versions(&buffer.replay(400)), [(600, vec![45, 46, 47])]);
        assert!(buffer.replay(400).is_empty());
    }

    #[test]
    fn xc_13_patches_whose_time_ended_are_dropped_and_counted() {
        let mut buffer = RetryBuffer::default();
        buffer.keep(patch("chat", 1, 1), 100, 0);
        buffer.keep(patch("chat", 2, 1), 0, 0);
        buffer.keep(patch("chat", 3, 1), 101, 0);
        assert_eq!(versions(&buffer.replay(100)), [(1, vec![3])]);
        assert_eq!((buffer.expired(), buffer.displaced()), (2, 0));
    }

    #[test]
    fn xc_13_the_time_of_each_keeper_counts() {
        let (mut first, mut second) = (RetryBuffer::default(), RetryBuffer::default());
        first.keep(patch("chat", 1, 1), 100, 0);
        first.replay(30).into_iter().for_each(|retry| second.keep_on(retry, 5000));
        assert_eq!(versions(&second.replay(5060)), [(10, vec![1])]);
    }

    #[test]
    fn xc_13_the_oldest_patches_make_room() {
        let mut buffer = RetryBuffer::default();
        for base in 0..100 {
            buffer.keep(patch("chat", base, 64 * 1024), u32::MAX, u64::MAX - 1);
            assert!(buffer.bytes <= MOST_KEPT);
        }
        assert_eq!(buffer.displaced() + u64::try_from(buffer.kept.len()).unwrap(), 100);
        assert!(buffer.kept.front().unwrap().patch.base_version > 30);
    }

    proptest! {
        #[test]
        fn xc_13_every_patch_is_replayed_or_counted(
            kept in prop::collection::vec(("[ab]", 0_u64..50, 0_u32..100, 0_u64..20), 0..600), pause in 0_u64..100,
        ) {
            let (mut buffer, mut now) = (RetryBuffer::default(), 0);
            for (context, base, ttl, later) in &kept {
                now += later;
                buffer.keep(patch(context, *base, 1), *ttl, now);
            }
            now += pause;
            let replayed = buffer.replay(now);
            let patches: Vec<&ContextPatch> = replayed.iter().flat_map(|retry| &retry.buffered_patches).collect();
            prop_assert!(patches.is_sorted_by_key(|patch| (&patch.context_id, patch.base_version)));
            prop_assert!(replayed.iter().all(|retry| retry.ttl_ms > 0 && retry.buffered_patches.len() <= MOST_PATCHES));
            prop_assert_eq!(u64::try_from(patches.len()).unwrap() + buffer.expired(), u64::try_from(kept.len()).unwrap());
            prop_assert_eq!(buffer.bytes, 0);
        }
    }
}
