//! What the operator of an aggregator decides about registrations. Nothing of what happens.

use std::collections::BTreeMap;
use std::time::Duration;

use banyan_model::Segment;

use crate::id::NodeId;
use crate::message::Budget;

/// The settings of one aggregator.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its own id.
    pub aggregator_id: NodeId,
    /// What each session may spend.
    pub budget: Budget,
    /// How long the tools of a lost subserver stay listed (AX-61); zero: not at all.
    pub grace: Duration,
    /// What holds for segments that have no policy of their own.
    pub policy: SegmentPolicy,
    /// Segments with a policy of their own.
    pub policies: BTreeMap<Segment, SegmentPolicy>,
    /// How it is found out that a subserver is registered elsewhere (AX-25).
    pub split_brain: SplitBrain,
    /// How long an answer to a question is waited for. Never more than a quarter of the heartbeat interval of who is asked about.
    pub ask_timeout: Duration,
    /// How many registrations are served in a second.
    pub registrations_per_second: u32,
    /// How many registrations may wait.
    pub waiting: usize,
    /// How many of them on one link.
    pub waiting_per_link: usize,
    /// How many registrations are held at once, those that are lost and waited for included.
    pub registrations: usize,
    /// How many ids one registration may bring.
    pub subtree_ids: usize,
    /// How many lists are fetched at once.
    pub fetches: usize,
    /// How long a list is waited for.
    pub fetch_timeout: Duration,
}

impl Settings {
    /// The defaults, for this aggregator.
    pub fn new(aggregator_id: NodeId) -> Self {
        Self {
            aggregator_id,
            budget: Budget::default(),
            grace: Duration::from_secs(300),
            policy: SegmentPolicy::default(),
            policies: BTreeMap::new(),
            split_brain: SplitBrain::AskSubserver,
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

    pub(super) fn policy(&self, segment: &Segment) -> SegmentPolicy {
        self.policies.get(segment).copied().unwrap_or(self.policy)
    }
}

/// What a segment demands of whoever registers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentPolicy {
    /// When its authority must be proved (AX-13).
    pub proof: Demand,
    /// When it belongs to its authority for good (AX-12).
    pub sticky: Demand,
}

/// For which namespaces something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Demand {
    /// All.
    Always,
    /// Those with tools that change something.
    #[default]
    ForChanges,
    /// None.
    Never,
}

/// How it is found out that a subserver is registered with another aggregator of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBrain {
    /// A store that all the aggregators share knows.
    AskStore,
    /// The subserver itself is asked.
    AskSubserver,
}
