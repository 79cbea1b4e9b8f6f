//! The operator's settings for registrations. Enforces nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use banyan_model::Segment;

use crate::annotation::AuthScope;
use crate::id::NodeId;
use crate::message::Budget;
use crate::relay::RelayLimits;

/// Settings of an aggregator.
#[derive(Debug, Clone)]
pub struct Settings {
    pub aggregator_id: NodeId,
    /// Budget of each session.
    pub budget: Budget,
    /// Time for which the tools of a lost subserver stay listed (AX-61); zero: none.
    pub grace: Duration,
    /// Policy of segments without their own.
    pub policy: SegmentPolicy,
    pub policies: BTreeMap<Segment, SegmentPolicy>,
    /// Patience for the answer to a question, capped at a quarter of the heartbeat interval of the applicant.
    pub ask_timeout: Duration,
    pub registrations_per_second: u32,
    /// Most registrations in the queue.
    pub waiting: usize,
    /// Most registrations of one link in the queue.
    pub waiting_per_link: usize,
    /// Most registrations, lost ones still waited for included.
    pub registrations: usize,
    /// Most ids of one registration.
    pub subtree_ids: usize,
    /// Most simultaneous fetches of lists.
    pub fetches: usize,
    /// Patience for a list.
    pub fetch_timeout: Duration,
}

impl Settings {
    /// Gives the defaults, for this aggregator.
    pub fn new(aggregator_id: NodeId) -> Self {
        Self {
            aggregator_id,
            budget: Budget::default(),
            grace: Duration::from_secs(300),
            policy: SegmentPolicy::default(),
            policies: BTreeMap::new(),
            ask_timeout: Duration::from_secs(2),
            registrations_per_second: 500,
            waiting: 10_000,
            waiting_per_link: 256,
            registrations: 20_000,
            subtree_ids: 4_096,
            fetches: 64,
            fetch_timeout: Duration::from_secs(30),
        }
    }

    /// Gives the policy of a segment.
    pub fn policy(&self, segment: &Segment) -> SegmentPolicy {
        self.policies.get(segment).copied().unwrap_or(self.policy)
    }
}

/// Demands of a segment on registrants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPolicy {
    /// Demand for a proved authority (AX-13).
    pub proof: Demand,
    /// Demand for lasting ownership (AX-12).
    pub sticky: Demand,
    /// Most that calls of a registrant may do, whatever it asks for (MCP-AX 10.2, AX-41).
    pub most_scope: AuthScope,
    /// Bounds on notifications (AX-51).
    pub notifications: RelayLimits,
}

impl Default for SegmentPolicy {
    fn default() -> Self {
        Self { proof: Demand::default(), sticky: Demand::default(), most_scope: AuthScope::Admin, notifications: RelayLimits::default() }
    }
}

/// Namespaces under a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Demand {
    Always,
    /// Namespaces with tools that change something.
    #[default]
    ForChanges,
    Never,
}
