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

/// The relay of an aggregator.
#[derive(Debug)]
pub struct Relay {
    limits: RelayLimits,
    lanes: BTreeMap<SessionKey, Lane>,
    timers: Timers<SessionKey>,
    out: VecDeque<RelayOutput>,
    dropped: u64,
}

impl Relay {
    /// Makes a relay without subservers.
    pub fn new(limits: RelayLimits) -> Self {
        Self { limits, lanes: BTreeMap::new(), timers: Timers::default(), out: VecDeque::new(), dropped: 0 }
    }

    /// Opens a session under this segment.
    pub fn handle_opened(&mut self, session: SessionKey, segment: Segment) {
        self.lanes.insert(session, Lane::new(segment, &self.limits));
    }

    /// Closes a session, and drops the queue.
    pub fn handle_closed(&mut self, session: SessionKey) {
        self.timers.cancel(&session);
        if let Some(lane) = self.lanes.remove(&session) {
            self.dropped += lane.waiting();
        }
    }

    /// Takes a notification. Notifications outside of open sessions are dropped.
    pub fn handle_notification(&mut self, now: Now, session: SessionKey, bytes: Bytes) {
        let Some(lane) = self.lanes.get_mut(&session) else {
            self.dropped += 1;
            return;
        };
        let before = lane.dropped();
        if let Some(overflow) = lane.push(bytes, &self.limits) {
            self.out.push_back(overflow);
        }
        self.dropped += lane.dropped() - before;
        self.flush(now, session);
    }

    /// Counts all notifications dropped (`notifications_dropped`, AX-51).
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Counts notifications dropped of one session.
    pub fn dropped_of(&self, session: SessionKey) -> u64 {
        self.lanes.get(&session).map_or(0, Lane::dropped)
    }

    fn flush(&mut self, now: Now, session: SessionKey) {
        let Some(lane) = self.lanes.get_mut(&session) else { return };
        match lane.flush(now.instant, &mut self.out) {
            Some(ready) => self.timers.set(session, ready),
            None => self.timers.cancel(&session),
        }
    }
}

impl Machine for Relay {
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
