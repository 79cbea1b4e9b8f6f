//! Copies of messages that borrow from nothing, for bindings whose text is no JSON. Reads and writes none.

use std::borrow::Cow;

use crate::message::{ArtifactHead, CanonicalMessage, CanonicalPart, Failure, PartContent, Residue, Trail, Wants};
use crate::raw::{QuotedText, RawJson, RawMember};

fn text(text: Option<QuotedText<'_>>) -> Option<QuotedText<'static>> {
    text.map(QuotedText::into_owned)
}

fn texts(texts: Vec<QuotedText<'_>>) -> Vec<QuotedText<'static>> {
    texts.into_iter().map(QuotedText::into_owned).collect()
}

fn raw(raw: RawJson<'_>) -> RawJson<'static> {
    Cow::Owned(raw.into_owned())
}

fn members(members: Vec<RawMember<'_>>) -> Vec<RawMember<'static>> {
    members.into_iter().map(RawMember::into_owned).collect()
}

fn residue(residue: Vec<Residue<'_>>) -> Vec<Residue<'static>> {
    residue.into_iter().map(|kept| Residue { binding: kept.binding, place: kept.place, members: members(kept.members) }).collect()
}

impl PartContent<'_> {
    /// The same content, borrowed from nothing.
    pub(crate) fn into_owned(self) -> PartContent<'static> {
        match self {
            Self::Text(text) => PartContent::Text(text.into_owned()),
            Self::Bytes(bytes) => PartContent::Bytes(bytes.into_owned()),
            Self::Uri(uri) => PartContent::Uri(uri.into_owned()),
            Self::Json(json) => PartContent::Json(raw(json)),
            Self::Native(binding, json) => PartContent::Native(binding, raw(json)),
        }
    }
}

impl CanonicalPart<'_> {
    /// The same part, borrowed from nothing.
    pub(crate) fn into_owned(self) -> CanonicalPart<'static> {
        let (media_type, filename) = (text(self.media_type), text(self.filename));
        CanonicalPart { content: self.content.into_owned(), media_type, filename, artifact: self.artifact, residue: residue(self.residue) }
    }
}

fn head(head: ArtifactHead<'_>) -> ArtifactHead<'static> {
    ArtifactHead { id: head.id.into_owned(), name: text(head.name), description: text(head.description), rest: members(head.rest) }
}

fn failure(failure: Failure<'_>) -> Failure<'static> {
    let code = failure.code.map(|(binding, code)| (binding, raw(code)));
    Failure { class: failure.class, message: failure.message.into_owned(), code, retry_after: failure.retry_after }
}

impl CanonicalMessage<'_> {
    /// The same message, borrowed from nothing.
    pub(crate) fn into_owned(self) -> CanonicalMessage<'static> {
        let Self { wants, trail, .. } = self;
        CanonicalMessage {
            kind: self.kind,
            op: text(self.op),
            id: text(self.id),
            conversation: text(self.conversation),
            task: text(self.task),
            state: self.state,
            parts: self.parts.into_iter().map(CanonicalPart::into_owned).collect(),
            artifacts: self.artifacts.into_iter().map(head).collect(),
            wants: Wants {
                stream: wants.stream,
                immediate: wants.immediate,
                modes: wants.modes.map(raw),
                push: text(wants.push),
                push_secret: wants.push_secret,
            },
            failure: self.failure.map(failure),
            progress: self.progress.map(raw),
            total: self.total.map(raw),
            trail: Trail { ects: texts(trail.ects), parent: text(trail.parent), callback: text(trail.callback), hops: texts(trail.hops) },
            residue: residue(self.residue),
        }
    }
}
