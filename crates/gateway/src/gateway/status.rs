//! Status of mounts and tools, in shapes that scripts may rely on. Does not find the status.

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

/// Status of a mount.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MountStatus {
    /// Segment of the mount.
    pub name: String,
    /// Place of the mount's configuration.
    pub origin: String,
    /// `starting`, `ready`, `degraded` or `failed`.
    pub state: String,
    /// Beginning of the state, in seconds since 1970.
    pub since: u64,
    /// Time of the next try, in seconds since 1970.
    pub next_try: Option<u64>,
    pub error: Option<String>,
    /// `initialize` or `stateless`.
    pub era: Option<String>,
    /// Negotiated revision of MCP.
    pub version: Option<String>,
    /// `stdio`, `http`, `sse`, `rooms` of what rooms offer, or `link` where its gate has dialled.
    pub transport: String,
    pub tools: usize,
    pub prompts: usize,
    /// Number of resources and templates.
    pub resources: usize,
    pub restarts: u64,
    /// Calls in flight.
    pub in_flight: usize,
    /// Remarks for people about the lists.
    pub notes: Vec<String>,
    /// Set if the server is another gate.
    #[serde(default)]
    pub gate: bool,
    /// Paths of failed servers below a server that is another gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_below: Vec<String>,
    /// Median duration of the last minute's calls, in milliseconds.
    #[serde(default)]
    pub p50_ms: Option<f64>,
    /// Address of the console, of a gate that is reached by an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Calls gated by the mount's mode: `irreversible`, `mutable` or `unlisted`. Absent: no calls, unless a rule or a gate below says
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Mode>,
    /// Registration of the server; absent for a configured mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<RegisteredStatus>,
}

/// Status of a registration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RegisteredStatus {
    /// Stable id.
    pub subserver_id: String,
    /// Name of the registering principal, in the configuration and the log.
    pub principal: String,
    /// Claimed authority, as a `dns:` name.
    pub authority: Option<String>,
    /// Set if the authority is proven.
    pub proven: bool,
    /// Highest scope of requests: `read`, `write` or `admin`.
    pub auth_scope: String,
    /// Interval of heartbeats, in milliseconds; 0: none.
    pub heartbeat_interval_ms: u64,
}

/// A tool as some client sees it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolRow {
    /// Name in the tree.
    pub dotted: String,
    /// Name for clients.
    pub shown: String,
    /// Name at the server.
    pub original: String,
    pub mount: String,
    pub description: String,
    /// Size of the definition.
    pub bytes: usize,
    /// Estimated tokens of the definition in a model's context.
    pub tokens: usize,
    /// Reason for the form of the shown name.
    pub reason: String,
    /// Gates passed by a call, this gate included.
    #[serde(default)]
    pub hops: u8,
    /// `always`, `scheduled`, `best_effort` or `degraded`.
    #[serde(default)]
    pub availability: String,
    /// Expected duration of a call: `realtime`, `fast`, `standard`, `slow` or `batch`.
    #[serde(default)]
    pub latency_class: String,
    /// Set if calls go ungated only because the server claims to do little: judged by the configuration alone, the gate's mode would ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ungated_by_server: bool,
}

impl ToolRow {
    /// Finds a tool by its dotted name, the name that clients are shown, or `SERVER.NAME` with the server's own spelling, which the record
    /// has. Two tools of one spelling are found by their other names only.
    pub fn find<'a>(tools: &'a [Self], name: &str) -> Option<&'a Self> {
        let spelt = |tool: &&Self| name.strip_prefix(&*tool.mount).and_then(|rest| rest.strip_prefix('.')) == Some(&tool.original);
        tools.iter().find(|tool| tool.dotted == name || tool.shown == name).or_else(|| {
            let mut found = tools.iter().filter(spelt);
            found.next().filter(|_| found.next().is_none())
        })
    }
}

impl Gateway {
    /// Gives the condition of the record; `None` without a record.
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
    /// Gives the status of every mount.
    pub fn status(&self) -> Vec<MountStatus> {
        let config = self.0.gate.config.load();
        self.0.gate.mounts.all.load().iter().map(|mount| status(mount, config.gate.as_deref())).collect()
    }

    /// Lists every room, configured or open, by name.
    pub fn rooms(&self) -> Vec<RoomStatus> {
        let config = self.0.gate.config.load();
        let installed = self.0.installed.iter().filter_map(|part| (&**part as &dyn Any).downcast_ref::<InstalledRooms>());
        installed.flat_map(|part| part.rooms.status(&config.rooms)).collect()
    }

    /// Gives the state of registration with parents; `None` for a gate that joins nobody.
    pub fn joined(&self) -> Option<Arc<JoinStatus>> {
        self.0.mesh.membership.status()
    }

    /// Gives the last lines of a mount's standard error; `None` for an unknown mount.
    pub fn stderr(&self, name: &str) -> Option<Vec<String>> {
        self.0.gate.mounts.find(name).map(|m| m.connections.stderr.lines())
    }

    /// Follows a mount's standard error from now on.
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
        failed_below: catalog.failed_below.clone(),
        console: if gate { console(&mount.config.transport) } else { None },
        asks: asking.map(|gate| gate.mode_of(&mount.config.name)).filter(|mode| *mode != Mode::Off),
        registered: mount.registration.as_ref().map(registered),
        p50_ms: mount.recent.median(Instant::now()).map(|took| took.as_secs_f64() * 1000.0),
    }
}

/// Collects notes for people, about a mount's lists and answers.
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
        // Common tokenizers need about four bytes a token for JSON and English.
        tokens: raw.len().div_ceil(4),
        reason,
        hops: offer.noted.as_ref().map_or(1, |noted| noted.hops()),
        availability: offer.noted.as_ref().map(|noted| noted.availability(branch.is_lost).to_owned()).unwrap_or_default(),
        latency_class: offer.noted.as_ref().map(|noted| noted.class().as_str().to_owned()).unwrap_or_default(),
        ungated_by_server: offer.noted.as_ref().is_some_and(|noted| noted.is_ungated_by_server(mode)),
    })
}
