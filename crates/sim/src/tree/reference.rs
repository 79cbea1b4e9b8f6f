//! The rules, kept by what was seen on the wire alone: who owns which segment, who was heard of when, what was notified in which
//! order. It knows no machine; the world shows it what happens and asks whether that may be.

use std::collections::BTreeMap;
use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::id::NodeId;

use super::plan::INTERVAL;

/// Who has a segment at one aggregator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) subserver: NodeId,
    pub(super) principal: String,
    /// Whether it has proved who it is.
    pub(super) proven: bool,
    pub(super) link: u64,
    /// When it was last heard of.
    pub(super) heard: Duration,
    /// Whether it holds a session, or is waited for.
    pub(super) live: bool,
}

/// What is known of all the aggregators.
#[derive(Debug, Default)]
pub(super) struct Reference {
    owners: BTreeMap<(usize, Segment), Owner>,
    /// The last number that each receiver has seen of each sender, by the path it came.
    seen: BTreeMap<(usize, String, usize), u64>,
    /// Since when a cycle has been there.
    pub(super) cycle_since: Option<Duration>,
}

impl Reference {
    /// An aggregator took a registration.
    pub(super) fn registered(&mut self, at: usize, segment: &Segment, owner: Owner) -> Result<(), String> {
        let key = (at, segment.clone());
        if let Some(before) = self.owners.get(&key) {
            let known = before.principal == owner.principal || (owner.proven && !before.proven);
            let same = before.subserver == owner.subserver && known;
            if !same {
                return Err(format!("n{at} gave `{segment}` to {owner:?} while it belongs to {before:?}"));
            }
        }
        // A subserver has one segment at most.
        self.owners.retain(|(node, _), other| *node != at || other.subserver != owner.subserver);
        self.owners.insert(key, owner);
        Ok(())
    }

    /// A session was heard of.
    pub(super) fn heard(&mut self, at: usize, link: u64, now: Duration) {
        for ((node, _), owner) in &mut self.owners {
            if *node == at && owner.link == link && owner.live {
                owner.heard = now;
            }
        }
    }

    /// The aggregator ended a session for good.
    pub(super) fn ended(&mut self, at: usize, segment: &Segment) {
        self.owners.remove(&(at, segment.clone()));
    }

    /// Who has a segment.
    pub(super) fn owner(&self, at: usize, segment: &Segment) -> Option<&Owner> {
        self.owners.get(&(at, segment.clone()))
    }

    /// The aggregator lost a subserver and waits for it.
    pub(super) fn lost(&mut self, at: usize, segment: &Segment) {
        if let Some(owner) = self.owners.get_mut(&(at, segment.clone())) {
            owner.live = false;
        }
    }

    /// The aggregator crashed, and forgot.
    pub(super) fn crashed(&mut self, at: usize) {
        self.owners.retain(|(node, _), _| *node != at);
    }

    /// Whether the live sessions of an aggregator are those that it gave, and none is older than silence allows.
    pub(super) fn check(&self, at: usize, live: &[(Segment, NodeId, u64)], now: Duration, excuse: Duration) -> Result<(), String> {
        let known = self.owners.range((at, Segment::nearest("-"))..).take_while(|((node, _), _)| *node == at);
        let mut given: Vec<(Segment, NodeId, u64)> = Vec::new();
        for ((_, segment), owner) in known.filter(|(_, owner)| owner.live) {
            given.push((segment.clone(), owner.subserver, owner.link));
            if owner.heard + INTERVAL * 3 + excuse < now {
                return Err(format!("n{at} lists `{segment}` as live, last heard of at {:?}, and it is {now:?}", owner.heard));
            }
        }
        let mut live = live.to_vec();
        live.sort();
        if live != given {
            return Err(format!("n{at} has the sessions {live:?}, given were {given:?}"));
        }
        Ok(())
    }

    /// A notification reached somebody.
    pub(super) fn notified(&mut self, at: usize, source: &str, sender: usize, number: u64) -> Result<(), String> {
        let last = self.seen.entry((at, source.to_owned(), sender)).or_default();
        if number <= *last {
            return Err(format!("n{at} got notification {number} of n{sender} over {source} after {last}"));
        }
        *last = number;
        Ok(())
    }
}
