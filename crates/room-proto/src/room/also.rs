//! Kinds beyond MCPx v0.1, sent only to participants who asked for them. Their meaning is the participants' business.

use crate::kind::Kind;

/// Classes beyond MCPx v0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Also(u16);

/// `stream/open`, `stream/data`, `stream/close` and all other `stream/...`: for the addressees alone, whatever the routing, lest the
/// telemetry of fifty be sent fifty times fifty times.
const STREAM: &str = "stream";
/// Kinds that begin with `participant/`, except those with a class of their own.
const PARTICIPANT: &str = "participant";
/// Kinds that begin with `reasoning/`.
const REASONING: &str = "reasoning";

impl Also {
    /// All classes on offer.
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

    // Sets of classes have a bit for each, by its place in `CLASSES`.

    /// No class.
    pub const NONE: Self = Self(0);

    /// Classes needed by people and their tools to follow a room: without streams and the agents' own states.
    pub const ALL: Self = Self(0b011_1111);

    /// Classes of MEW v0.4: all.
    pub const MEW: Self = Self(0b1_1111_1111);

    /// Adds a class; `false`: unknown class.
    pub fn ask(&mut self, class: &str) -> bool {
        let place = Self::CLASSES.iter().position(|known| *known == class);
        self.0 |= place.map_or(0, |place| 1 << place);
        place.is_some()
    }

    /// Lists the classes asked for.
    pub fn classes(self) -> impl Iterator<Item = &'static str> {
        Self::CLASSES.into_iter().enumerate().filter(move |(place, _)| self.0 & (1 << place) != 0).map(|(_, class)| class)
    }

    /// Gives the classes a receiver of a kind must have asked for: none, for kinds of v0.1.
    pub(super) fn needed(kind: Kind<'_>) -> Self {
        let mut needed = Self::default();
        if !needed.ask(kind.class())
            && let Some(family) = [STREAM, PARTICIPANT, REASONING].into_iter().find(|family| is_of(kind, family))
        {
            needed.ask(family);
        }
        needed
    }

    /// Compares with the needed classes.
    pub(super) fn covers(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }
}

/// Tells whether a kind goes to its addressees only.
pub(super) fn is_stream(kind: Kind<'_>) -> bool {
    is_of(kind, STREAM)
}

fn is_of(kind: Kind<'_>, family: &str) -> bool {
    kind.class().strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
