//! Messages inside an envelope, with the numbers of the package `axcp.v0_1`, and ours from 1000 up. Judges no content.
//!
//! Older peers skip numbers from 1000 up as unknown fields. Capabilities, routes and telemetry stay bytes here: [`crate::capability`] and
//! [`crate::telemetry`] read theirs, and no part of the crate decides about routes yet.

use bytes::Bytes;

/// Field of the signature in an envelope.
pub(crate) const SIGNATURE: u32 = 100;
/// Field of the evidence in an envelope.
pub(crate) const ATTESTATION: u32 = 101;

/// An envelope to be written. Received ones are read by [`crate::envelope::ReceivedEnvelope`], to keep the bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AxcpEnvelope {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    #[prost(string, tag = "2")]
    pub trace_id: String,
    #[prost(uint32, tag = "3")]
    pub profile: u32,
    #[prost(oneof = "EnvelopePayload", tags = "4, 5, 6, 7, 8, 9, 10, 11, 1000, 1001, 1002, 1003, 1005, 1006, 1009")]
    pub payload: Option<EnvelopePayload>,
    #[prost(bytes = "bytes", tag = "100")]
    pub signature: Bytes,
    #[prost(bytes = "bytes", tag = "101")]
    pub attestation_proof: Bytes,
}

/// Content of an envelope.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum EnvelopePayload {
    #[prost(message, tag = "4")]
    ContextPatch(ContextPatch),
    /// A capability message, as received.
    #[prost(bytes = "bytes", tag = "5")]
    Capability(Bytes),
    /// A route policy, as received.
    #[prost(bytes = "bytes", tag = "6")]
    Route(Bytes),
    #[prost(message, tag = "7")]
    Error(ErrorMessage),
    #[prost(message, tag = "8")]
    ProfileNegotiate(ProfileNegotiate),
    #[prost(message, tag = "9")]
    ProfileAck(ProfileAck),
    #[prost(message, tag = "10")]
    Retry(RetryEnvelope),
    /// Telemetry, as received.
    #[prost(bytes = "bytes", tag = "11")]
    Telemetry(Bytes),
    #[prost(message, tag = "1000")]
    SyncSubscribe(SyncSubscribe),
    #[prost(message, tag = "1001")]
    SyncRequest(SyncRequest),
    #[prost(message, tag = "1002")]
    ContextInvalidation(ContextInvalidation),
    #[prost(message, tag = "1003")]
    ProfileDowngrade(ProfileDowngrade),
    #[prost(message, tag = "1005")]
    ToolInvoke(ToolInvoke),
    #[prost(message, tag = "1006")]
    ToolResult(ToolResult),
    #[prost(message, tag = "1009")]
    ToolCancel(ToolCancel),
}

/// Effect of an operation on the value at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DeltaKind {
    Add = 0,
    Replace = 1,
    Remove = 2,
    Merge = 3,
}

/// A change of a single value in a context.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeltaOp {
    #[prost(enumeration = "DeltaKind", tag = "1")]
    pub op: i32,
    /// A JSON Pointer (RFC 6901).
    #[prost(string, tag = "2")]
    pub path: String,
    /// JSON text, perhaps packed by gzip.
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
    /// Microseconds of the author's clock.
    #[prost(uint64, tag = "4")]
    pub ts: u64,
    /// Author of a relayed operation; empty: the peer of the connection.
    #[prost(string, tag = "1000")]
    pub node_id: String,
}

/// Changes of a context, in order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContextPatch {
    #[prost(string, tag = "1")]
    pub context_id: String,
    /// Version of the sender before the first operation; each operation makes the next.
    #[prost(uint64, tag = "2")]
    pub base_version: u64,
    #[prost(message, repeated, tag = "3")]
    pub ops: Vec<DeltaOp>,
    /// Version of the sender after the patch, or after the snapshot of which the patch is a part, where the operations are not the versions in
    /// between; 0: each operation makes one.
    #[prost(uint64, tag = "1000")]
    pub new_version: u64,
    /// More patches follow before the version is reached: no version is known by the patch alone.
    #[prost(bool, tag = "1001")]
    pub is_part: bool,
    /// Number of a patch among those of a snapshot, from 1 up and with the last; 0: the sender does not number them.
    #[prost(uint64, tag = "1002")]
    pub part: u64,
    /// Epoch of the sender's versions; 0: not told.
    #[prost(uint64, tag = "1003")]
    pub epoch: u64,
}

/// A version of a context at its sender.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContextGraphVersion {
    #[prost(string, tag = "1")]
    pub context_id: String,
    #[prost(uint64, tag = "2")]
    pub version: u64,
    /// Epoch of the versions, drawn anew by a node that begins at version 1 again; 0: not known.
    #[prost(uint64, tag = "1000")]
    pub epoch: u64,
}

/// Wish for all patches after a version. The filters of 6.3 have no numbers in the specification.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SyncSubscribe {
    #[prost(message, optional, tag = "1")]
    pub from: Option<ContextGraphVersion>,
    /// Beginnings of paths, as JSON Pointers; none: every path.
    #[prost(string, repeated, tag = "1000")]
    pub prefixes: Vec<String>,
    /// Names among the parts of a path; none: every path.
    #[prost(string, repeated, tag = "1001")]
    pub tags: Vec<String>,
    /// Lower bound of the time of an operation, in microseconds; 0: every time.
    #[prost(uint64, tag = "1002")]
    pub after_ts: u64,
}

/// Wish for the patches of a gap.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SyncRequest {
    #[prost(message, optional, tag = "1")]
    pub missing_from: Option<ContextGraphVersion>,
    #[prost(uint64, tag = "2")]
    pub to_version: u64,
}

/// News of values below a path that were revoked or have expired.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContextInvalidation {
    #[prost(string, tag = "1")]
    pub context_id: String,
    #[prost(string, tag = "2")]
    pub path: String,
    /// Text for people.
    #[prost(string, tag = "3")]
    pub reason: String,
    #[prost(uint64, tag = "4")]
    pub ts: u64,
    #[prost(string, tag = "5")]
    pub node_id: String,
}

/// Patches kept for a peer until its return.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryEnvelope {
    #[prost(message, repeated, tag = "1")]
    pub buffered_patches: Vec<ContextPatch>,
    /// Milliseconds left at the time of sending.
    #[prost(uint32, tag = "2")]
    pub ttl_ms: u32,
}

/// Profiles of a node, sent first on a connection.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ProfileNegotiate {
    /// Bit 0 stands for profile 0, bit 3 for profile 3.
    #[prost(uint32, tag = "1")]
    pub supported_mask: u32,
    #[prost(uint32, tag = "2")]
    pub min_required: u32,
}

/// Profile of the session, as its sender computed.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ProfileAck {
    #[prost(uint32, tag = "1")]
    pub agreed_profile: u32,
}

/// Wish for a lower profile, answered with a [`ProfileAck`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProfileDowngrade {
    #[prost(uint32, tag = "1")]
    pub new_profile: u32,
    /// Text for people.
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// A refusal, with a code of [`crate::error::ErrorCode`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ErrorMessage {
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// Text for people.
    #[prost(string, tag = "2")]
    pub reason: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub diagnostics: Bytes,
}

/// Wish to call a tool.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolInvoke {
    #[prost(string, tag = "1")]
    pub tool_id: String,
    /// A JSON object; nothing stands for an empty one.
    #[prost(bytes = "bytes", tag = "2")]
    pub arguments: Bytes,
    /// Longest time of the call, approval included; 0: as long as the callee allows.
    #[prost(uint32, tag = "3")]
    pub timeout_ms: u32,
    /// Key under which a repeated call runs once; empty: each call runs.
    #[prost(string, tag = "4")]
    pub idempotency_key: String,
}

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ToolOutcome {
    /// The tool has answered: the last word about the call.
    Done = 0,
    /// The call waits for people. Another word follows.
    Waiting = 1,
}

/// Answer to a call, or news of it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolResult {
    #[prost(enumeration = "ToolOutcome", tag = "1")]
    pub outcome: i32,
    /// A JSON object: the result of MCP, as the tool gave it.
    #[prost(bytes = "bytes", tag = "2")]
    pub result: Bytes,
    /// Text for people.
    #[prost(string, tag = "3")]
    pub words: String,
}

/// News that nobody waits for a call any more.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolCancel {
    /// Text for people.
    #[prost(string, tag = "1")]
    pub reason: String,
}
