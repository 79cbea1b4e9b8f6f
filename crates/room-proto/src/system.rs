//! What a gateway says itself in a room: welcome, presence, errors (MCPx v0.1, 3.4 and 3.5). When it says what is not decided here.

use std::time::SystemTime;

use banyan_model::Timestamp;
use bytes::Bytes;
use json::push_quoted;

use crate::capability::Capabilities;
use crate::envelope::PROTOCOL;
use crate::name::{GATEWAY, ParticipantId};
use crate::refusal::Refusal;

/// Somebody in the room, as others are told of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Present<'a> {
    pub(crate) id: &'a ParticipantId,
    pub(crate) capabilities: &'a Capabilities,
}

/// Writes envelopes of one room. No two have one id.
#[derive(Debug)]
pub(crate) struct System {
    /// In front of every id: as unique as the seed that the driver gave.
    prefix: String,
    written: u64,
}

/// An envelope that is being written.
struct Draft(Vec<u8>);

impl System {
    pub(crate) fn new(seed: u128) -> Self {
        Self { prefix: format!("{seed:032x}"), written: 0 }
    }

    /// To one who joined, or whose capabilities changed. `others` leaves `you` out; `more` are further members, which v0.1 does not know.
    pub(crate) fn welcome<'a>(&mut self, at: SystemTime, you: Present<'_>, others: impl Iterator<Item = Present<'a>>, more: &str) -> Bytes {
        let mut draft = self.draft(at, "system/welcome", Some(you.id), None);
        draft.raw("\"you\":").participant(you).raw(",\"participants\":[");
        for (place, other) in others.enumerate() {
            draft.raw(if place == 0 { "" } else { "," }).participant(other);
        }
        draft.raw("]").raw(more);
        draft.end()
    }

    /// To everybody: one has joined, or has connected anew.
    pub(crate) fn joined(&mut self, at: SystemTime, who: Present<'_>) -> Bytes {
        let mut draft = self.draft(at, "system/presence", None, None);
        draft.raw("\"event\":\"join\",\"participant\":").participant(who);
        draft.end()
    }

    /// To everybody: one is not there any more.
    pub(crate) fn left(&mut self, at: SystemTime, who: &ParticipantId) -> Bytes {
        let mut draft = self.draft(at, "system/presence", None, None);
        draft.raw("\"event\":\"leave\",\"participant\":{\"id\":").text(who.as_str()).raw("}");
        draft.end()
    }

    /// To whoever sent what was refused. `id` is that of the message, where it could be read.
    pub(crate) fn error(&mut self, at: SystemTime, to: Present<'_>, id: Option<&str>, why: &Refusal) -> Bytes {
        let mut draft = self.draft(at, "system/error", Some(to.id), id);
        draft.raw("\"error\":").text(why.code()).raw(",\"message\":").text(&why.to_string());
        if let Some(kind) = why.attempted_kind() {
            draft.raw(",\"attempted_kind\":").text(kind).raw(",\"your_capabilities\":").capabilities(to.capabilities);
        }
        if let Some(wait) = why.retry_after() {
            draft.raw(&format!(",\"retry_after_ms\":{}", wait.as_micros().div_ceil(1000)));
        }
        draft.end()
    }

    fn draft(&mut self, at: SystemTime, kind: &str, to: Option<&ParticipantId>, correlation_id: Option<&str>) -> Draft {
        self.written += 1;
        let mut draft = Draft(Vec::with_capacity(400));
        draft.raw(&format!(r#"{{"protocol":"{PROTOCOL}","id":"{}-{}","ts":"{}","#, self.prefix, self.written, Timestamp(at)));
        draft.raw(&format!(r#""from":"{GATEWAY}","kind":"{kind}""#));
        if let Some(to) = to {
            draft.raw(",\"to\":[").text(to.as_str()).raw("]");
        }
        if let Some(id) = correlation_id {
            draft.raw(",\"correlation_id\":").text(id);
        }
        draft.raw(",\"payload\":{");
        draft
    }
}

impl Draft {
    fn raw(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        push_quoted(&mut self.0, text);
        self
    }

    fn participant(&mut self, who: Present<'_>) -> &mut Self {
        self.raw("{\"id\":").text(who.id.as_str()).raw(",\"capabilities\":").capabilities(who.capabilities).raw("}")
    }

    fn capabilities(&mut self, capabilities: &Capabilities) -> &mut Self {
        self.raw("[");
        for (place, pattern) in capabilities.patterns().iter().enumerate() {
            self.raw(if place == 0 { "" } else { "," }).text(pattern.as_str());
        }
        self.raw("]")
    }

    fn end(mut self) -> Bytes {
        self.raw("}}");
        self.0.into()
    }
}
