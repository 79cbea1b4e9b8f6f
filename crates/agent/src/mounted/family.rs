//! Opens mounts of agents: fetches the card, and chooses the interface. Does not retry.

use std::sync::Arc;

use agent_proto::card::{AgentCard, MOST_CARD};
use banyan_model::Era;
use bytes::Bytes;
use call::tree::mount::Mount;
use call::tree::port::{Family, NewConnection, Opens, Owner, UpstreamError};
use config::resolved::{self, FamilySettings, Remote, RemoteAgent, Transport};
use config::secret::Sources;
use futures_util::future::BoxFuture;
use json::quote;
use mcp_proto::client::{Identity, Negotiated};
use mcp_proto::era::INITIALIZE;
use runtime::tls::Connector;

use crate::evidence::notary::Notary;
use crate::mounted::upstream::AgentUpstream;
use crate::mounted::wire::AgentWire;

/// Agents of one gate.
pub struct AgentFamily {
    pub connector: Arc<Connector>,
    pub sources: Arc<dyn Sources>,
    /// Notary of the gate; without it, calls have no tokens.
    pub notary: Option<Arc<Notary>>,
}

impl Family for AgentFamily {
    fn name(&self) -> &'static str {
        RemoteAgent::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        let remote = family.settings::<RemoteAgent>()?.clone();
        Some(Arc::new(AgentOpens {
            connector: Arc::clone(&self.connector),
            sources: Arc::clone(&self.sources),
            remote,
            notary: self.notary.clone(),
        }))
    }
}

/// Opens connections to one agent.
struct AgentOpens {
    connector: Arc<Connector>,
    sources: Arc<dyn Sources>,
    remote: RemoteAgent,
    notary: Option<Arc<Notary>>,
}

impl Opens for AgentOpens {
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, _: Owner, _: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        Box::pin(async move {
            let limit = mount.gate.limits().response_bytes;
            let wire = AgentWire::new(&self.remote.0, &*self.sources, &self.connector, limit)?;
            let card = wire.card().await?;
            let endpoint = wire.endpoint(&card)?;
            let negotiated = negotiated(&card);
            let upstream = AgentUpstream::new(Arc::new(wire), mount.config.name.as_str(), endpoint, card, self.notary.clone());
            Ok((Box::new(upstream) as Box<_>, negotiated))
        })
    }

    fn kind(&self) -> &'static str {
        RemoteAgent::FAMILY
    }

    fn identity(&self) -> String {
        self.remote.description()
    }
}

/// An agent that has shown its card.
#[derive(Clone, Debug)]
pub struct KnownAgent {
    pub card: AgentCard,
    /// Binding of the interface that calls go to.
    pub binding: &'static str,
    /// Version of the protocol at that interface.
    pub version: String,
}

/// Asks an agent for its card, and chooses the interface as a mount would.
pub async fn ask(remote: &Remote, sources: &dyn Sources, connector: &Connector) -> Result<KnownAgent, UpstreamError> {
    let wire = AgentWire::new(remote, sources, connector, MOST_CARD)?;
    let card = wire.card().await?;
    wire.endpoint(&card)?;
    let (interface, binding) = card.choose().map_err(|error| UpstreamError::Unreachable(error.to_string()))?;
    Ok(KnownAgent { version: interface.version.clone(), binding: binding.name(), card: card.clone() })
}

/// Describes an agent as an MCP server describes itself.
fn negotiated(card: &AgentCard) -> Negotiated {
    let info = format!("{{\"name\":{},\"version\":{}}}", quote(&card.name), quote(&card.version));
    Negotiated {
        era: Era::Initialize,
        version: INITIALIZE[0].to_owned(),
        capabilities: Bytes::from_static(b"{\"tools\":{}}"),
        server_info: info.into(),
        instructions: (!card.description.is_empty()).then(|| card.description.clone()),
    }
}
