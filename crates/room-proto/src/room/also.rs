//! Kinds that MCPx v0.1 does not have, and who asked for them: nobody else gets one. What they mean is the participants' business.

use crate::kind::Kind;

/// Classes beyond MCPx v0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Also(u16);

/// `stream/open`, `stream/data`, `stream/close` and what else begins so: for those in `to` alone, whatever they get otherwise, so that telemetry of
/// fifty is not sent fifty times fifty times.
const STREAM: &str = "stream";
/// Kinds that begin with `participant/`: those that have a class of their own, and all others.
const PARTICIPANT: &str = "participant";
/// Kinds that begin with `reasoning/`.
const REASONING: &str = "reasoning";

impl Also {
    /// The classes that can be asked for.
    pub const CLASSES: [&str; 9] = [
        "chat/acknowledge",
        "chat/cancel",
        "mcp/reject",
        "mcp/withdraw",
        "participant/pause",
        "participant/resume",
        STREAM,
        PARTICIPANT,
        REASONING,
    ];

    /// None of them.
    pub const NONE: Self = Self(0);

    /// What people and their tools need to follow a room: neither streams nor what agents tell each other of their state.
    pub const ALL: Self = Self(0b011_1111);

    /// What MEW v0.4 has: all of them.
    pub const MEW: Self = Self(0b1_1111_1111);

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
        if !needed.ask(kind.class())
            && let Some(family) = [STREAM, PARTICIPANT, REASONING].into_iter().find(|family| is_of(kind, family))
        {
            needed.ask(family);
        }
        needed
    }

    /// Whether all of `needed` was asked for.
    pub(super) fn covers(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }
}

/// Whether a kind goes to those in `to` and to nobody else.
pub(super) fn is_stream(kind: Kind<'_>) -> bool {
    is_of(kind, STREAM)
}

fn is_of(kind: Kind<'_>, family: &str) -> bool {
    kind.class().strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
