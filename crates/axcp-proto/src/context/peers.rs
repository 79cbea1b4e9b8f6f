//! A context with its peers: what each has sent, and what each has to be sent next. Sends nothing itself, and keeps nothing on a disk.
//!
//! Messages are made when a connection has room for one, from the versions and registers held anyway. A slow peer holds nothing here but
//! numbers, and gets many changes in one patch.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::again::AskAgain;
use super::clock::FROM_FUTURE;
use super::follow::{PatchFollower, check_versions};
use super::part::parts_of;
use super::replica::{ContextVersion, Replica};
use super::retry::RetryBuffer;
use super::subscriber::{ContextFilter, Subscriber};
use super::timely::TimelyPatch;
use crate::error::AxcpError;
use crate::message::{
    ContextGraphVersion, ContextInvalidation, ContextPatch, DeltaKind, DeltaOp, EnvelopePayload, SyncRequest, SyncSubscribe,
};

/// Bytes of the filters of all peers of a context.
pub const MOST_FILTERS_HELD: usize = 1024 * 1024;

/// A moment on the two clocks of a caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextMoment {
    /// Microseconds of wall time.
    pub wall: u64,
    /// Milliseconds of a clock that only goes forward.
    pub now: u64,
}

/// Versions of a peer that came without a gap, as kept over a restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownVersion {
    pub version: u64,
    /// 0: the peer has not told.
    pub epoch: u64,
}

/// A context, and the peers that share it.
#[derive(Debug)]
pub struct SharedContext {
    replica: Replica,
    /// Epoch of the versions, told to peers with each patch.
    epoch: u64,
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
    /// Epoch of the known version, 0 where the peer has not told.
    pub epoch: u64,
    /// Last version sent; `None`: the peer is away, or does not subscribe.
    pub sent: Option<u64>,
    /// Kept patches dropped at the end of their time.
    pub expired: u64,
    /// Kept patches dropped for want of room.
    pub displaced: u64,
    /// Something of the peer was refused or did not come, and is asked for again.
    pub lacks: bool,
}

/// A peer of one context.
#[derive(Debug)]
struct ContextPeer {
    follower: PatchFollower,
    retry: RetryBuffer,
    /// The peer subscribed at least once, so that patches are kept for it.
    has_subscribed: bool,
    subscriber: Option<Subscriber>,
    again: AskAgain,
}

impl SharedContext {
    /// Makes the shared form of a replica that is on the disk, with its peers and the version last known of each. `epoch` is a random number
    /// other than 0, drawn once for all versions from the first on.
    pub fn new(mut replica: Replica, epoch: u64, ttl_ms: u32, peers: impl IntoIterator<Item = (Arc<str>, KnownVersion)>) -> Self {
        let kept = replica.version();
        replica.note_kept(kept);
        let peer = |known: KnownVersion| ContextPeer {
            follower: PatchFollower::new(replica.context_id(), known.version, known.epoch),
            retry: RetryBuffer::default(),
            has_subscribed: false,
            subscriber: None,
            again: AskAgain::default(),
        };
        let peers = peers.into_iter().map(|(name, known)| (name, peer(known))).collect();
        Self { replica, epoch, kept, ttl_ms, peers }
    }

    /// Gives the replica.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Gives the progress of a peer.
    pub fn progress(&self, peer: &str) -> PeerProgress {
        self.peers.get(peer).map_or_else(PeerProgress::default, |peer| PeerProgress {
            known: peer.follower.known(),
            epoch: peer.follower.epoch(),
            sent: peer.subscriber.as_ref().map(Subscriber::sent),
            expired: peer.retry.expired(),
            displaced: peer.retry.displaced(),
            lacks: !peer.follower.is_whole() || peer.again.due().is_some(),
        })
    }

    /// Greets a peer that is here: subscribes to its versions.
    ///
    /// # Errors
    /// When the peer does not share the context.
    pub fn greet(&mut self, peer: &str) -> Result<EnvelopePayload, AxcpError> {
        let peer = self.peer(peer)?;
        (peer.subscriber, peer.again) = (None, AskAgain::default());
        Ok(EnvelopePayload::SyncSubscribe(peer.follower.subscribe()))
    }

    /// Notes that a peer has gone: patches are kept for it from now on.
    pub fn part_from(&mut self, peer: &str) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.subscriber = None;
        }
    }

    /// Begins to send versions to a peer, kept patches first. `now`: milliseconds, as in [`ContextMoment`].
    ///
    /// # Errors
    /// When the peer does not share the context, or the filters have more bytes than a node holds.
    pub fn subscribe(&mut self, peer: &str, wish: SyncSubscribe, now: u64) -> Result<(), AxcpError> {
        let from = wish.from.as_ref().map_or(0, |from| if self.is_ours(from) { from.version } else { 0 });
        let began = self.replica.version();
        let filter = ContextFilter::read(wish)?;
        let others = self.peers.iter().filter(|(name, _)| &***name != peer).filter_map(|(_, other)| other.subscriber.as_ref());
        let held: usize = others.map(Subscriber::filter_bytes).sum();
        if held + filter.bytes() > MOST_FILTERS_HELD {
            return Err(AxcpError::TooLarge { what: "the bytes of the filters of all peers", most: MOST_FILTERS_HELD });
        }
        let at = self.peer(peer)?;
        at.has_subscribed = true;
        let subscriber = Subscriber::new(filter, at.retry.replay(now), from, began);
        at.subscriber = Some(subscriber.in_place_of(at.subscriber.as_ref(), now));
        Ok(())
    }

    /// Tells if a version counts in the epoch of this node.
    fn is_ours(&self, version: &ContextGraphVersion) -> bool {
        version.epoch == 0 || version.epoch == self.epoch
    }

    /// Sends the versions of a gap again.
    ///
    /// # Errors
    /// When the peer does not subscribe, or the versions are not held any more.
    pub fn request(&mut self, peer: &str, wish: &SyncRequest) -> Result<(), AxcpError> {
        let from = wish.missing_from.as_ref().map_or(0, |from| if self.is_ours(from) { from.version } else { u64::MAX });
        self.replica.check_range(from, wish.to_version)?;
        let kept = self.kept;
        let subscriber = self.peer(peer)?.subscriber.as_mut();
        let subscriber = subscriber.ok_or(AxcpError::Malformed("versions are asked for without a subscription"))?;
        subscriber.fill(from, wish.to_version.min(kept));
        Ok(())
    }

    /// Applies a patch of a peer. Gives the request for a gap that the patch showed. What is refused is asked for again after a pause. Of a
    /// patch with operations from the future the others are applied, and the answer is the refusal of those: a writer at the bound of clocks
    /// keeps nobody's versions back.
    ///
    /// # Errors
    /// When the peer does not share the context, or the patch is refused.
    pub fn patch(&mut self, peer: &str, patch: &ContextPatch, at: ContextMoment) -> Result<Option<EnvelopePayload>, AxcpError> {
        self.peer(peer)?;
        let divided = TimelyPatch::divide(patch, at.wall);
        let timely = divided.as_ref().map_or(patch, |divided| &divided.timely);
        // What is applied can't be refused any more.
        let applied = check_versions(patch).and_then(|()| self.replica.apply(timely, peer, at.wall));
        let sender = self.peer(peer)?;
        if let Err(refused) = applied {
            sender.refuse(patch, at.now);
            return Err(refused);
        }
        let answer = match divided {
            None => sender.note(patch, at.now)?.map(EnvelopePayload::SyncRequest),
            Some(TimelyPatch { first, .. }) => {
                let asked = first.map(|first| sender.note(&first, at.now)).transpose()?.flatten();
                sender.refuse(patch, at.now);
                Some(asked.map_or_else(|| EnvelopePayload::Error(FROM_FUTURE.message()), EnvelopePayload::SyncRequest))
            }
        };
        self.ask_for_refused();
        Ok(answer)
    }

    /// Notes that an envelope of a peer was refused unread: it may have held a patch.
    pub fn note_unread(&mut self, peer: &str, now: u64) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.follower.note_unread();
            peer.again.plan(now);
        }
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
        let replica = &self.replica;
        self.peers.values_mut().filter_map(|peer| peer.subscriber.as_mut()).for_each(|subscriber| subscriber.note_kept(replica, version));
    }

    /// Makes the next message for a peer that is here; `None`: there is nothing to send now. `now`: milliseconds, as in [`ContextMoment`].
    pub fn next(&mut self, peer: &str, now: u64) -> Option<EnvelopePayload> {
        let (replica, kept, epoch) = (&self.replica, self.kept, self.epoch);
        let at = self.peers.get_mut(peer)?;
        if at.again.take_due(now) {
            return Some(EnvelopePayload::SyncSubscribe(at.follower.subscribe()));
        }
        let subscriber = at.subscriber.as_mut()?;
        if subscriber.rests(now) {
            return None;
        }
        if let Some(mut retry) = subscriber.next_retry() {
            retry.buffered_patches.iter_mut().for_each(|patch| patch.epoch = epoch);
            return Some(EnvelopePayload::Retry(retry));
        }
        let patch = subscriber.next(replica, kept, peer)?;
        Some(EnvelopePayload::ContextPatch(ContextPatch { epoch, ..patch }))
    }

    /// Gives the time at which a peer is asked again, or sent what waits for its turn, in milliseconds; `None`: nothing waits.
    pub fn due(&self, peer: &str) -> Option<u64> {
        let peer = self.peers.get(peer)?;
        peer.again.due().into_iter().chain(peer.subscriber.as_ref().and_then(Subscriber::due)).min()
    }

    fn peer(&mut self, name: &str) -> Result<&mut ContextPeer, AxcpError> {
        self.peers.get_mut(name).ok_or(AxcpError::Context)
    }

    fn ask_for_refused(&mut self) {
        if self.replica.has_room_again() {
            self.peers.values_mut().for_each(|peer| peer.again.hurry());
        }
    }
}

impl ContextPeer {
    /// Notes an applied patch, and plans to ask for what is lacking, or forgets the plan.
    fn note(&mut self, patch: &ContextPatch, now: u64) -> Result<Option<SyncRequest>, AxcpError> {
        let before = self.follower.advances();
        let asked = self.follower.note(patch)?;
        if self.follower.advances() != before {
            self.again.forget();
        }
        if !self.follower.is_whole() {
            self.again.plan(now);
        }
        self.rest(patch, now);
        Ok(asked)
    }

    /// Notes a refused patch, and plans to ask for its versions.
    fn refuse(&mut self, patch: &ContextPatch, now: u64) {
        self.follower.note_refused(patch);
        self.again.plan(now);
        self.rest(patch, now);
    }

    fn rest(&mut self, patch: &ContextPatch, now: u64) {
        if patch.is_part {
            self.again.postpone(now);
        }
    }
}

#[cfg(test)]
mod tests;
