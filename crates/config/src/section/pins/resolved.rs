//! Treatment of new definitions, checked. Knows no definition.

use std::collections::BTreeMap;

use banyan_model::Segment;
use policy::pin::Mode;

/// Modes, by the lister of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// Servers of the configuration and of clients' files.
    pub mode: Mode,
    /// Registered servers.
    pub registered: Mode,
    /// Other gates, mounted or registered; a gate pins its own servers.
    pub gates: Mode,
    /// Single resources of servers without trust; `None`: as all else of their server.
    pub resources: Option<Mode>,
    /// Single mounts, before all else.
    pub mounts: BTreeMap<Segment, Mode>,
}

impl Default for Pins {
    fn default() -> Self {
        Self { mode: Mode::Pin, registered: Mode::Pin, gates: Mode::Trust, resources: None, mounts: BTreeMap::new() }
    }
}
