//! What a gate says about its mounts and tools, in shapes that scripts may rely on. How it finds out is not known here.

use std::any::Any;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use banyan_model::Era;
use config::resolved::{Gate, Transport};
use mcp_proto::json::Members;
use policy::approval::Mode;
use store::{BrokenChain, OverShare};

use crate::admin::shapes::{AuditStatus, BrokenRecord, OverRecord};
use crate::gateway::Gateway;
use call::tree::mount::{Mount, Phase};
use call::tree::registration::Registration;
use call::tree::snapshot::Tree;
use mesh::child::JoinStatus;
use room::{InstalledRooms, RoomStatus};

/// What there is to say about one mount.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MountStatus {
    /// Its segment.
    pub name: String,
    /// Where it was configured.
    pub origin: String,
    /// `starting`, `ready`, `degraded` or `failed`.
    pub state: String,
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// When it is tried next, in seconds since 1970.
    pub next_try: Option<u64>,
    /// What is wrong.
    pub error: Option<String>,
    /// `initialize` or `stateless`.
    pub era: Option<String>,
    /// The revision spoken.
    pub version: Option<String>,
    /// `stdio`, `http`, `sse`, `rooms` of what rooms offer, or `link` where its gate has dialled.
    pub transport: String,
    /// How many tools it offers.
    pub tools: usize,
    /// How many prompts.
    pub prompts: usize,
    /// How many resources and templates.
    pub resources: usize,
    /// How often it was started again.
    pub restarts: u64,
    /// Calls in flight.
    pub in_flight: usize,
    /// What people should know about its lists.
    pub notes: Vec<String>,
    /// Whether it is another gate.
    #[serde(default)]
    pub gate: bool,
    /// The median of what its calls of the last minute took, in milliseconds.
    #[serde(default)]
    pub p50_ms: Option<f64>,
    /// Where its own console is, of a gate that is reached by an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Of which of its calls somebody has to agree to: `irreversible`, `mutable` or `unlisted`; absent: of none, unless a rule or a gate below wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Mode>,
    /// How it registered itself; absent of what the configuration mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<RegisteredStatus>,
}

/// What there is to say about a registration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RegisteredStatus {
    /// Its stable id.
    pub subserver_id: String,
    /// By what name the configuration and the log know who registered it.
    pub principal: String,
    /// Who it says it is, as a `dns:` name.
    pub authority: Option<String>,
    /// Whether it has proved that.
    pub proven: bool,
    /// What may be asked of it: `read`, `write` or `admin`.
    pub auth_scope: String,
    /// How often it sends heartbeats, in milliseconds; 0: never.
    pub heartbeat_interval_ms: u64,
}

/// One tool as some client sees it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolRow {
    /// Its name in the tree.
    pub dotted: String,
    /// The name the client sees.
    pub shown: String,
    /// The name its server knows.
    pub original: String,
    /// Its mount.
    pub mount: String,
    /// What it says about itself.
    pub description: String,
    /// The size of its definition.
    pub bytes: usize,
    /// About how many tokens that is for a model.
    pub tokens: usize,
    /// Why the shown name looks as it does.
    pub reason: String,
    /// How many gates a call passes from here to the tool's server, this one included.
    #[serde(default)]
    pub hops: u8,
    /// Whether it is there: `always`, `scheduled`, `best_effort` or `degraded`.
    #[serde(default)]
    pub availability: String,
    /// How long a call is expected to take: `realtime`, `fast`, `standard`, `slow` or `batch`.
    #[serde(default)]
    pub latency_class: String,
    /// Set if nobody is asked about its calls only because its server says that it may do little: by what the configuration alone says,
    /// the mode of the gate would ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ungated_by_server: bool,
}

impl Gateway {
    /// How it stands with the record; `None`: none is kept.
    pub fn audit(&self) -> Option<AuditStatus> {
        let journal = &self.0.gate.record.journal;
        let standing = journal.standing();
        let over = journal.over_share().into_iter();
        journal.is_on().then(|| AuditStatus {
            directory: standing.dir.as_ref().map(|dir| dir.display().to_string()),
            failing: standing.failing.clone(),
            unrecorded: journal.unrecorded(),
            broken: standing.broken.clone().map(|BrokenChain { chain, since, why }| BrokenRecord { chain, since, why }),
            full: journal.is_full(),
            over_share: over
                .map(|OverShare { principal, bytes, until }| OverRecord { principal: (*principal).into(), bytes, until })
                .collect(),
            removed: journal.removed(),
        })
    }
}

impl Gateway {
    /// What there is to say about every mount.
    pub fn status(&self) -> Vec<MountStatus> {
        let config = self.0.gate.config.load();
        self.0.gate.mounts.all.load().iter().map(|mount| status(mount, config.gate.as_deref())).collect()
    }

    /// Every room that is configured or open, by name.
    pub fn rooms(&self) -> Vec<RoomStatus> {
        let config = self.0.gate.config.load();
        let installed = self.0.installed.iter().filter_map(|part| (&**part as &dyn Any).downcast_ref::<InstalledRooms>());
        installed.flat_map(|part| part.rooms.status(&config.rooms)).collect()
    }

    /// With whom it is registered, or why not; `None`: it joins nobody.
    pub fn joined(&self) -> Option<Arc<JoinStatus>> {
        self.0.mesh.membership.status()
    }

    /// The last lines a mount's process wrote to its standard error; `None` where there is no such mount.
    pub fn stderr(&self, name: &str) -> Option<Vec<String>> {
        self.0.gate.mounts.find(name).map(|m| m.connections.stderr.lines())
    }

    /// The lines from now on.
    pub fn follow_stderr(&self, name: &str) -> Option<tokio::sync::broadcast::Receiver<String>> {
        self.0.gate.mounts.find(name).map(|m| m.connections.stderr.follow())
    }
}

fn status(mount: &Arc<Mount>, asking: Option<&Gate>) -> MountStatus {
    let state = mount.state.load();
    let seconds = |t: SystemTime| t.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let negotiated = mount.negotiated();
    let catalog = mount.catalog.load();
    let gate = mount.role.load().is_gate();
    MountStatus {
        name: mount.config.name.to_string(),
        origin: mount.config.origin.clone(),
        state: match state.phase {
            Phase::Degraded => "degraded",
            Phase::Failed => "failed",
            Phase::Ready => "ready",
            Phase::Starting => "starting",
        }
        .to_owned(),
        since: seconds(state.since),
        next_try: state.next_try.map(seconds),
        error: state.explained(),
        era: negotiated.as_ref().map(|n| if n.era == Era::Stateless { "stateless" } else { "initialize" }.to_owned()),
        version: negotiated.map(|n| n.version.clone()),
        transport: mount.opens.kind().to_owned(),
        tools: catalog.tools.len(),
        prompts: catalog.prompts.len(),
        resources: catalog.resources.len() + catalog.templates.len(),
        restarts: mount.restarts.load(std::sync::atomic::Ordering::Relaxed),
        in_flight: mount.in_flight.load(std::sync::atomic::Ordering::Relaxed),
        notes: notes(mount, &catalog.notes),
        gate,
        console: if gate { console(&mount.config.transport) } else { None },
        asks: asking.map(|gate| gate.mode_of(&mount.config.name)).filter(|mode| *mode != Mode::Off),
        registered: mount.registration.as_ref().map(registered),
        p50_ms: mount.recent.median(Instant::now()).map(|took| took.as_secs_f64() * 1000.0),
    }
}

/// Notes for people, about its lists and its answers.
fn notes(mount: &Mount, of_lists: &[String]) -> Vec<String> {
    let refused = mount.misanswers.load(std::sync::atomic::Ordering::Relaxed);
    let told =
        (refused > 0).then(|| format!("{refused} of its answers had the id of another request and were refused: the server is at fault"));
    of_lists.iter().cloned().chain(told).collect()
}

fn console(transport: &Transport) -> Option<String> {
    match transport {
        Transport::Http(remote) | Transport::Sse(remote) => Some(remote.url.origin().ascii_serialization() + crate::console::PATH),
        Transport::Family(_) | Transport::Stdio(_) => None,
    }
}

fn registered(registration: &Registration) -> RegisteredStatus {
    RegisteredStatus {
        subserver_id: registration.subserver_id.to_string(),
        principal: registration.principal.to_string(),
        authority: registration.authority.as_ref().map(|(name, _)| name.clone()),
        proven: registration.authority.as_ref().is_some_and(|(_, proven)| *proven),
        auth_scope: registration.auth_scope.as_str().to_owned(),
        heartbeat_interval_ms: u64::try_from(registration.interval.as_millis()).unwrap_or(u64::MAX),
    }
}

pub(super) fn row(tree: &Tree, shown: &str, branch: usize, place: usize, reason: String) -> Option<ToolRow> {
    let branch = tree.branches.get(branch)?;
    let offer = branch.catalog.tools.get(place)?;
    let raw = &offer.entry.raw;
    let mode = tree.config.gate.as_deref().map_or(Mode::Off, |gate| gate.mode_of(&branch.mount.config.name));
    Some(ToolRow {
        dotted: format!("{}.{}", branch.mount.config.name, offer.local),
        shown: shown.to_owned(),
        original: offer.entry.key.clone(),
        mount: branch.mount.config.name.to_string(),
        description: Members::again(raw).str("description").unwrap_or_default().into_owned(),
        bytes: raw.len(),
        // Four bytes a token is what common tokenizers come to on JSON and English.
        tokens: raw.len().div_ceil(4),
        reason,
        hops: offer.noted.as_ref().map_or(1, |noted| noted.hops()),
        availability: offer.noted.as_ref().map(|noted| noted.availability(branch.is_lost).to_owned()).unwrap_or_default(),
        latency_class: offer.noted.as_ref().map(|noted| noted.class().as_str().to_owned()).unwrap_or_default(),
        ungated_by_server: offer.noted.as_ref().is_some_and(|noted| noted.is_ungated_by_server(mode)),
    })
}
