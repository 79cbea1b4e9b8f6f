//! Terms of registration, checked. Registers nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use banyan_model::Segment;

use super::hosts::Hosts;
use crate::section::trust::resolved::ClientTls;
pub use mesh_proto::parent::{Demand, SegmentPolicy};
pub(super) use mesh_proto::relay::RelayLimits;

/// Terms of registration (MCP-AX 4.2, 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Registry {
    /// Globs over names of principals; `None`: principals with a proven authority.
    pub principals: Option<Vec<String>>,
    /// Hosts to dial, besides loopback hosts.
    pub hosts: Hosts,
    /// Policy of all other segments.
    pub policy: SegmentPolicy,
    /// Segments with a policy of their own.
    pub policies: BTreeMap<Segment, SegmentPolicy>,
    /// Time for which the tools of a lost server stay listed; zero: not at all.
    pub grace: Duration,
    /// Time after which the lists of a server that tells of no changes are fetched again.
    pub list_ttl: Duration,
    /// Registrations at once.
    pub registrations: usize,
    /// Gates may register, and be dialled, where others can listen in (AX-42).
    pub insecure: bool,
    /// Registered gates are taken for gates without a proven authority.
    pub trust_gates: bool,
    /// Certificates between the gate and registered `https` addresses.
    pub tls: Option<ClientTls>,
}

impl Registry {
    /// Gives the policy of a segment.
    pub fn policy_of(&self, segment: &Segment) -> SegmentPolicy {
        self.policies.get(segment).copied().unwrap_or(self.policy)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            principals: None,
            hosts: Hosts::default(),
            policy: SegmentPolicy::default(),
            policies: BTreeMap::new(),
            grace: Duration::from_secs(300),
            list_ttl: Duration::from_secs(60),
            registrations: 20_000,
            insecure: false,
            trust_gates: false,
            tls: None,
        }
    }
}
