//! Agents as a part of a gate: those behind it, and the gate itself. The settings of `[mount.NAME]` with `transport = "a2a"` are not here.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use banyan_model::{Principal, PrincipalKind};
use bridge::EnvelopeKey;
use call::tree::port::Family;
use config::Sections;
use config::resolved::{Config, Issuer};
use config::secret::Sources;
use door::entrance::Entrance;
use door::part::{GatePart, Ground, InstalledPart};
use door::port::Door;
use runtime::clock;
use runtime::tls::Connector;

use crate::evidence::notary::Notary;
use crate::mounted::family::AgentFamily;
use crate::negotiated::documents::CapabilityDocuments;
use crate::negotiated::negotiation_door::NegotiationDoor;
use crate::rate::CallerRates;
use crate::served::agent_door::AgentDoor;
use crate::served::capability_door::CapabilityDoor;
use crate::served::life::KeptLife;
use crate::served::push::Pushes;
use crate::served::tasks::Tasks;
use crate::served::translate_door::TranslateDoor;
use crate::settings::section::AgentSection;
use crate::translated::ancestry::ClaimsAlone;
use crate::translated::heard::HeardMessages;
use crate::translated::key;

/// Agents, for the list of parts.
pub struct AgentPart;

impl GatePart for AgentPart {
    fn sections(&self, known: Sections) -> Sections {
        known.with(AgentSection)
    }

    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let (connector, sources) = (Arc::clone(&ground.connector), Arc::clone(&ground.sources));
        let life = Arc::new(KeptLife::open(ground.is_lasting.then_some(&ground.state_dir), &ground.entrance.gate.node.id));
        let (entrance, known) = (Arc::clone(&ground.entrance), Mutex::new(credentials(&ground.entrance.gate.config.load())));
        let (state, id) = (ground.is_lasting.then_some(&ground.state_dir), &ground.entrance.gate.node.id);
        let notary = Arc::new(Notary::new(&entrance, state, id));
        let key = key::open(ground.is_lasting.then_some(&*ground.state_dir), id).map(Arc::new);
        Arc::new(InstalledAgents { connector, sources, entrance, life, notary, tasks: Arc::default(), known, key })
    }
}

/// The agents of one gate, installed.
struct InstalledAgents {
    connector: Arc<Connector>,
    sources: Arc<dyn Sources>,
    entrance: Arc<Entrance>,
    life: Arc<KeptLife>,
    notary: Arc<Notary>,
    tasks: Arc<Tasks>,
    /// Credentials of the configuration in force.
    known: Mutex<BTreeSet<KnownCredential>>,
    /// Key for messages of AINP.
    key: Option<Arc<EnvelopeKey>>,
}

/// A credential of the configuration, told apart from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KnownCredential {
    /// Authorities of client certificates, by their file.
    Authorities(PathBuf),
    /// Name of an issuer, with its `iss` and its keys.
    Issuer(String, String),
    /// Name and hash of a token.
    Token(String, [u8; 32]),
}

fn credentials(config: &Config) -> BTreeSet<KnownCredential> {
    let tokens = config.tokens.iter().map(|token| KnownCredential::Token(token.name.to_string(), token.sha256));
    let signer = |issuer: &Issuer| format!("{} {:?}", issuer.issuer, issuer.keys);
    let issuers = config.trust.issuers.iter().map(|issuer| KnownCredential::Issuer(issuer.name.to_string(), signer(issuer)));
    let authorities = config.trust.tls.as_ref().and_then(|tls| tls.client_ca.clone()).map(KnownCredential::Authorities);
    tokens.chain(issuers).chain(authorities).collect()
}

impl InstalledPart for InstalledAgents {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        let (connector, sources) = (Arc::clone(&self.connector), Arc::clone(&self.sources));
        vec![Arc::new(AgentFamily { connector, sources, notary: Some(Arc::clone(&self.notary)) })]
    }

    /// Takes tasks from principals whose token, issuer or authority is gone, or is another under the same name.
    fn apply(&self, config: &Config) {
        let now = credentials(config);
        let before = std::mem::replace(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner), now.clone());
        for gone in before.difference(&now) {
            match gone {
                KnownCredential::Authorities(_) => self.tasks.disown_all(|owner| owner.kind == PrincipalKind::Certificate),
                KnownCredential::Issuer(name, _) => {
                    let end = format!("@{name}");
                    self.tasks.disown_all(|owner| owner.kind == PrincipalKind::Issuer && owner.name.ends_with(&end));
                }
                KnownCredential::Token(name, _) => self.tasks.disown(&Principal::new(PrincipalKind::Token, name.as_str())),
            }
        }
    }

    fn doors(&self) -> Vec<Arc<dyn Door>> {
        let (entrance, life) = (Arc::clone(&self.entrance), Arc::clone(&self.life));
        let capabilities = CapabilityDoor {
            entrance: Arc::clone(&entrance),
            life: Arc::clone(&life),
            notary: Arc::clone(&self.notary),
            signed: Mutex::default(),
        };
        let documents = CapabilityDocuments::new(&self.connector);
        let negotiations =
            NegotiationDoor { entrance: Arc::clone(&entrance), notary: Arc::clone(&self.notary), life: Arc::clone(&life), documents };
        let pushes = Pushes {
            entrance: Arc::clone(&entrance),
            connector: Arc::clone(&self.connector),
            places: Arc::default(),
            pace: Mutex::default(),
        };
        let notary = Arc::clone(&self.notary);
        let agent = Arc::new(AgentDoor { entrance, tasks: Arc::clone(&self.tasks), streams: Arc::default(), pushes, life, notary });
        let translations = TranslateDoor {
            agent: Arc::clone(&agent),
            ancestry: Arc::new(ClaimsAlone),
            rates: CallerRates::default(),
            running: Arc::default(),
            key: self.key.clone(),
            heard: HeardMessages::new(clock::wall() / 1000),
        };
        vec![agent, Arc::new(capabilities), Arc::new(negotiations), Arc::new(translations)]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use config::secret::SystemSources;

    use super::*;

    #[test]
    fn a_replaced_issuer_or_authority_is_another() {
        let known = |keys: &str, ca: &str| {
            let text = format!(
                "resource = \"https://gate.example\"\n[issuer.a]\nissuer = \"https://a.example\"\nkeys = \"{keys}\"\n\
                 [tls]\ncertificate = \"c\"\nkey = \"k\"\nclient_ca = \"{ca}\"\n"
            );
            let parsed = Sections::default().with(AgentSection).parse(&text, Path::new("banyan.toml"), &SystemSources);
            credentials(&parsed.unwrap_or_else(|error| panic!("{error}")))
        };
        let before = known("a.jwks", "ca.pem");
        let gone = |now: BTreeSet<KnownCredential>| before.difference(&now).count();
        assert_eq!((gone(known("a.jwks", "ca.pem")), gone(known("b.jwks", "ca.pem")), gone(known("a.jwks", "other.pem"))), (0, 1, 1));
    }
}
