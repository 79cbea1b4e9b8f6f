//! Agents as a part of a gate: those behind it, and the gate itself. The settings of `[mount.NAME]` with `transport = "a2a"` are not here.

use std::sync::Arc;

use call::tree::port::Family;
use config::Sections;
use config::secret::Sources;
use door::entrance::Entrance;
use door::part::{GatePart, Ground, InstalledPart};
use door::port::Door;
use runtime::tls::Connector;

use crate::mounted::family::AgentFamily;
use crate::served::agent_door::AgentDoor;
use crate::served::capability_door::CapabilityDoor;
use crate::served::life::KeptLife;
use crate::served::push::Pushes;
use crate::served::section::AgentSection;

/// Agents, for the list of parts.
pub struct AgentPart;

impl GatePart for AgentPart {
    fn sections(&self, known: Sections) -> Sections {
        known.with(AgentSection)
    }

    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let (connector, sources) = (Arc::clone(&ground.connector), Arc::clone(&ground.sources));
        let life = Arc::new(KeptLife::open(ground.is_lasting.then_some(&ground.state_dir), &ground.entrance.gate.node.id));
        Arc::new(InstalledAgents { connector, sources, entrance: Arc::clone(&ground.entrance), life })
    }
}

/// The agents of one gate, installed.
struct InstalledAgents {
    connector: Arc<Connector>,
    sources: Arc<dyn Sources>,
    entrance: Arc<Entrance>,
    life: Arc<KeptLife>,
}

impl InstalledPart for InstalledAgents {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(AgentFamily { connector: Arc::clone(&self.connector), sources: Arc::clone(&self.sources) })]
    }

    fn doors(&self) -> Vec<Arc<dyn Door>> {
        let (entrance, life) = (Arc::clone(&self.entrance), Arc::clone(&self.life));
        let capabilities = CapabilityDoor { entrance: Arc::clone(&entrance), life: Arc::clone(&life) };
        let pushes = Pushes { connector: Arc::clone(&self.connector), places: Arc::default() };
        vec![Arc::new(AgentDoor { entrance, tasks: Arc::default(), streams: Arc::default(), pushes, life }), Arc::new(capabilities)]
    }
}
