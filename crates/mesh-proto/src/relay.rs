//! Passing on what subservers notify, each at a bounded rate and in its order (MCP-AX 12, AX-50 to AX-52).
//!
//! A notification is bytes here and is never looked into. The driver adds where it came from ([`SOURCE`]) with [`source`]. No order
//! holds between two subservers, and none is kept.

mod lane;
pub mod notice;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now, QualifiedName, Segment};
use bytes::Bytes;

use crate::id::SessionKey;
use crate::timers::Timers;
use lane::Lane;

/// The member of a notification's `_meta` that holds the dotted path of the subserver it came from.
pub const SOURCE: &str = "x-mcpax-source";
/// The member that tells events apart. It passes as it is (AX-52).
pub const EVENT_ID: &str = "x-mcpax-event-id";
/// The member that names the event before it. It passes as it is, and nothing is kept of it (AX-52).
pub const CAUSAL_PARENT: &str = "x-mcpax-causal-parent";

/// The value of [`SOURCE`] for what came from `segment`, which itself said `below`. `None` when that is no legal name any more.
pub fn source(segment: &Segment, below: Option<&str>) -> Option<String> {
    let text = below.map_or_else(|| segment.to_string(), |below| format!("{segment}.{below}"));
    (text.len() <= QualifiedName::MAX && text.split('.').all(|part| Segment::new(part).is_ok())).then_some(text)
}

/// How much each subserver may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayLimits {
    /// Notifications in a second; a tenth of it at once.
    pub per_second: u32,
    /// How many wait when there are more.
    pub depth: usize,
    /// How many bytes those that wait may have together.
    pub depth_bytes: usize,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self { per_second: 100, depth: 1000, depth_bytes: 4 << 20 }
    }
}

/// What goes upward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relayed {
    /// A notification, as it came.
    Notification {
        /// Whose.
        segment: Segment,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Some were dropped; said once until all that waited has gone. It stands where the dropped ones would have.
    Overflow {
        /// Whose.
        segment: Segment,
        /// How many of this session were dropped so far, the first of this time included.
        dropped: u64,
    },
}

/// The relay of one aggregator.
#[derive(Debug)]
pub struct Relay {
    limits: RelayLimits,
    lanes: BTreeMap<SessionKey, Lane>,
    timers: Timers<SessionKey>,
    out: VecDeque<Relayed>,
    dropped: u64,
}

impl Relay {
    /// A relay without subservers.
    pub fn new(limits: RelayLimits) -> Self {
        Self { limits, lanes: BTreeMap::new(), timers: Timers::default(), out: VecDeque::new(), dropped: 0 }
    }

    /// A session began under this segment.
    pub fn handle_opened(&mut self, session: SessionKey, segment: Segment) {
        self.lanes.insert(session, Lane::new(segment, &self.limits));
    }

    /// A session ended. What waits is dropped with it.
    pub fn handle_closed(&mut self, session: SessionKey) {
        self.timers.cancel(&session);
        if let Some(lane) = self.lanes.remove(&session) {
            self.dropped += lane.waiting();
        }
    }

    /// A subserver notified something. Of a session that is not open nothing is passed on.
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

    /// How many were dropped since the relay began (`notifications_dropped`, AX-51).
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The same of one session.
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
    type Output = Relayed;

    fn handle_timeout(&mut self, now: Now) {
        while let Some((_, session)) = self.timers.expire(now.instant) {
            self.flush(now, session);
        }
    }

    fn poll_output(&mut self) -> Option<Relayed> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next().map(|(at, _)| (at, "notifications wait for their turn"))
    }
}
