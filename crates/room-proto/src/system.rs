//! A gateway's own messages in a room: welcome, presence, errors (MCPx v0.1, 3.4 and 3.5). Does not choose their time.

use std::time::SystemTime;

use banyan_model::Timestamp;
use bytes::Bytes;

use crate::capability::{Capabilities, Pattern};
use crate::draft::{Draft, DraftHead, Ids};
use crate::name::{GATEWAY, ParticipantId};
use crate::refusal::Refusal;

/// A participant as shown to others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Present<'a> {
    pub(crate) id: &'a ParticipantId,
    pub(crate) capabilities: &'a Capabilities,
}

/// Writer of one room's own envelopes.
#[derive(Debug)]
pub(crate) struct System {
    ids: Ids,
}

impl System {
    pub(crate) fn new(seed: u128) -> Self {
        Self { ids: Ids::new(seed) }
    }

    /// Welcomes a participant after joining or a change of capabilities. `others` leaves `you` out; `more` are further members, unknown to
    /// v0.1.
    pub(crate) fn welcome<'a>(&mut self, at: SystemTime, you: Present<'_>, others: impl Iterator<Item = Present<'a>>, more: &str) -> Bytes {
        let mut draft = self.begin(at, "system/welcome", &[you.id.as_str()], None);
        participant(draft.raw("\"you\":"), you);
        draft.raw(",\"participants\":[");
        for (place, other) in others.enumerate() {
            participant(draft.raw(if place == 0 { "" } else { "," }), other);
        }
        draft.raw("]").raw(more);
        draft.finish()
    }

    /// Sends past messages to a newcomer, unchanged, the oldest first; `more`: older messages exist.
    pub(crate) fn history<'a>(
        &mut self,
        at: SystemTime,
        you: Present<'_>,
        messages: impl Iterator<Item = (SystemTime, &'a Bytes)>,
        more: bool,
    ) -> Bytes {
        let mut draft = self.begin(at, "system/history", &[you.id.as_str()], None);
        draft.raw("\"messages\":[");
        for (place, (at, bytes)) in messages.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            draft.raw(&format!("{comma}{{\"at\":\"{}\",\"envelope\":", Timestamp(at))).bytes(bytes).raw("}");
        }
        draft.raw(&format!("],\"more\":{more}"));
        draft.finish()
    }

    /// Announces a participant to everybody, after joining or connecting anew.
    pub(crate) fn joined(&mut self, at: SystemTime, who: Present<'_>) -> Bytes {
        let mut draft = self.begin(at, "system/presence", &[], None);
        participant(draft.raw("\"event\":\"join\",\"participant\":"), who);
        draft.finish()
    }

    /// Announces a departure to everybody.
    pub(crate) fn left(&mut self, at: SystemTime, who: &ParticipantId) -> Bytes {
        let mut draft = self.begin(at, "system/presence", &[], None);
        draft.raw("\"event\":\"leave\",\"participant\":{\"id\":").text(who.as_str()).raw("}");
        draft.finish()
    }

    /// Refuses a message. `id` is the id of the message, where legible.
    pub(crate) fn error(&mut self, at: SystemTime, to: Present<'_>, id: Option<&str>, why: &Refusal) -> Bytes {
        let mut draft = self.begin(at, "system/error", &[to.id.as_str()], id);
        draft.raw("\"error\":").text(why.code()).raw(",\"message\":").text(&why.to_string());
        if let Some(kind) = why.attempted_kind() {
            draft.raw(",\"attempted_kind\":").text(kind).raw(",\"your_capabilities\":").texts(texts(to.capabilities));
        }
        if let Some(wait) = why.retry_after() {
            draft.raw(&format!(",\"retry_after_ms\":{}", wait.as_micros().div_ceil(1000)));
        }
        draft.finish()
    }

    fn begin(&mut self, at: SystemTime, kind: &str, to: &[&str], correlation_id: Option<&str>) -> Draft {
        Draft::begin(DraftHead { id: &self.ids.next(), at, from: GATEWAY, to, kind, correlation_id })
    }
}

fn participant(draft: &mut Draft, who: Present<'_>) {
    draft.raw("{\"id\":").text(who.id.as_str()).raw(",\"capabilities\":").texts(texts(who.capabilities)).raw("}");
}

fn texts(capabilities: &Capabilities) -> impl Iterator<Item = &str> {
    capabilities.patterns().iter().map(Pattern::as_str)
}
