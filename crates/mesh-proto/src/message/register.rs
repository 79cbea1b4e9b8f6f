//! `mcpax/register` (MCP-AX 6.1, AX-20). Does not decide on the registration.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use banyan_model::Segment;
use serde_json::{Map, Value, json};

use super::VERSION;
use super::limit::{HEARTBEAT_LEAST, HEARTBEAT_MOST, MAX_BYTES, MAX_PROOF_BYTES, MAX_SUBTREE_IDS, MAX_URL_BYTES};
use super::node_ids::{ID, id, set, write};
use crate::annotation::{AuthScope, Transport};
use crate::authority::Authority;
use crate::id::NodeId;
use crate::json::{Object, invalid, object};
use crate::refusal::Refusal;

/// The params of `mcpax/register`. `aggregator_id`, `authority_proof`, `backup` and `url` are ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Stable over sessions and reboots.
    pub subserver_id: NodeId,
    /// Wanted segment.
    pub segment: Segment,
    /// Alleged authority.
    pub authority: Option<Authority>,
    /// Proof of the authority, unless a certificate proves the same.
    pub authority_proof: Option<Proof>,
    pub capabilities: Capabilities,
    /// Zero: no heartbeats.
    pub heartbeat_interval: Duration,
    pub transport: Transport,
    /// Permission for calls of the subserver; `None`: all (AX-41).
    pub auth_scope: Option<AuthScope>,
    /// Id of the node as an aggregator, if any.
    pub aggregator_id: Option<NodeId>,
    /// Ids of the aggregators below and the own id; `None`: a plain subserver.
    pub subtree: Option<BTreeSet<NodeId>>,
    /// Address for connections from the parent; `None`: the link of the registration serves both ways.
    pub url: Option<String>,
    /// The registration is a makeshift while a preferred parent does not answer.
    pub backup: bool,
}

/// Offers of a subserver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    pub tools: bool,
    pub resources: bool,
    /// The subserver sends notifications.
    pub notifications: bool,
}

/// A proof of authority: a signed token, opaque here, and hidden from debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof(String);

impl Proof {
    /// Takes visible ASCII of at most [`MAX_PROOF_BYTES`].
    pub fn new(text: &str) -> Option<Self> {
        let legal = !text.is_empty() && text.len() <= MAX_PROOF_BYTES && text.bytes().all(|b| b.is_ascii_graphic());
        legal.then(|| Self(text.to_owned()))
    }

    /// Gives the token to a verifier.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof(…)")
    }
}

impl Register {
    /// Makes a plain subserver without heartbeats, authority or any other option.
    pub fn plain(subserver_id: NodeId, segment: Segment) -> Self {
        Self {
            subserver_id,
            segment,
            authority: None,
            authority_proof: None,
            capabilities: Capabilities { tools: true, resources: false, notifications: false },
            heartbeat_interval: Duration::ZERO,
            transport: Transport::default(),
            auth_scope: None,
            aggregator_id: None,
            subtree: None,
            url: None,
            backup: false,
        }
    }

    /// Tells whether the node presents itself as an aggregator, which may list dotted names.
    pub fn is_aggregator(&self) -> bool {
        self.subtree.is_some()
    }

    pub(super) fn decode(params: &[u8]) -> Result<Self, Refusal> {
        let params = object(params, MAX_BYTES)?;
        let version = params.text("version", 64)?.unwrap_or(VERSION);
        if version != VERSION {
            return Err(Refusal::VersionUnsupported { given: version.to_owned() });
        }
        let aggregator_id = params.optional("aggregator_id", id, ID)?;
        let authority = |v: &Value| Authority::parse(v.as_str()?);
        Ok(Self {
            subserver_id: params.required("subserver_id", id, ID)?,
            segment: segment(&params)?,
            authority: params.optional("authority", authority, "a name like dns:edge01.example.com")?,
            authority_proof: params.optional("authority_proof", |v| Proof::new(v.as_str()?), "a signed token")?,
            capabilities: Capabilities::read(&params)?,
            heartbeat_interval: heartbeat_interval(&params)?,
            transport: params.optional("transport_class", |v| Transport::parse(v.as_str()?), "like uart_cbor")?.unwrap_or_default(),
            auth_scope: params.optional("auth_scope", |v| AuthScope::parse(v.as_str()?), "`read`, `write` or `admin`")?,
            aggregator_id,
            subtree: subtree(&params, aggregator_id)?,
            url: params.text("url", MAX_URL_BYTES)?.map(str::to_owned),
            backup: params.optional("backup", Value::as_bool, "true or false")?.unwrap_or_default(),
        })
    }

    pub(super) fn encode(&self) -> String {
        let mut members = Map::new();
        members.insert("subserver_id".into(), self.subserver_id.to_string().into());
        members.insert("segment".into(), self.segment.as_str().into());
        members.insert("capabilities".into(), self.capabilities.write());
        let interval = u64::try_from(self.heartbeat_interval.as_millis()).unwrap_or(u64::MAX);
        members.insert("heartbeat_interval_ms".into(), interval.into());
        members.insert("transport_class".into(), self.transport.as_str().into());
        members.insert("version".into(), VERSION.into());
        let texts = [
            ("authority", self.authority.as_ref().map(Authority::to_string)),
            ("authority_proof", self.authority_proof.as_ref().map(|proof| proof.0.clone())),
            ("auth_scope", self.auth_scope.map(|scope| scope.as_str().to_owned())),
            ("aggregator_id", self.aggregator_id.map(|id| id.to_string())),
            ("url", self.url.clone()),
        ];
        members.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::String(text?)))));
        if let Some(ids) = &self.subtree {
            members.insert("x-mcpax-subtree-ids".into(), write(ids));
        }
        if self.backup {
            members.insert("backup".into(), true.into());
        }
        Value::Object(members).to_string()
    }
}

impl Capabilities {
    fn read(params: &Object) -> Result<Self, Refusal> {
        let Some(given) = params.object("capabilities")? else { return Ok(Self::default()) };
        let has = |member| given.optional(member, Value::as_bool, "true or false").map(Option::unwrap_or_default);
        Ok(Self { tools: has("tools")?, resources: has("resources")?, notifications: has("notifications")? })
    }

    fn write(self) -> Value {
        json!({ "tools": self.tools, "resources": self.resources, "notifications": self.notifications })
    }
}

fn segment(params: &Object) -> Result<Segment, Refusal> {
    let given = params.required("segment", Value::as_str, "the name under which the tools are shown")?;
    Segment::new(given).map_err(|bad| Refusal::SegmentInvalid { given: bad.0 })
}

fn heartbeat_interval(params: &Object) -> Result<Duration, Refusal> {
    let given = params.required("heartbeat_interval_ms", Value::as_u64, "a whole number; 0 asks for no heartbeats")?;
    let [least, most] = [HEARTBEAT_LEAST, HEARTBEAT_MOST].map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
    if given != 0 && !(least..=most).contains(&given) {
        return Err(Refusal::HeartbeatInterval { given, least, most });
    }
    Ok(Duration::from_millis(given))
}

/// Reads the subtree. An aggregator's set always holds its own id; a set of the own id alone means nobody below.
fn subtree(params: &Object, own: Option<NodeId>) -> Result<Option<BTreeSet<NodeId>>, Refusal> {
    let below = set(params, "x-mcpax-subtree-ids", MAX_SUBTREE_IDS)?;
    if below.as_ref().is_some_and(BTreeSet::is_empty) && own.is_none() {
        return Err(invalid("x-mcpax-subtree-ids", "must hold the sender's own aggregator id".into()));
    }
    Ok(match (below, own) {
        (None, None) => None,
        (below, own) => Some(below.unwrap_or_default().into_iter().chain(own).collect()),
    })
}
