//! Kinds that MCPx v0.1 does not have, and who asked for them: nobody else gets one. What they mean is the participants' business.

use crate::kind::Kind;

/// Classes beyond MCPx v0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Also(u8);

/// `stream/open`, `stream/data`, `stream/close` and what else begins so: for those in `to` alone, whatever they get otherwise, so that telemetry of
/// fifty is not sent fifty times fifty times.
const STREAM: &str = "stream";

impl Also {
    /// The classes that can be asked for.
    pub const CLASSES: [&str; 7] =
        ["chat/acknowledge", "chat/cancel", "mcp/reject", "mcp/withdraw", "participant/pause", "participant/resume", STREAM];

    /// None of them.
    pub const NONE: Self = Self(0);

    /// All of them but streams: what people and their tools need to follow a room.
    pub const ALL: Self = Self(0b011_1111);

    /// Asks for one; `false`: there is no such class.
    pub fn ask(&mut self, class: &str) -> bool {
        let place = Self::CLASSES.iter().position(|known| *known == class);
        self.0 |= place.map_or(0, |place| 1 << place);
        place.is_some()
    }

    /// The classes that were asked for.
    pub fn classes(self) -> impl Iterator<Item = &'static str> {
        Self::CLASSES.into_iter().enumerate().filter(move |(place, _)| self.0 & (1 << place) != 0).map(|(_, class)| class)
    }

    /// What one has to have asked for to get a kind: nothing, where v0.1 has it.
    pub(super) fn needed(kind: Kind<'_>) -> Self {
        let mut needed = Self::default();
        let class = if is_stream(kind) { STREAM } else { kind.class() };
        needed.ask(class);
        needed
    }

    /// Whether all of `needed` was asked for.
    pub(super) fn covers(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }
}

/// Whether a kind goes to those in `to` and to nobody else.
pub(super) fn is_stream(kind: Kind<'_>) -> bool {
    kind.class().strip_prefix(STREAM).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
