//! A call and how it ended. Does not know JSON-RPC codes: `gateway/src/call/error.rs` maps faults to them.

use bytes::Bytes;

/// The era of MCP that a peer speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Era {
    /// Revisions up to 2025-11-25: a handshake, sessions, requests in both directions.
    Initialize,
    /// Revision 2026-07-28: every request stands alone, the server asks by `input_required`.
    Stateless,
}

/// Requests of callers that can reach a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// `completion/complete`, by `ref.name` or `ref.uri`.
    Complete,
    /// `mcpax/confirm`, for a call that a gate below holds.
    Confirm,
    /// `logging/setLevel`, for each server that logs.
    LogLevel,
    /// `prompts/get`, by `name`.
    PromptGet,
    /// `resources/read`, by `uri`.
    ResourceRead,
    /// `resources/subscribe`, `resources/unsubscribe`, and what `subscriptions/listen` asks of one server.
    Subscribe,
    /// `tasks/*`, by `taskId`.
    Task,
    /// `tasks/list`, for each server that runs tasks.
    TaskList,
    /// `tools/call`, by `name`.
    ToolCall,
    /// `mcpax/trace`, by `name`.
    Trace,
    /// A method unknown to Banyan.
    Unknown,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 11] = [
        Self::Complete,
        Self::Confirm,
        Self::LogLevel,
        Self::PromptGet,
        Self::ResourceRead,
        Self::Subscribe,
        Self::Task,
        Self::TaskList,
        Self::ToolCall,
        Self::Trace,
        Self::Unknown,
    ];
}

/// A request on its way to one upstream.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// The raw `params` object as the caller wrote it.
    pub params: Bytes,
}

/// The end of a call, as the owner reported it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The raw bytes of `error`.
    Error(Bytes),
    /// The raw bytes of `result`.
    Result(Bytes),
}

/// The party at fault for a failed call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FaultSource {
    /// The caller sent a request that can't be carried out.
    Downstream,
    Internal,
    /// The server behind failed.
    Upstream,
}

/// A failed call as described outside and inside.
#[derive(Clone, Debug)]
pub struct Fault {
    pub source: FaultSource,
    /// The same call may be tried again unchanged.
    pub retry: bool,
}
