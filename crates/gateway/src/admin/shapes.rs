//! What the admin API and `--json` print. These shapes are documented in `docs/cli.md` and only ever grow. They hold no logic beyond sums.

use serde::{Deserialize, Serialize};

/// `GET /-/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Banyan's version.
    pub version: String,
    /// The gate's process.
    pub pid: u32,
    /// Where MCP clients connect, with `/mcp`.
    pub url: String,
    /// How long the gate has been running.
    pub uptime_seconds: u64,
    /// Every server, by name.
    pub mounts: Vec<MountRow>,
}

/// One server of the tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MountRow {
    /// The segment in front of its tools.
    pub name: String,
    /// Where it was configured.
    pub origin: String,
    /// `stdio`, `http` or `sse`.
    pub transport: String,
    /// `starting`, `ready`, `degraded` or `failed`.
    pub state: String,
    /// How long it has been in that state.
    pub for_seconds: u64,
    /// When it is tried again; absent when nothing is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_in_seconds: Option<u64>,
    /// Why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `initialize` or `stateless`; absent until known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The server's name and version as it gives them; absent until known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many tools it has.
    pub tools: usize,
    /// How many prompts it has.
    pub prompts: usize,
    /// How many resources it lists.
    pub resources: usize,
    /// How often it was started again.
    pub restarts: u64,
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

/// One tool as a client sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRow {
    /// Its qualified name.
    pub dotted: String,
    /// The name this client is shown.
    pub shown: String,
    /// The name its server gave it.
    pub original: String,
    /// The server.
    pub mount: String,
    /// What it does, in the server's words.
    pub description: String,
    /// Length of its definition.
    pub bytes: usize,
    /// About how many tokens its definition costs a model.
    pub tokens: usize,
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
}

/// Why the admin API did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What kind of reason it is.
    pub kind: RefusalKind,
    /// What is wrong and what to do next.
    pub message: String,
}

/// The kinds of reasons, as the binary's exit codes tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// It was tried and failed.
    Failed,
    /// There is nothing of that name.
    NotFound,
    /// The caller is not entitled.
    Refused,
}

/// The envelope of a refusal: `{"error": {...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The refusal.
    pub error: Refusal,
}
