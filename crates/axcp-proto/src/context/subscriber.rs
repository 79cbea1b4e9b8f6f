//! A peer that subscribed, with its filter, and the next patch for it. Sends nothing, and knows no clock.

use std::collections::VecDeque;

use super::replica::Replica;
use crate::envelope::{MOST_FILTER, MOST_OPS};
use crate::error::AxcpError;
use crate::message::{ContextPatch, DeltaOp, RetryEnvelope, SyncSubscribe};

/// A peer that wants versions, while it is here.
#[derive(Debug)]
pub(super) struct Subscriber {
    filter: ContextFilter,
    retries: VecDeque<RetryEnvelope>,
    /// Versions of a gap, still to be sent again.
    gap: Option<(u64, u64)>,
    snapshot: Option<SentSnapshot>,
    parts: VecDeque<ContextPatch>,
    /// The next parts wait for the disk.
    waits: bool,
    sent: u64,
    /// Version at the time of subscribing: the peer may lack its own writes up to here, and none later.
    began: u64,
    /// The peer asked on a living connection, and is told even that there is nothing more.
    owes_answer: bool,
    /// Time before which nothing is sent: each subscription may make a snapshot begin anew.
    starts: u64,
    /// The start is not reached yet.
    rests: bool,
}

/// Milliseconds between the starts of two subscriptions of a peer, on one connection.
pub(super) const BETWEEN_STARTS: u64 = 1_000;

/// A snapshot on its way.
#[derive(Debug, Clone)]
struct SentSnapshot {
    /// Pointer to the registers sent last.
    after: Option<String>,
    /// Version of the whole.
    version: u64,
    /// Number of the part sent last.
    part: u64,
}

/// Filter of a subscription.
#[derive(Debug, Clone, Default)]
pub(super) struct ContextFilter {
    prefixes: Vec<String>,
    tags: Vec<String>,
    after_ts: u64,
}

impl Subscriber {
    /// Begins to send versions after `from`, kept patches first. `began`: the version now, on the disk or not yet.
    pub(super) fn new(filter: ContextFilter, retries: Vec<RetryEnvelope>, from: u64, began: u64) -> Self {
        let (retries, sent) = replayed(retries, from);
        // Patches were kept without a filter.
        let (retries, sent) = if filter.is_open() { (retries, sent) } else { (VecDeque::new(), from) };
        Self {
            filter,
            retries,
            gap: None,
            snapshot: None,
            parts: VecDeque::new(),
            waits: false,
            sent,
            began,
            owes_answer: false,
            starts: 0,
            rests: false,
        }
    }

    /// Takes the place of an earlier subscription on the same connection: waits for its turn, and answers even when there is nothing to send.
    pub(super) fn in_place_of(self, earlier: Option<&Self>, now: u64) -> Self {
        let starts = earlier.map_or(now, |earlier| if earlier.rests { earlier.starts } else { now.max(earlier.starts + BETWEEN_STARTS) });
        Self { owes_answer: earlier.is_some(), starts, rests: starts > now, ..self }
    }

    /// Tells if nothing is sent yet.
    pub(super) fn rests(&mut self, now: u64) -> bool {
        self.rests = now < self.starts;
        self.rests
    }

    /// Gives the time of a start that is waited for.
    pub(super) fn due(&self) -> Option<u64> {
        self.rests.then_some(self.starts)
    }

    /// Gives the last version sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Gives the bytes of the filter.
    pub(super) fn filter_bytes(&self) -> usize {
        self.filter.bytes()
    }

    /// Adds the versions of a gap, to be sent again.
    pub(super) fn fill(&mut self, from: u64, to: u64) {
        let (first, last) = self.gap.unwrap_or((from, to));
        self.gap = Some((first.min(from), last.max(to)));
    }

    /// Gives the next kept patches.
    pub(super) fn next_retry(&mut self) -> Option<RetryEnvelope> {
        self.retries.pop_front()
    }

    /// Makes the next patch for `peer`, of versions up to `kept`.
    pub(super) fn next(&mut self, replica: &Replica, kept: u64, peer: &str) -> Option<ContextPatch> {
        if let Some((from, to)) = self.gap {
            let patch = self.versions(replica, from, to, None);
            let reached = patch.as_ref().map_or(to, reached);
            self.gap = (reached < to).then_some((reached, to));
            if patch.is_some() {
                return patch;
            }
            // The versions of the gap are gone: the peer asks for a snapshot, and gets what else there is.
        }
        let is_held = self.sent <= kept && replica.check_range(self.sent, self.sent).is_ok();
        if self.snapshot.is_some() || !is_held {
            if self.parts.is_empty() {
                self.prepare(replica, kept);
            }
            let part = self.parts.pop_front()?;
            return Some(self.numbered(part));
        }
        let patch = self.versions(replica, self.sent, kept, Some(peer)).or_else(|| self.owes_answer.then(|| self.nothing(replica)))?;
        (self.sent, self.owes_answer) = (reached(&patch), false);
        Some(patch)
    }

    /// Makes the patch which tells that there is no later version.
    fn nothing(&self, replica: &Replica) -> ContextPatch {
        let context_id = replica.context_id().to_owned();
        ContextPatch { context_id, base_version: self.sent, new_version: self.sent, ..ContextPatch::default() }
    }

    /// Makes the next parts of the snapshot, or waits with them until all of the replica is on the disk.
    fn prepare(&mut self, replica: &Replica, kept: u64) {
        self.waits = replica.version() != kept;
        if self.waits {
            return;
        }
        let snapshot = self.snapshot.get_or_insert(SentSnapshot { after: None, version: kept, part: 0 });
        let context_id = replica.context_id().to_owned();
        // The last part has no operations, and makes the version known.
        let last = ContextPatch { context_id, ..ContextPatch::default() };
        let Some((last_sent, parts)) = replica.snapshot_after(snapshot.after.as_deref()) else {
            self.parts.push_back(last);
            return;
        };
        snapshot.after = Some(last_sent);
        let filter = &self.filter;
        self.parts.extend(parts.into_iter().map(|mut part| {
            part.ops.retain(|op| filter.admits(op));
            part
        }));
    }

    /// Makes the parts that were waited with, since all of the replica is on the disk at this moment.
    pub(super) fn note_kept(&mut self, replica: &Replica, kept: u64) {
        if self.waits {
            self.prepare(replica, kept);
        }
    }

    /// Numbers a part of the snapshot, which ends with its last part.
    fn numbered(&mut self, mut part: ContextPatch) -> ContextPatch {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.part = snapshot.part.saturating_add(1);
            (part.part, part.new_version) = (snapshot.part, snapshot.version);
        }
        if !part.is_part {
            self.sent = part.new_version;
            self.snapshot = None;
        }
        part
    }

    /// Makes a patch of as many versions as fit an envelope. `but`: a peer whose own new patches are left out.
    fn versions(&self, replica: &Replica, from: u64, to: u64, but: Option<&str>) -> Option<ContextPatch> {
        let some = to.min(from.saturating_add(u64::try_from(MOST_OPS).unwrap_or(u64::MAX)));
        let mut patch = replica.first_part(from, some).ok().filter(|patch| !patch.ops.is_empty())?;
        let (before, after) = (patch.ops.len(), reached(&patch));
        // The connection says whose patch it was: the author that a patch names may never have seen it.
        let mut brought =
            replica.between(from, after).map(|entry| entry.version > self.began && but.is_some() && entry.via.as_deref() == but);
        patch.ops.retain(|op| !brought.next().unwrap_or(false) && self.filter.admits(op));
        if patch.ops.len() != before {
            patch.new_version = after;
        }
        Some(patch)
    }
}

impl ContextFilter {
    /// Reads the filter of a subscription.
    ///
    /// # Errors
    /// When the filter has more bytes than a node holds for a peer.
    pub(super) fn read(wish: SyncSubscribe) -> Result<Self, AxcpError> {
        let SyncSubscribe { prefixes, tags, after_ts, .. } = wish;
        let filter = Self { prefixes, tags, after_ts };
        if filter.bytes() > MOST_FILTER {
            return Err(AxcpError::TooLarge { what: "the bytes of a subscription's filters", most: MOST_FILTER });
        }
        Ok(filter)
    }

    pub(super) fn bytes(&self) -> usize {
        self.prefixes.iter().chain(&self.tags).map(|text| size_of::<String>() + text.len()).sum()
    }

    fn is_open(&self) -> bool {
        self.prefixes.is_empty() && self.tags.is_empty() && self.after_ts == 0
    }

    fn admits(&self, op: &DeltaOp) -> bool {
        let below = |prefix: &String| {
            let (path, prefix) = (op.path.as_str(), prefix.trim_end_matches('/'));
            let is_inside =
                |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            // A write above the prefix changes what stands below.
            is_inside(prefix, path) || is_inside(path, prefix)
        };
        let is_below = self.prefixes.is_empty() || self.prefixes.iter().any(below);
        let is_tagged = self.tags.is_empty() || op.path.split('/').any(|part| self.tags.iter().any(|tag| tag == part));
        is_below && is_tagged && (self.after_ts == 0 || op.ts > self.after_ts)
    }
}

/// Gives the version of the sender after a patch made here.
fn reached(patch: &ContextPatch) -> u64 {
    let count = u64::try_from(patch.ops.len()).unwrap_or(u64::MAX);
    patch.new_version.max(patch.base_version.saturating_add(count))
}

/// Chooses the kept patches that go on from version `from` without a gap, and gives the version after them.
fn replayed(kept: Vec<RetryEnvelope>, from: u64) -> (VecDeque<RetryEnvelope>, u64) {
    let mut sent = from;
    let mut chosen = VecDeque::new();
    for RetryEnvelope { buffered_patches, ttl_ms } in kept {
        let mut patches = Vec::new();
        for patch in buffered_patches {
            if patch.base_version <= sent && reached(&patch) > sent {
                sent = reached(&patch);
                patches.push(patch);
            }
        }
        if !patches.is_empty() {
            chosen.push_back(RetryEnvelope { buffered_patches: patches, ttl_ms });
        }
    }
    (chosen, sent)
}
