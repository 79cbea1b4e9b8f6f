//! Terms of registration, checked. Registers nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use banyan_model::Segment;

use super::hosts::Hosts;
use crate::section::trust::resolved::ClientTls;
pub use mesh_proto::parent::{Demand, SegmentPolicy};

/// Who may register servers, and on which terms (MCP-AX 4.2, 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Registry {
    /// Globs over the names of principals who may; `None`: whoever proves an authority.
    pub principals: Option<Vec<String>>,
    /// The hosts, besides loopback ones, whose URLs may be registered: the gate will dial them.
    pub hosts: Hosts,
    /// What holds for segments that have no policy of their own.
    pub policy: SegmentPolicy,
    /// Segments with a policy of their own.
    pub policies: BTreeMap<Segment, SegmentPolicy>,
    /// How long the tools of a lost server stay listed; zero: not at all.
    pub grace: Duration,
    /// How many may be registered at once.
    pub registrations: usize,
    /// Whether gates may register, and be dialled, where others can listen in (AX-42).
    pub insecure: bool,
    /// Set if whoever registers as a gate is taken for one, though it proves no authority.
    pub trust_gates: bool,
    /// How `https` addresses that were registered and the gate know each other.
    pub tls: Option<ClientTls>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            principals: None,
            hosts: Hosts::default(),
            policy: SegmentPolicy::default(),
            policies: BTreeMap::new(),
            grace: Duration::from_secs(300),
            registrations: 20_000,
            insecure: false,
            trust_gates: false,
            tls: None,
        }
    }
}
