//! The canonical message: fields of a message in no binding's form. Values stay raw JSON, borrowed from the text of the sender.
//! Facts of a hop (ids of JSON-RPC, tokens of progress) stand apart: see [`Hop`].

use crate::binding::BindingId;
use crate::raw::{QuotedText, RawJson, RawMember};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalMessage<'a> {
    pub kind: MessageKind,
    /// Skill, tool, topic or intent.
    pub op: Option<QuotedText<'a>>,
    pub id: Option<QuotedText<'a>>,
    pub conversation: Option<QuotedText<'a>>,
    pub task: Option<QuotedText<'a>>,
    pub state: Option<WorkState>,
    /// Parts of no artifact first, then those of each artifact in order.
    pub parts: Vec<CanonicalPart<'a>>,
    pub artifacts: Vec<ArtifactHead<'a>>,
    pub wants: Wants<'a>,
    pub failure: Option<Failure<'a>>,
    /// Raw numbers.
    pub progress: Option<RawJson<'a>>,
    pub total: Option<RawJson<'a>>,
    pub trail: Trail<'a>,
    pub residue: Vec<Residue<'a>>,
}

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Request,
    Response,
    /// A report on unfinished work.
    Event,
    Failure,
    Cancel,
    Probe,
}

/// States of work, those of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkState {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
    Rejected,
    AuthRequired,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalPart<'a> {
    pub content: PartContent<'a>,
    pub media_type: Option<QuotedText<'a>>,
    pub filename: Option<QuotedText<'a>>,
    /// Index into the artifacts.
    pub artifact: Option<usize>,
    pub residue: Vec<Residue<'a>>,
}

/// Forms of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartContent<'a> {
    Text(QuotedText<'a>),
    /// In base64.
    Bytes(QuotedText<'a>),
    Uri(QuotedText<'a>),
    Json(RawJson<'a>),
    /// An object of a binding, of a kind unknown here.
    Native(BindingId, RawJson<'a>),
}

/// An artifact without its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactHead<'a> {
    pub id: QuotedText<'a>,
    pub name: Option<QuotedText<'a>>,
    pub description: Option<QuotedText<'a>>,
    /// Further members, as A2A has them.
    pub rest: Vec<RawMember<'a>>,
}

/// Wishes of a caller about the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants<'a> {
    pub stream: bool,
    /// An answer before the work is over.
    pub immediate: bool,
    /// Raw array of media types.
    pub modes: Option<RawJson<'a>>,
    /// Address for news about the task.
    pub push: Option<QuotedText<'a>>,
    /// Credentials stood beside the address. None of them is kept.
    pub push_secret: bool,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    pub class: FailureClass,
    pub message: QuotedText<'a>,
    /// Raw code, and the binding of the first refusal.
    pub code: Option<(BindingId, RawJson<'a>)>,
    /// Milliseconds.
    pub retry_after: Option<u64>,
}

/// Classes of refusals, each with a reaction of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    BadRequest,
    NotFound,
    Unauthorized,
    Forbidden,
    Conflict,
    Unsupported,
    Timeout,
    RateLimited,
    Unavailable,
    Internal,
}

/// Evidence beside a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail<'a> {
    /// Execution context tokens, where the transport has no header for them.
    pub ects: Vec<QuotedText<'a>>,
    /// Id of the token before the message.
    pub parent: Option<QuotedText<'a>>,
    /// Address for the decision of a person.
    pub callback: Option<QuotedText<'a>>,
    /// Ids of the gateways that have translated the message, the first one first. A claim of the sender, and no evidence.
    pub hops: Vec<QuotedText<'a>>,
}

/// Members of a binding without an equal elsewhere, and the object around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residue<'a> {
    pub binding: BindingId,
    pub place: ResiduePlace,
    pub members: Vec<RawMember<'a>>,
}

/// Objects of a wire form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResiduePlace {
    Envelope,
    Params,
    Cancel,
    Probe,
    Meta,
    Configuration,
    Push,
    Message,
    MessageMeta,
    Result,
    Task,
    Status,
    StatusMessage,
    Update,
    Error,
    Part,
    PartMeta,
    Resource,
    Options,
    Attestations,
    Payload,
    Semantics,
}

/// Facts of a hop: read from the incoming message, and given for the outgoing one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hop<'a> {
    /// Raw id of the request, or of the answered request.
    pub id: Option<RawJson<'a>>,
    /// Raw token of reports on progress.
    pub token: Option<RawJson<'a>>,
    /// Raw id of the request to be cancelled.
    pub target: Option<RawJson<'a>>,
    /// Number of the report, for bindings that count.
    pub count: u64,
    /// MCP: the peer speaks the stateless era, and results name their type.
    pub stateless: bool,
    /// MCP: members of `_meta` about the connection alone.
    pub meta: Vec<RawMember<'a>>,
    /// µACP: the peer writes CBOR.
    pub cbor: bool,
    pub envelope: EnvelopeFacts<'a>,
}

/// AINP: facts of an envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvelopeFacts<'a> {
    /// A UUID of version 4. Given for an outgoing envelope, the id stands in where the message has none of the form.
    pub id: Option<QuotedText<'a>>,
    /// Names of sender and receiver, as `did:key` or `did:web`.
    pub from: Option<QuotedText<'a>>,
    pub to: Option<QuotedText<'a>>,
    /// Milliseconds since 1970.
    pub time: u64,
    /// Milliseconds; `None`: the default of the binding.
    pub lifetime: Option<u64>,
}

impl CanonicalMessage<'_> {
    /// Makes an empty message.
    pub fn new(kind: MessageKind) -> Self {
        Self {
            kind,
            op: None,
            id: None,
            conversation: None,
            task: None,
            state: None,
            parts: Vec::new(),
            artifacts: Vec::new(),
            wants: Wants::default(),
            failure: None,
            progress: None,
            total: None,
            trail: Trail::default(),
            residue: Vec::new(),
        }
    }
}

impl<'a> CanonicalPart<'a> {
    /// Makes a part of content alone.
    pub fn new(content: PartContent<'a>) -> Self {
        Self { content, media_type: None, filename: None, artifact: None, residue: Vec::new() }
    }

    /// Checks for content alone.
    pub(crate) fn is_plain(&self) -> bool {
        self.media_type.is_none() && self.filename.is_none() && self.artifact.is_none() && self.residue.is_empty()
    }
}

impl WorkState {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Submitted, "TASK_STATE_SUBMITTED"),
        (Self::Working, "TASK_STATE_WORKING"),
        (Self::Completed, "TASK_STATE_COMPLETED"),
        (Self::Failed, "TASK_STATE_FAILED"),
        (Self::Canceled, "TASK_STATE_CANCELED"),
        (Self::InputRequired, "TASK_STATE_INPUT_REQUIRED"),
        (Self::Rejected, "TASK_STATE_REJECTED"),
        (Self::AuthRequired, "TASK_STATE_AUTH_REQUIRED"),
    ];

    /// Name in A2A, and in the extension.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(state, _)| state)
    }

    /// Checks for an end without a result.
    pub fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Checks for work waiting for its caller.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl FailureClass {
    const ALL: [(Self, &'static str); 10] = [
        (Self::BadRequest, "bad_request"),
        (Self::NotFound, "not_found"),
        (Self::Unauthorized, "unauthorized"),
        (Self::Forbidden, "forbidden"),
        (Self::Conflict, "conflict"),
        (Self::Unsupported, "unsupported"),
        (Self::Timeout, "timeout"),
        (Self::RateLimited, "rate_limited"),
        (Self::Unavailable, "unavailable"),
        (Self::Internal, "internal"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(class, _)| *class == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(class, _)| class)
    }
}
