//! AXCP as a part of a gate: the families of mounts of contexts and of peers' tools, the door for the owner, and the connections with peers.
//! Opens no context.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use call::judge::gate::Gate;
use call::tree::port::Family;
use config::Sections;
use config::resolved::{Config, Transport};
use door::part::{GatePart, Ground, InstalledPart};
use door::port::Door;
use futures_util::future::BoxFuture;
use runtime::tls::Connector;
use trust::Trust;

use crate::mounted::ContextFamily;
use crate::node::AxcpNode;
use crate::section::{AxcpSection, AxcpSettings, OfferedSection, OfferedSettings, contexts_of};
use crate::shelf::ContextShelf;
use crate::status_door::ContextDoor;
use crate::tools::ground::ToolGround;
use crate::tools::upstream::OfferedFamily;

/// Shared contexts, for the list of parts.
pub struct AxcpPart;

impl GatePart for AxcpPart {
    fn sections(&self, known: Sections) -> Sections {
        known.with(AxcpSection).with(OfferedSection)
    }

    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let gate = &ground.entrance.gate;
        let shelf = ContextShelf::new(Arc::clone(gate));
        let door = ContextDoor { entrance: Arc::clone(&ground.entrance), shelf: Arc::clone(&shelf), node: Mutex::default() };
        Arc::new(InstalledAxcp {
            gate: Arc::clone(gate),
            trust: Arc::clone(&ground.entrance.trust),
            connector: Arc::clone(&ground.connector),
            shelf,
            tools: ToolGround::new(Arc::clone(gate)),
            door: Arc::new(door),
            runs: Mutex::default(),
        })
    }
}

/// Shared contexts at one gate.
struct InstalledAxcp {
    gate: Arc<Gate>,
    trust: Arc<Trust>,
    connector: Arc<Connector>,
    shelf: Arc<ContextShelf>,
    tools: Arc<ToolGround>,
    door: Arc<ContextDoor>,
    /// Settings of the connections, once they have begun.
    runs: Mutex<Option<RunningNode>>,
}

/// Connections with peers, and the settings behind them.
struct RunningNode {
    settings: Option<AxcpSettings>,
    contexts: Vec<crate::section::ContextSettings>,
    /// Peers whose tools are mounted.
    offering: BTreeSet<Arc<str>>,
    node: Option<Arc<AxcpNode>>,
}

impl InstalledAxcp {
    /// Makes the connections those of a configuration.
    fn arrange(&self, config: &Config) {
        let (settings, contexts) = (config.values.get::<AxcpSettings>().cloned(), contexts_of(config));
        let offering: BTreeSet<Arc<str>> = offering_peers(config);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runs) = runs.as_mut()
            && (&runs.settings, &runs.contexts) == (&settings, &contexts)
            && offering.is_subset(&runs.offering)
        {
            runs.offering = offering;
            return;
        }
        // A peer offers its tools when a connection begins: those that are mounted only now begin anew.
        if let Some(before) = runs.take().and_then(|runs| runs.node) {
            before.stop();
        }
        let node = settings.clone().map(|settings| {
            let (trust, connector) = (Arc::clone(&self.trust), Arc::clone(&self.connector));
            let (shelf, tools) = (Arc::clone(&self.shelf), Arc::clone(&self.tools));
            AxcpNode::begin(settings, contexts.clone(), (shelf, tools), trust, connector)
        });
        self.door.show(node.clone());
        *runs = Some(RunningNode { settings, contexts, offering, node });
    }
}

/// Finds the peers whose tools a configuration mounts.
fn offering_peers(config: &Config) -> BTreeSet<Arc<str>> {
    let of_mount = |transport: &Transport| match transport {
        Transport::Family(family) => family.settings::<OfferedSettings>().map(|settings| Arc::clone(&settings.peer)),
        Transport::Http(_) | Transport::Sse(_) | Transport::Stdio(_) => None,
    };
    config.mounts.values().filter_map(|mount| of_mount(&mount.transport)).collect()
}

impl InstalledPart for InstalledAxcp {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(ContextFamily(Arc::clone(&self.shelf))), Arc::new(OfferedFamily(Arc::clone(&self.tools.offers)))]
    }

    fn doors(&self) -> Vec<Arc<dyn Door>> {
        vec![Arc::<ContextDoor>::clone(&self.door)]
    }

    fn begin(&self) {
        self.arrange(&self.gate.config.load_full());
    }

    fn apply(&self, config: &Config) {
        if self.runs.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.arrange(config);
        }
    }

    fn end_work(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let ended = self.runs.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(node) = ended.and_then(|runs| runs.node) {
                node.stop();
                node.ended().await;
            }
        })
    }
}
