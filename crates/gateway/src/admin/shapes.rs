//! Shapes printed by the admin API and `--json`. Documented in `docs/cli.md`, and only ever extended. Holds no logic beyond sums.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use crate::admin::offers::{Offers, PromptRow, ResourceRow};
pub use crate::admin::overview::{Overview, TrafficCall, TrafficName, TrafficStep};
pub use crate::admin::rules::{GuessingRule, ReplayReport, ReplayedRow};
pub use crate::gateway::{MountStatus, NotInForce, RegisteredStatus, ToolRow};
pub use call::judge::approvals::{ApprovalShown, ApprovalsShown, BelowShown, GrantShown, OperatorShown, Previous};
pub use call::judge::pins::{Difference, PinShown, PinsShown};
pub use call::judge::policy::{BudgetStatus, DecidedRule, DecidedShadow, DecisionRow};
pub use call::words::refusal::{ErrorBody, Refusal, RefusalKind};
pub use mesh::child::{JoinStatus, ParentStatus};
pub use mesh::registry::RefusedRegistration;
pub use room::{ParticipantStatus, RoomStatus};

/// `GET /-/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the asking caller; absent for the owner, whose extra members are then absent too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub you: Option<String>,
    pub version: String,
    pub pid: u32,
    /// Address for MCP clients, with `/mcp`; empty for a gate that does not listen.
    pub url: String,
    /// Path of the configuration, or the source of the servers.
    pub serves: String,
    pub uptime_seconds: u64,
    /// Open sessions of the initialize era.
    pub sessions: usize,
    /// Parents of the gate; absent for a gate that joins nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JoinStatus>,
    /// Refused configuration that was read last; absent while the last is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_force: Option<NotInForce>,
    /// Absent where no record is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStatus>,
    /// Spending of callers; absent before the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetStatus>,
    /// Rooms, configured or open; for the owner only, and absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooms: Vec<RoomStatus>,
    /// Every server, by name.
    pub mounts: Vec<MountStatus>,
}

/// Condition of the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditStatus {
    /// Absent until the first entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Reason why nothing can be recorded at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    /// Records lost since the gate began.
    pub unrecorded: u64,
    /// First damage found at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenRecord>,
    /// Set while calls are refused because the record is full and no entry is old enough to be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Principals whose calls are refused because their share of the record is used up, and none of their entries is old enough to be
    /// removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_share: Vec<OverRecord>,
    /// Entries removed since the gate began, by the bounds of the record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: u64,
}

/// A principal whose entries exceed a fair share of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverRecord {
    pub principal: String,
    /// Bytes of entries too young to be removed.
    pub bytes: u64,
    /// Time at which calls are allowed again, in seconds since 1970.
    pub until: u64,
}

/// A damaged part of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenRecord {
    /// Directory of the chain, below that of the record.
    pub chain: String,
    /// Time of the finding, in seconds since 1970.
    pub since: u64,
    /// Reason, for people.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// `GET /-/audit`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditFound {
    /// Matching entries, the newest first.
    pub entries: Vec<AuditEntry>,
}

/// An entry of the record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AuditEntry {
    pub chain: u32,
    /// Position in the chain.
    pub seq: u64,
    /// Time of writing, in microseconds since 1970; 0 where unreadable.
    pub time: u64,
    /// Kind of the entry.
    pub event: String,
    /// Id of the call, shared by all entries of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Id of the approval or grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The caller; of a decision, the deciding operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Dotted name of the called tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Id of the trace, across all gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Outcome or decision; of a change, the changed subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Differences made by a change, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Number of refusals summed up by the entry, where more than one; the other members describe the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Duration, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
    /// The raw line of the record; absent where the line is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Box<serde_json::value::RawValue>>,
}

/// `GET /-/audit/entry`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditProof {
    pub entry: AuditEntry,
    /// The line, byte for byte, as hashed.
    pub text: String,
    /// Sibling hashes from the entry to the root, in base64.
    pub hashes: Vec<String>,
    /// The proof with the signed checkpoint (C2SP tlog-proof).
    pub proof: String,
    /// The signer's public key (C2SP signed-note).
    pub key: String,
}

/// `GET /-/audit/checkpoint`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditCheckpoint {
    /// Chain being written.
    pub chain: u32,
    /// Public key that signs the chain.
    pub key: String,
    /// The last signed checkpoint.
    pub checkpoint: String,
    #[serde(flatten)]
    pub status: AuditStatus,
}

/// `GET /-/tools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    /// Name of the client whose view is shown; absent for an unknown client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Every tool, by dotted name.
    pub tools: Vec<ToolRow>,
}

/// `GET /-/decisions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The last decisions other than plain permits, the newest first; with `id`, only the decision of that id.
    pub decisions: Vec<DecisionRow>,
}

/// `GET /-/policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// File of the rules; absent without rules, when everybody may do whatever is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// SHA-256 of the file, in hexadecimal: the version of the policy, wherever a version is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Rules, in the order of the file.
    pub rules: Vec<RuleRow>,
}

/// A rule of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRow {
    /// The rule's id, or `line N`.
    pub id: String,
    /// Line of the file where the rule begins.
    pub line: usize,
    /// `permit` or `forbid`.
    pub effect: String,
    /// Set for a rule that gates: somebody has to agree first.
    pub gate: bool,
    /// Set for a rule in shadow mode: effects are told, and not applied.
    pub shadow: bool,
    pub description: Option<String>,
    /// Advice to a refused caller.
    pub remedy: Option<String>,
    /// Scope with which a caller would come through.
    pub scope: Option<String>,
    pub text: String,
    /// Remembered decisions made by the rule. Plain permits are not remembered.
    pub made: usize,
    /// Remembered decisions that a rule in shadow mode would have changed.
    pub would: usize,
}

/// `GET /-/refused`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusedRegistrations {
    /// The last refused registrations, the newest first.
    pub refused: Vec<RefusedRegistration>,
}

/// A line of `GET /-/logs/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    pub server: String,
    /// A line of standard error, without the line end.
    pub line: String,
}

/// The body of `POST /-/call`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallRequest {
    /// Dotted name of the tool, or the name shown to a client.
    pub tool: String,
    /// A JSON object.
    pub arguments: Box<serde_json::value::RawValue>,
    /// Set for an answer of the whole JSON-RPC response, errors included, in place of the `result` or a refusal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Set if the answer may wait for somebody to agree to the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// `GET /-/tools/NAME`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The row of `/-/tools`.
    pub tool: ToolRow,
    /// The definition as the server wrote it, with the MCP-AX annotations in `_meta`.
    pub definition: Box<serde_json::value::RawValue>,
}

/// `GET /-/below`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// Segments between a server that is a gate and its tools, parents before children.
    pub nodes: Vec<BelowNode>,
}

/// A segment below a lower gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BelowNode {
    /// Dotted place in the tree.
    pub path: String,
    /// Number of tools below.
    pub tools: usize,
    /// Gates passed by a call of the farthest tool, this gate included.
    pub hops: u8,
    /// Set while none of the tools is available.
    pub degraded: bool,
    /// Set of a server without a connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// `POST /-/restart/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartReply {
    /// Name of the server.
    pub restarting: String,
}

/// `POST /-/release/SEGMENT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseReply {
    /// The segment that is free now.
    pub released: String,
}

/// A `change` of `GET /-/events`: differences from the last event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// New or changed servers.
    pub mounts: Vec<MountStatus>,
    /// Names of removed servers.
    pub gone: Vec<String>,
    /// Set if a list of tools, prompts or resources may have changed.
    pub lists: bool,
    /// Open sessions of the initialize era.
    pub sessions: usize,
    /// Parents of the gate; absent for a gate that joins nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JoinStatus>,
    /// Refused configuration that was read last; absent while the last is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_force: Option<NotInForce>,
    /// Absent where no record is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStatus>,
    /// Spending of callers, if changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<BudgetStatus>>,
}

/// `POST /-/console/code`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLink {
    /// Opens the console and signs in, once.
    pub url: String,
    /// Lifetime of the link, in seconds.
    pub expires_in: u64,
}

/// Hides the code.
impl std::fmt::Debug for ConsoleLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleLink").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// The body of `POST /-/console/session`.
#[derive(Deserialize)]
pub(crate) struct ConsoleCode {
    /// Code of the link.
    pub(crate) code: String,
}

/// `POST /-/console/session`.
#[derive(Serialize)]
pub(crate) struct ConsoleOpened {
    /// The page's half of the session, sent in the field `banyan-console` of each request; the cookie is the other half.
    pub(crate) proof: String,
    /// Lifetime of the session, in seconds.
    pub(crate) expires_in: u64,
}

/// `GET /-/console/session`.
#[derive(Serialize)]
pub(crate) struct ConsoleSession {
    pub(crate) signed_in: bool,
    /// Rest of the session, in seconds.
    pub(crate) expires_in: Option<u64>,
    /// Set if calls of clients need a bearer token.
    pub(crate) wants_token: bool,
}

/// The body of `POST /-/trace`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// Dotted name of the tool, or the name shown to a client.
    pub tool: String,
}

/// `POST /-/trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Dotted name.
    pub tool: String,
    /// Steps to the tool's server, the nearest first.
    pub hops: Vec<Hop>,
}

/// A step on the way to a tool: a mount of the gate before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Name of the mount.
    pub mount: String,
    /// Set if the mount is another gate.
    pub gate: bool,
    /// `stdio`, `http`, `sse`, or `link` for a gate that has dialled.
    pub transport: String,
    /// `initialize` or `stateless`.
    pub era: Option<String>,
    /// Milliseconds until the answer, all further steps included.
    pub ms: f64,
    /// Reason of a missing answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The raw `result` of a call, as the owner of the tool wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult(pub Bytes);

/// `POST /-/reload`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReply {
    /// A line a difference; empty when nothing differs.
    pub changes: Vec<String>,
}
