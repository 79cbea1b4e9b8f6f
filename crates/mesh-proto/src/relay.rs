//! Relay of subservers' notifications, each at a bounded rate and in order (MCP-AX 12, AX-50 to AX-52).
//!
//! A notification is opaque bytes here. The driver adds the source ([`SOURCE`]) with [`source`]. Notifications of different subservers have
//! no common order.

mod lane;
pub mod notice;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now, QualifiedName, Segment};
use bytes::Bytes;

use crate::id::SessionKey;
use crate::timers::Timers;
use lane::Lane;

/// Member of a notification's `_meta` for the dotted path of its subserver.
pub const SOURCE: &str = "x-mcpax-source";
/// Member that tells events apart. Passes unchanged (AX-52).
pub const EVENT_ID: &str = "x-mcpax-event-id";
/// Member for the previous event. Passes unchanged, and is not kept (AX-52).
pub const CAUSAL_PARENT: &str = "x-mcpax-causal-parent";

/// Gives the value of [`SOURCE`] for a notification from `segment` with the source `below`. `None`: the name would not be legal.
pub fn source(segment: &Segment, below: Option<&str>) -> Option<String> {
    let text = below.map_or_else(|| segment.to_string(), |below| format!("{segment}.{below}"));
    (text.len() <= QualifiedName::MAX && text.split('.').all(|part| Segment::new(part).is_ok())).then_some(text)
}

/// Limits on each subserver's notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayLimits {
    /// Notifications in a second; a tenth at once.
    pub per_second: u32,
    /// Notifications in the queue.
    pub depth: usize,
    /// Bytes in the queue.
    pub depth_bytes: usize,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self { per_second: 100, depth: 1000, depth_bytes: 4 << 20 }
    }
}

/// A notification for the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayOutput {
    /// A notification, as received.
    Notification { segment: Segment, bytes: Bytes },
    /// Notifications were dropped; announced once until the queue is empty. Stands in the place of the dropped.
    Overflow {
        segment: Segment,
        /// Notifications of this session dropped so far, the first of this flood included.
        dropped: u64,
    },
}

/// Most bytes in the queues of all subservers of a relay.
const MOST_BYTES: usize = 256 << 20;

/// The relay of an aggregator, for subservers told apart by keys `K`.
#[derive(Debug)]
pub struct Relay<K = SessionKey> {
    limits: RelayLimits,
    lanes: BTreeMap<K, Lane>,
    timers: Timers<K>,
    out: VecDeque<RelayOutput>,
    dropped: u64,
    /// Bytes in all queues.
    bytes: usize,
}

impl<K: Ord + Clone> Relay<K> {
    /// Makes a relay without subservers.
    pub fn new(limits: RelayLimits) -> Self {
        Self { limits, lanes: BTreeMap::new(), timers: Timers::default(), out: VecDeque::new(), dropped: 0, bytes: 0 }
    }

    /// Opens a session under a segment, with the limits of the relay.
    pub fn handle_opened(&mut self, session: K, segment: Segment) {
        self.lanes.insert(session, Lane::new(segment, self.limits));
    }

    /// Sets the limits of an open session. A lower depth counts from the next notification on.
    pub fn handle_limits(&mut self, session: &K, limits: RelayLimits) {
        if let Some(lane) = self.lanes.get_mut(session) {
            lane.limit(limits);
        }
    }

    /// Closes a session, and drops the queue.
    pub fn handle_closed(&mut self, session: &K) {
        self.timers.cancel(session);
        if let Some(lane) = self.lanes.remove(session) {
            self.dropped += lane.waiting();
            self.bytes -= lane.bytes();
        }
    }

    /// Takes a notification. Notifications outside of open sessions are dropped.
    pub fn handle_notification(&mut self, now: Now, session: K, bytes: Bytes) {
        let room = MOST_BYTES.saturating_sub(self.bytes);
        self.count(&session, |lane| lane.push(bytes, room));
        self.flush(now, session);
    }

    /// Takes the number of a session's notifications lost on the way, all older than the next.
    pub fn handle_lost(&mut self, session: &K, count: u64) {
        if self.count(session, |lane| lane.lose(count)).is_none() {
            // The first is counted for want of a session.
            self.dropped += count.saturating_sub(1);
        }
    }

    /// Counts notifications of nobody known as dropped.
    pub fn handle_unheard(&mut self, count: u64) {
        self.dropped += count;
    }

    /// Checks for an open session.
    pub fn is_open(&self, session: &K) -> bool {
        self.lanes.contains_key(session)
    }

    /// Lists the segments of open sessions with losses, and the notifications dropped of each.
    pub fn losses(&self) -> impl Iterator<Item = (&Segment, u64)> {
        self.lanes.values().filter(|lane| lane.dropped() > 0).map(|lane| (lane.segment(), lane.dropped()))
    }

    /// Lists open sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &K> {
        self.lanes.keys()
    }

    /// Changes a lane and keeps the counts; `None`: the session is not open, and a notification counts as dropped.
    fn count(&mut self, session: &K, change: impl FnOnce(&mut Lane) -> Option<RelayOutput>) -> Option<()> {
        let Some(lane) = self.lanes.get_mut(session) else {
            self.dropped += 1;
            return None;
        };
        let (dropped, bytes) = (lane.dropped(), lane.bytes());
        let overflow = change(lane);
        self.dropped += lane.dropped() - dropped;
        self.bytes = self.bytes + lane.bytes() - bytes;
        self.out.extend(overflow);
        Some(())
    }

    /// Counts all notifications dropped (`notifications_dropped`, AX-51).
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn flush(&mut self, now: Now, session: K) {
        let Some(lane) = self.lanes.get_mut(&session) else { return };
        let before = lane.bytes();
        let ready = lane.flush(now.instant, &mut self.out);
        self.bytes -= before - lane.bytes();
        match ready {
            Some(ready) => self.timers.set(session, ready),
            None => self.timers.cancel(&session),
        }
    }
}

impl<K: Ord + Clone> Machine for Relay<K> {
    type Output = RelayOutput;

    fn handle_timeout(&mut self, now: Now) {
        while let Some((_, session)) = self.timers.expire(now.instant) {
            self.flush(now, session);
        }
    }

    fn poll_output(&mut self) -> Option<RelayOutput> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next().map(|(at, _)| (at, "notifications wait for their turn"))
    }
}
