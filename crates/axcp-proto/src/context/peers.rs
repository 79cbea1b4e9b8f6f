//! A context with its peers: what each has sent, and what each has to be sent next. Sends nothing itself, and keeps nothing on a disk.
//!
//! Messages are made when a connection has room for one, from the versions and registers held anyway. A slow peer holds nothing here but
//! numbers, and gets many changes in one patch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::follow::{PatchFollower, check_versions};
use super::part::parts_of;
use super::replica::{ContextVersion, Replica};
use super::retry::RetryBuffer;
use crate::envelope::MOST_OPS;
use crate::error::AxcpError;
use crate::message::{ContextInvalidation, ContextPatch, DeltaKind, DeltaOp, EnvelopePayload, RetryEnvelope, SyncRequest, SyncSubscribe};

/// A context, and the peers that share it.
#[derive(Debug)]
pub struct SharedContext {
    replica: Replica,
    /// Last version on the disk; no later one is sent.
    kept: u64,
    /// Milliseconds for which patches are kept for a peer that is away.
    ttl_ms: u32,
    peers: BTreeMap<Arc<str>, ContextPeer>,
}

/// Numbers of a peer, for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerProgress {
    /// Last version of the peer that came without a gap.
    pub known: u64,
    /// Last version sent; `None`: the peer is away, or does not subscribe.
    pub sent: Option<u64>,
    /// Kept patches dropped at the end of their time.
    pub expired: u64,
    /// Kept patches dropped for want of room.
    pub displaced: u64,
}

/// A peer of one context.
#[derive(Debug)]
struct ContextPeer {
    follower: PatchFollower,
    retry: RetryBuffer,
    /// The peer subscribed at least once, so that patches are kept for it.
    has_subscribed: bool,
    subscriber: Option<Subscriber>,
    /// Set to ask again for what found no room.
    asks: bool,
}

/// A peer that wants versions, while it is here.
#[derive(Debug)]
struct Subscriber {
    filter: ContextFilter,
    retries: VecDeque<RetryEnvelope>,
    /// Versions of a gap, still to be sent again.
    gap: Option<(u64, u64)>,
    /// Segment sent last, and the version of the whole.
    snapshot: Option<(Option<String>, u64)>,
    parts: VecDeque<ContextPatch>,
    sent: u64,
    /// Version at the time of subscribing: the peer may lack its own writes up to here, and none later.
    began: u64,
}

/// Filter of a subscription.
#[derive(Debug, Clone, Default)]
struct ContextFilter {
    prefixes: Vec<String>,
    tags: Vec<String>,
    after_ts: u64,
}

impl SharedContext {
    /// Makes the shared form of a replica that is on the disk, with its peers and the version last known of each.
    pub fn new(mut replica: Replica, ttl_ms: u32, peers: impl IntoIterator<Item = (Arc<str>, u64)>) -> Self {
        let kept = replica.version();
        replica.note_kept(kept);
        let peer = |known| ContextPeer {
            follower: PatchFollower::new(replica.context_id(), known),
            retry: RetryBuffer::default(),
            has_subscribed: false,
            subscriber: None,
            asks: false,
        };
        let peers = peers.into_iter().map(|(name, known)| (name, peer(known))).collect();
        Self { replica, kept, ttl_ms, peers }
    }

    /// Gives the replica.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Gives the progress of a peer.
    pub fn progress(&self, peer: &str) -> PeerProgress {
        self.peers.get(peer).map_or_else(PeerProgress::default, |peer| PeerProgress {
            known: peer.follower.known(),
            sent: peer.subscriber.as_ref().map(|subscriber| subscriber.sent),
            expired: peer.retry.expired(),
            displaced: peer.retry.displaced(),
        })
    }

    /// Greets a peer that is here: subscribes to its versions.
    ///
    /// # Errors
    /// When the peer does not share the context.
    pub fn greet(&mut self, peer: &str) -> Result<EnvelopePayload, AxcpError> {
        let peer = self.peer(peer)?;
        peer.subscriber = None;
        Ok(EnvelopePayload::SyncSubscribe(peer.follower.subscribe()))
    }

    /// Notes that a peer has gone: patches are kept for it from now on.
    pub fn part_from(&mut self, peer: &str) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.subscriber = None;
        }
    }

    /// Begins to send versions to a peer, kept patches first. `now`: milliseconds of the clock of [`SharedContext::note_kept`].
    ///
    /// # Errors
    /// When the peer does not share the context.
    pub fn subscribe(&mut self, peer: &str, wish: SyncSubscribe, now: u64) -> Result<(), AxcpError> {
        let (kept, from) = (self.kept, wish.from.map_or(0, |from| from.version));
        let peer = self.peer(peer)?;
        let (retries, sent) = replayed(peer.retry.replay(now), from);
        peer.has_subscribed = true;
        let filter = ContextFilter { prefixes: wish.prefixes, tags: wish.tags, after_ts: wish.after_ts };
        // Patches were kept without a filter.
        let (retries, sent) = if filter.is_open() { (retries, sent) } else { (VecDeque::new(), from) };
        let (gap, snapshot, parts) = (None, None, VecDeque::new());
        peer.subscriber = Some(Subscriber { filter, retries, gap, snapshot, parts, sent, began: kept });
        Ok(())
    }

    /// Sends the versions of a gap again.
    ///
    /// # Errors
    /// When the peer does not subscribe, or the versions are not held any more.
    pub fn request(&mut self, peer: &str, wish: &SyncRequest) -> Result<(), AxcpError> {
        let from = wish.missing_from.as_ref().map_or(0, |from| from.version);
        self.replica.check_range(from, wish.to_version)?;
        let kept = self.kept;
        let subscriber = self.peer(peer)?.subscriber.as_mut();
        let subscriber = subscriber.ok_or(AxcpError::Malformed("versions are asked for without a subscription"))?;
        let (first, last) = subscriber.gap.unwrap_or((from, wish.to_version));
        subscriber.gap = Some((first.min(from), last.max(wish.to_version).min(kept)));
        Ok(())
    }

    /// Applies a patch of a peer. Gives the request for a gap that the patch showed.
    ///
    /// # Errors
    /// When the peer does not share the context, or the patch is refused.
    pub fn patch(&mut self, peer: &str, patch: &ContextPatch, wall: u64) -> Result<Option<EnvelopePayload>, AxcpError> {
        self.peer(peer)?;
        // What is applied can't be refused any more.
        check_versions(patch)?;
        self.replica.apply(patch, peer, wall)?;
        let asked = self.peer(peer)?.follower.note(patch)?;
        self.ask_for_refused();
        Ok(asked.map(EnvelopePayload::SyncRequest))
    }

    /// Removes what a peer says is revoked or expired.
    ///
    /// # Errors
    /// When the peer does not share the context, or the message breaks a rule of operations.
    pub fn invalidate(&mut self, peer: &str, news: &ContextInvalidation, wall: u64) -> Result<(), AxcpError> {
        self.peer(peer)?;
        let ContextInvalidation { context_id, path, ts, node_id, .. } = news.clone();
        let removal = DeltaOp { op: DeltaKind::Remove.into(), path, data: Bytes::new(), ts, node_id };
        let patch = ContextPatch { context_id, base_version: self.replica.version(), ops: vec![removal], ..ContextPatch::default() };
        self.replica.apply(&patch, peer, wall)?;
        self.ask_for_refused();
        Ok(())
    }

    /// Writes as this node, and gives the version.
    ///
    /// # Errors
    /// As [`Replica::write`].
    pub fn write(&mut self, changes: &[(DeltaKind, &str, Bytes)], wall: u64) -> Result<u64, AxcpError> {
        self.replica.write(changes, wall)?;
        self.ask_for_refused();
        Ok(self.replica.version())
    }

    /// Gives the versions that are not on the disk yet.
    pub fn unkept(&self) -> impl Iterator<Item = &ContextVersion> {
        self.replica.between(self.kept, self.replica.version())
    }

    /// Notes that versions up to `version` are on the disk. `now`: milliseconds of a clock that only goes forward.
    pub fn note_kept(&mut self, version: u64, now: u64) {
        let before = self.kept;
        if self.peers.values().any(|peer| peer.has_subscribed && peer.subscriber.is_none())
            && let Ok(patch) = self.replica.range(before, version)
            && !patch.ops.is_empty()
        {
            let parts = parts_of(patch);
            for peer in self.peers.values_mut().filter(|peer| peer.has_subscribed && peer.subscriber.is_none()) {
                parts.iter().for_each(|part| peer.retry.keep(part.clone(), self.ttl_ms, now));
            }
        }
        self.kept = version;
        self.replica.note_kept(version);
    }

    /// Makes the next message for a peer that is here; `None`: there is nothing to send now.
    pub fn next(&mut self, peer: &str) -> Option<EnvelopePayload> {
        let (replica, kept) = (&self.replica, self.kept);
        let at = self.peers.get_mut(peer)?;
        if std::mem::take(&mut at.asks)
            && let Some(asked) = at.follower.ask_again()
        {
            return Some(EnvelopePayload::SyncRequest(asked));
        }
        let subscriber = at.subscriber.as_mut()?;
        if let Some(retry) = subscriber.retries.pop_front() {
            return Some(EnvelopePayload::Retry(retry));
        }
        subscriber.next(replica, kept, peer).map(EnvelopePayload::ContextPatch)
    }

    fn peer(&mut self, name: &str) -> Result<&mut ContextPeer, AxcpError> {
        self.peers.get_mut(name).ok_or(AxcpError::Context)
    }

    fn ask_for_refused(&mut self) {
        if self.replica.has_room_again() {
            self.peers.values_mut().for_each(|peer| peer.asks = true);
        }
    }
}

impl Subscriber {
    fn next(&mut self, replica: &Replica, kept: u64, peer: &str) -> Option<ContextPatch> {
        if let Some((from, to)) = self.gap {
            let patch = self.versions(replica, from, to, None);
            let reached = patch.as_ref().map_or(to, reached);
            self.gap = (reached < to).then_some((reached, to));
            return patch;
        }
        if let Some(part) = self.parts.pop_front() {
            return Some(part);
        }
        let is_held = self.sent <= kept && replica.check_range(self.sent, self.sent).is_ok();
        if !is_held && self.snapshot.is_none() {
            self.snapshot = Some((None, kept));
        }
        if let Some((after, version)) = self.snapshot.take() {
            return Some(self.part(replica, after.as_deref(), version));
        }
        let patch = self.versions(replica, self.sent, kept, Some(peer))?;
        self.sent = reached(&patch);
        Some(patch)
    }

    /// Makes the next part of a snapshot. The last part has no operations, and makes the version known.
    fn part(&mut self, replica: &Replica, after: Option<&str>, version: u64) -> ContextPatch {
        let last = || ContextPatch { context_id: replica.context_id().to_owned(), new_version: version, ..ContextPatch::default() };
        let Some((segment, parts)) = replica.snapshot_after(after) else {
            self.sent = version;
            return last();
        };
        self.snapshot = Some((Some(segment), version));
        let filter = &self.filter;
        let filtered = parts.into_iter().map(|mut part| {
            part.ops.retain(|op| filter.admits(op));
            part
        });
        self.parts = filtered.collect();
        let nothing = || ContextPatch { is_part: true, new_version: 0, ..last() };
        self.parts.pop_front().unwrap_or_else(nothing)
    }

    /// Makes a patch of as many versions as fit an envelope. `but`: an author whose own new writes are left out.
    fn versions(&self, replica: &Replica, from: u64, to: u64, but: Option<&str>) -> Option<ContextPatch> {
        let some = to.min(from.saturating_add(u64::try_from(MOST_OPS).unwrap_or(u64::MAX)));
        let mut patch = parts_of(replica.range(from, some).ok()?).into_iter().next()?;
        let before = patch.ops.len();
        let after = reached(&patch);
        let mut version = from;
        patch.ops.retain(|op| {
            version += 1;
            let is_own = version > self.began && but == Some(op.node_id.as_str());
            !is_own && self.filter.admits(op)
        });
        if patch.ops.len() != before {
            patch.new_version = after;
        }
        Some(patch)
    }
}

impl ContextFilter {
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

#[cfg(test)]
mod tests;
