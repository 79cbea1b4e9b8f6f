//! Agents as a part of a gate. The settings belong to `[mount.NAME]` with `transport = "a2a"` and are not here.

use std::sync::Arc;

use call::tree::port::Family;
use config::secret::Sources;
use door::part::{GatePart, Ground, InstalledPart};
use runtime::tls::Connector;

use crate::mounted::family::AgentFamily;

/// Agents, for the list of parts.
pub struct AgentPart;

impl GatePart for AgentPart {
    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        Arc::new(InstalledAgents { connector: Arc::clone(&ground.connector), sources: Arc::clone(&ground.sources) })
    }
}

/// The agents of one gate, installed.
struct InstalledAgents {
    connector: Arc<Connector>,
    sources: Arc<dyn Sources>,
}

impl InstalledPart for InstalledAgents {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(AgentFamily { connector: Arc::clone(&self.connector), sources: Arc::clone(&self.sources) })]
    }
}
