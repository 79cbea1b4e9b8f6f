//! The rules, kept by looking at the wire alone: owners of segments, signs of life, and the order of
//! notifications. Knows no machine; the world reports events and asks for their legality.

use std::collections::BTreeMap;
use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::id::NodeId;

use super::plan::INTERVAL;

/// The owner of a segment at one aggregator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) subserver: NodeId,
    pub(super) principal: String,
    /// The owner has proved its identity.
    pub(super) proven: bool,
    pub(super) link: u64,
    /// Time of the last sign of life.
    pub(super) heard: Duration,
    /// The owner holds a session, and is not waited for.
    pub(super) live: bool,
}

/// Knowledge about all aggregators.
#[derive(Debug, Default)]
pub(super) struct Reference {
    owners: BTreeMap<(usize, Segment), Owner>,
    /// Number of each sender's last notification at each receiver, by path.
    seen: BTreeMap<(usize, String, usize), u64>,
    /// Beginning of the present cycle.
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

    /// Finds the owner of a segment.
    pub(super) fn owner(&self, at: usize, segment: &Segment) -> Option<&Owner> {
        self.owners.get(&(at, segment.clone()))
    }

    /// Notes that the aggregator lost a subserver and waits for it.
    pub(super) fn lost(&mut self, at: usize, segment: &Segment) {
        if let Some(owner) = self.owners.get_mut(&(at, segment.clone())) {
            owner.live = false;
        }
    }

    /// The aggregator crashed, and forgot.
    pub(super) fn crashed(&mut self, at: usize) {
        self.owners.retain(|(node, _), _| *node != at);
    }

    /// Checks that the live sessions of an aggregator are those it granted, and none is older than silence allows.
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
