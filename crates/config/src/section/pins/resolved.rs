//! What is done with definitions that nobody has looked at, all checked. Which are known is not known here.

use std::collections::BTreeMap;

use banyan_model::Segment;
use policy::pin::Mode;

/// What is done with them, by who lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// Servers that the configuration names, and those of clients' files.
    pub mode: Mode,
    /// Servers that registered themselves.
    pub registered: Mode,
    /// Other gates, however they came: they pin what stands behind them.
    pub gates: Mode,
    /// Single resources, of servers that are not trusted; `None`: as all else of their server.
    pub resources: Option<Mode>,
    /// Single mounts, before all else.
    pub mounts: BTreeMap<Segment, Mode>,
}

impl Default for Pins {
    fn default() -> Self {
        Self { mode: Mode::Pin, registered: Mode::Pin, gates: Mode::Trust, resources: None, mounts: BTreeMap::new() }
    }
}
