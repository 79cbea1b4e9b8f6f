//! What the admin API and `--json` print. These shapes are documented in `docs/cli.md` and only ever grow. They hold no logic beyond sums.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use crate::admin::rules::{Guessed, Replayed, ReplayedRow};
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
    /// By what name whoever asks is known; absent for whoever runs the gate, and with it whatever else only that one is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub you: Option<String>,
    /// Banyan's version.
    pub version: String,
    /// The gate's process.
    pub pid: u32,
    /// Where MCP clients connect, with `/mcp`; empty for a gate that does not listen.
    pub url: String,
    /// What it serves: a configuration's path, or where the servers were found.
    pub serves: String,
    /// How long the gate has been running.
    pub uptime_seconds: u64,
    /// Sessions of the initialize era that stand open.
    pub sessions: usize,
    /// With whom the gate is registered; absent where it joins nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JoinStatus>,
    /// The configuration that was read last, where it was refused; absent where it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_force: Option<NotInForce>,
    /// The record; absent where none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStatus>,
    /// What callers have spent of their budgets; absent where nobody has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetStatus>,
    /// Every room that is configured or open; told to the owner only, and absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooms: Vec<RoomStatus>,
    /// Every server, by name.
    pub mounts: Vec<MountStatus>,
}

/// How it stands with the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditStatus {
    /// Its directory; absent until something was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Why nothing can be recorded at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    /// Records that could not be written since the gate began.
    pub unrecorded: u64,
    /// A part of it that is not what was written; absent where none was found at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenRecord>,
    /// Set while calls are refused because the record is full and nothing in it is old enough to be taken away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Principals whose calls are refused because the record holds their share, and nothing of it is old enough to be taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_share: Vec<OverRecord>,
    /// Entries that were taken away since the gate began, as the bounds of the record say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: u64,
}

/// Principal whose entries take more than its share of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverRecord {
    /// Its name.
    pub principal: String,
    /// Bytes of its entries that may not be taken away yet.
    pub bytes: u64,
    /// Time at which its calls are made again, in seconds since 1970.
    pub until: u64,
}

/// A part of the record that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenRecord {
    /// Its directory, below that of the record.
    pub chain: String,
    /// When that was found, in seconds since 1970.
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
    /// The entries that are meant, the newest first.
    pub entries: Vec<AuditEntry>,
}

/// One entry of the record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AuditEntry {
    /// In which chain of the record.
    pub chain: u32,
    /// Its place there.
    pub seq: u64,
    /// When it was written, in microseconds since 1970; 0 where it can't be read.
    pub time: u64,
    /// What kind of entry it is.
    pub event: String,
    /// The call that it is about: all entries of a call share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The approval, or the grant, that it is about or by which the call goes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// For whom; of a decision, who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The dotted name of what was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The trace that it belongs to, over all gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// How it ended, or was decided; of a change, what it is a change of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of a change: what differs, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Number of refusals that the entry counts, where that is more than one; the other members describe the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How long it took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
    /// The line of the record, as it is; absent where it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Box<serde_json::value::RawValue>>,
}

/// `GET /-/audit/entry`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditProof {
    /// The entry.
    pub entry: AuditEntry,
    /// Its line, byte for byte: what is hashed.
    pub text: String,
    /// The hashes beside its way to the root, in base64.
    pub hashes: Vec<String>,
    /// The proof with the signed checkpoint, as C2SP tlog-proof has it.
    pub proof: String,
    /// The public key that signed, as C2SP signed-note has it.
    pub key: String,
}

/// `GET /-/audit/checkpoint`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditCheckpoint {
    /// Which chain is written.
    pub chain: u32,
    /// The public key that signs it.
    pub key: String,
    /// Its last signed checkpoint.
    pub checkpoint: String,
    /// How it stands with the record.
    #[serde(flatten)]
    pub status: AuditStatus,
}

/// `GET /-/tools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    /// The client this is shown to; absent for one that nothing is known of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Every tool, by dotted name.
    pub tools: Vec<ToolRow>,
}

/// `GET /-/decisions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The last decisions of the rules but those that simply allowed, the newest first; with `id`, the one of that id.
    pub decisions: Vec<DecisionRow>,
}

/// `GET /-/policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The file they were read from; absent where there are none, and everybody may do whatever is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// SHA-256 of its text, in hexadecimal: the version of the policy, wherever one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The rules, as they stand in the file.
    pub rules: Vec<RuleRow>,
}

/// One rule of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRow {
    /// Its name, or `line N`.
    pub id: String,
    /// The line of the file where it begins.
    pub line: usize,
    /// `permit` or `forbid`.
    pub effect: String,
    /// Whether somebody has to agree first.
    pub gate: bool,
    /// Whether it is only tried: what it would do is told, and not done.
    pub shadow: bool,
    /// For people.
    pub description: Option<String>,
    /// What whoever is refused can do.
    pub remedy: Option<String>,
    /// With which scope a caller would come through.
    pub scope: Option<String>,
    /// Its text.
    pub text: String,
    /// How many of the decisions that are remembered it made. What is simply allowed is not.
    pub made: usize,
    /// How many of them would be other if it were in force; of rules in shadow mode.
    pub would: usize,
}

/// `GET /-/refused`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// The last registrations that were refused, the newest first.
    pub refused: Vec<RefusedRegistration>,
}

/// One line of `GET /-/logs/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The server.
    pub server: String,
    /// What it wrote on its standard error, without the line end.
    pub line: String,
}

/// The body of `POST /-/call`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallRequest {
    /// The tool's dotted name, or the name that a client is shown.
    pub tool: String,
    /// Its arguments, a JSON object.
    pub arguments: Box<serde_json::value::RawValue>,
    /// Whether the answer is the whole JSON-RPC response, errors included, in place of the `result` or a refusal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Set if the answer may wait until somebody has agreed to the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// `GET /-/tools/NAME`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// What `/-/tools` says of it.
    pub tool: ToolRow,
    /// Its definition as its server wrote it, with what MCP-AX says of it in `_meta`.
    pub definition: Box<serde_json::value::RawValue>,
}

/// `GET /-/below`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// Every segment between a server that is a gate and its tools, parents before what is below them.
    pub nodes: Vec<BelowNode>,
}

/// Something below a gate below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BelowNode {
    /// Its place in the tree, with dots.
    pub path: String,
    /// How many tools are below it.
    pub tools: usize,
    /// How many gates a call of the farthest of them passes, this one included.
    pub hops: u8,
    /// Whether none of its tools is there at present.
    pub degraded: bool,
}

/// `POST /-/restart/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// The server.
    pub restarting: String,
}

/// A `change` of `GET /-/events`: what is other than it was told last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Servers that are new or other.
    pub mounts: Vec<MountStatus>,
    /// Servers that are there no more.
    pub gone: Vec<String>,
    /// Whether some list of tools, prompts or resources may be another.
    pub lists: bool,
    /// Sessions of the initialize era that stand open.
    pub sessions: usize,
    /// With whom the gate is registered; absent where it joins nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JoinStatus>,
    /// The configuration that was read last, where it was refused; absent where it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_force: Option<NotInForce>,
    /// The record; absent where none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStatus>,
    /// What callers have spent of their budgets, where that is other than it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<BudgetStatus>>,
}

/// `POST /-/console/code`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLink {
    /// Opens the console and signs in, once.
    pub url: String,
    /// For how many seconds it does.
    pub expires_in: u64,
}

/// Does not show the code.
impl std::fmt::Debug for ConsoleLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleLink").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// The body of `POST /-/console/session`.
#[derive(Deserialize)]
pub(crate) struct ConsoleCode {
    /// What stood in the link.
    pub(crate) code: String,
}

/// `POST /-/console/session`.
#[derive(Serialize)]
pub(crate) struct ConsoleOpened {
    /// The page's half of the session, for the field `banyan-console` of each request; the cookie is the other.
    pub(crate) proof: String,
    /// For how many seconds it is good.
    pub(crate) expires_in: u64,
}

/// `GET /-/console/session`.
#[derive(Serialize)]
pub(crate) struct ConsoleSession {
    /// Whether the page that asks is signed in.
    pub(crate) signed_in: bool,
    /// For how many seconds it still is.
    pub(crate) expires_in: Option<u64>,
    /// Whether calls of clients take a bearer token.
    pub(crate) wants_token: bool,
}

/// The body of `POST /-/trace`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// The tool's dotted name, or the name that a client is shown.
    pub tool: String,
}

/// `POST /-/trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The tool's dotted name.
    pub tool: String,
    /// The steps to its server, the nearest first.
    pub hops: Vec<Hop>,
}

/// One step of the way to a tool: a mount of the gate before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// The mount.
    pub mount: String,
    /// Whether it is another gate.
    pub gate: bool,
    /// `stdio`, `http`, `sse`, or `link` where its gate has dialled.
    pub transport: String,
    /// `initialize` or `stateless`.
    pub era: Option<String>,
    /// How long its answer took, with all steps after it, in milliseconds.
    pub ms: f64,
    /// Why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The raw `result` of a call, as its owner wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called(pub Bytes);

/// `POST /-/reload`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// One line a difference; empty when nothing differs.
    pub changes: Vec<String>,
}
