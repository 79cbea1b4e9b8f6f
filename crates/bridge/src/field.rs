//! Names of the fields of a canonical message, and their places in each binding. Holds no value.

use crate::binding::BindingId;
use crate::message::MessageKind;

/// A field of a canonical message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanonicalField {
    Op,
    Id,
    Conversation,
    Task,
    State,
    Stream,
    Immediate,
    Modes,
    Push,
    PushSecret,
    Progress,
    Total,
    Ects,
    Parent,
    Callback,
    Hops,
    Embedding,
    Artifacts,
    Parts,
    Class,
    Code,
    RetryAfter,
    Residue,
    Kind,
}

impl CanonicalField {
    /// Member of the extension.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Id => "id",
            Self::Conversation => "conversation",
            Self::Task => "task",
            Self::State => "state",
            Self::Stream => "stream",
            Self::Immediate => "immediate",
            Self::Modes => "modes",
            Self::Push => "push",
            Self::PushSecret => "push_secret",
            Self::Progress => "progress",
            Self::Total => "total",
            Self::Ects => "ects",
            Self::Parent => "parent",
            Self::Callback => "callback",
            Self::Hops => "hops",
            Self::Embedding => "embedding",
            Self::Artifacts => "artifacts",
            Self::Parts => "parts",
            Self::Class => "class",
            Self::Code => "code",
            Self::RetryAfter => "retry_after",
            Self::Residue => "residue",
            Self::Kind => "kind",
        }
    }

    /// JSON pointer to the field in a message of `source`, where the binding has a place of its own; the name of the field elsewhere.
    pub(crate) fn pointer(self, source: BindingId, kind: MessageKind) -> &'static str {
        match (source, kind, self) {
            (BindingId::A2a | BindingId::Mcp, _, Self::Kind) => "/method",
            (BindingId::A2a, MessageKind::Request, Self::Stream) => "/method",
            (BindingId::A2a, MessageKind::Request, Self::Id) => "/params/message/messageId",
            (BindingId::A2a, MessageKind::Request, Self::Conversation) => "/params/message/contextId",
            (BindingId::A2a, MessageKind::Request, Self::Task) => "/params/message/taskId",
            (BindingId::A2a, MessageKind::Request, Self::Parts) => "/params/message/parts",
            (BindingId::A2a, MessageKind::Request, Self::Modes) => "/params/configuration/acceptedOutputModes",
            (BindingId::A2a, MessageKind::Request, Self::Immediate) => "/params/configuration/returnImmediately",
            (BindingId::A2a, MessageKind::Request, Self::Push | Self::PushSecret) => "/params/configuration/taskPushNotificationConfig",
            (BindingId::A2a, MessageKind::Response, Self::State) => "/result/task/status/state",
            (BindingId::A2a, MessageKind::Response, Self::Artifacts) => "/result/task/artifacts",
            (BindingId::A2a, MessageKind::Event, Self::State) => "/result/statusUpdate/status/state",
            (BindingId::A2a | BindingId::Mcp, MessageKind::Failure, Self::Class | Self::Code) => "/error/code",
            (BindingId::Ainp, _, Self::Kind) => "/msg_type",
            (BindingId::Ainp, _, Self::Id) => "/id",
            (BindingId::Ainp, _, Self::Conversation) => "/trace_id",
            (BindingId::Ainp, MessageKind::Request, Self::Op) => "/payload/@type",
            (BindingId::Ainp, MessageKind::Request, Self::Parts) => "/payload/semantics",
            (BindingId::Ainp, MessageKind::Response | MessageKind::Event, Self::Parts) => "/payload/result",
            (BindingId::Ainp, MessageKind::Response, Self::State) => "/payload/status",
            (BindingId::Ainp, MessageKind::Failure, Self::Class | Self::Code) => "/payload/error_code",
            (BindingId::Mcp, MessageKind::Request, Self::Op) => "/params/name",
            (BindingId::Mcp, MessageKind::Request, Self::Parts) => "/params/arguments",
            (BindingId::Mcp, MessageKind::Request, Self::Stream) => "/params/_meta/progressToken",
            (BindingId::Mcp, MessageKind::Response, Self::Parts) => "/result/content",
            (BindingId::Mcp, MessageKind::Event, Self::Progress) => "/params/progress",
            (BindingId::Mcp, MessageKind::Event, Self::Total) => "/params/total",
            (_, _, field) => field.name(),
        }
    }
}
