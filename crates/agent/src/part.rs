//! Agents as a part of a gate: those behind it, and the gate itself. The settings of `[mount.NAME]` with `transport = "a2a"` are not here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use banyan_model::{Principal, PrincipalKind};
use bridge::EnvelopeKey;
use call::tree::port::Family;
use config::Sections;
use config::resolved::Config;
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
use crate::served::tasks::Tasks;
use crate::served::translate_door::TranslateDoor;
use crate::translated::ancestry::ClaimsAlone;
use crate::translated::key;
use crate::translated::rate::TranslationRates;

/// Agents, for the list of parts.
pub struct AgentPart;

impl GatePart for AgentPart {
    fn sections(&self, known: Sections) -> Sections {
        known.with(AgentSection)
    }

    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let (connector, sources) = (Arc::clone(&ground.connector), Arc::clone(&ground.sources));
        let life = Arc::new(KeptLife::open(ground.is_lasting.then_some(&ground.state_dir), &ground.entrance.gate.node.id));
        let (entrance, tokens) = (Arc::clone(&ground.entrance), Mutex::new(tokens(&ground.entrance.gate.config.load())));
        let key = key::open(ground.is_lasting.then_some(&*ground.state_dir), &ground.entrance.gate.node.id).map(Arc::new);
        Arc::new(InstalledAgents { connector, sources, entrance, life, tasks: Arc::default(), tokens, key })
    }
}

/// The agents of one gate, installed.
struct InstalledAgents {
    connector: Arc<Connector>,
    sources: Arc<dyn Sources>,
    entrance: Arc<Entrance>,
    life: Arc<KeptLife>,
    tasks: Arc<Tasks>,
    /// Tokens of the configuration in force.
    tokens: Mutex<BTreeSet<KnownToken>>,
    /// Key for messages of AINP.
    key: Option<Arc<EnvelopeKey>>,
}

/// Name and hash of a token.
type KnownToken = (String, [u8; 32]);

fn tokens(config: &Config) -> BTreeSet<KnownToken> {
    config.tokens.iter().map(|token| (token.name.to_string(), token.sha256)).collect()
}

impl InstalledPart for InstalledAgents {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(AgentFamily { connector: Arc::clone(&self.connector), sources: Arc::clone(&self.sources) })]
    }

    /// Takes tasks from tokens that are gone, or have another secret.
    fn apply(&self, config: &Config) {
        let now = tokens(config);
        let before = std::mem::replace(&mut *self.tokens.lock().unwrap_or_else(PoisonError::into_inner), now.clone());
        for (name, _) in before.difference(&now) {
            self.tasks.disown(&Principal::new(PrincipalKind::Token, name.as_str()));
        }
    }

    fn doors(&self) -> Vec<Arc<dyn Door>> {
        let (entrance, life) = (Arc::clone(&self.entrance), Arc::clone(&self.life));
        let capabilities = CapabilityDoor { entrance: Arc::clone(&entrance), life: Arc::clone(&life) };
        let pushes = Pushes { entrance: Arc::clone(&entrance), connector: Arc::clone(&self.connector), places: Arc::default() };
        let agent = Arc::new(AgentDoor { entrance, tasks: Arc::clone(&self.tasks), streams: Arc::default(), pushes, life });
        let translations = TranslateDoor {
            agent: Arc::clone(&agent),
            ancestry: Arc::new(ClaimsAlone),
            rates: TranslationRates::default(),
            running: Arc::default(),
            key: self.key.clone(),
        };
        vec![agent, Arc::new(capabilities), Arc::new(translations)]
    }
}
