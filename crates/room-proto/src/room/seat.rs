//! A participant as seen by the room: capabilities, rates and queue. Does not know other participants.

use std::time::{Duration, Instant};

use super::output::{Newcomer, Preferences, Routing};
use super::pauses::StewardPause;
use super::settings::Settings;
use crate::allowance::Allowance;
use crate::capability::Capabilities;
use crate::name::ParticipantId;
use crate::system::Present;

#[derive(Debug)]
pub(super) struct Seat {
    pub(super) id: ParticipantId,
    pub(super) capabilities: Capabilities,
    pub(super) preferences: Preferences,
    pub(super) expires: Option<Instant>,
    pub(super) is_steward: bool,
    /// Pause by a steward.
    pub(super) held: Option<StewardPause>,
    /// Bounds the participant's messages.
    is_rated: bool,
    waiting: Backlog,
    messages: Allowance,
    bytes: Allowance,
    refusals: Allowance,
    /// Bounds new connections of the participant.
    reconnections: Allowance,
}

/// Messages given to the connection and not written yet.
#[derive(Debug, Default)]
struct Backlog {
    messages: usize,
    bytes: usize,
}

/// Relations of a message to a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Concern {
    pub(super) own: bool,
    pub(super) addressed: bool,
    pub(super) broadcast: bool,
}

impl Seat {
    /// Seats an admitted participant, with the capabilities left after changes.
    pub(super) fn new(newcomer: Newcomer, capabilities: Capabilities) -> Self {
        let Newcomer { id, capabilities: _, preferences, expires, is_own, is_steward } = newcomer;
        let (waiting, fresh) = (Backlog::default(), Allowance::default);
        let (messages, bytes, refusals, reconnections) = (fresh(), fresh(), fresh(), fresh());
        let is_rated = !is_own;
        Self { id, capabilities, preferences, expires, is_steward, held: None, is_rated, waiting, messages, bytes, refusals, reconnections }
    }

    /// Lets the participant take the seat over by a new connection, or gives the time to wait.
    pub(super) fn reconnect(&mut self, now: Instant, settings: &Settings) -> Result<(), Duration> {
        let (pause, at_once) = settings.reconnection;
        if self.is_rated { self.reconnections.spend(now, pause, pause * at_once) } else { Ok(()) }
    }

    /// Goes on with the bound of an earlier connection.
    pub(super) fn succeed(&mut self, before: Self) {
        self.reconnections = before.reconnections;
    }

    pub(super) fn present(&self) -> Present<'_> {
        Present { id: &self.id, capabilities: &self.capabilities }
    }

    /// Applies the routing to a message (6.3). Messages of the participant itself come back like those of others, unless declined.
    pub(super) fn gets(&self, concern: Concern) -> bool {
        let chosen = match self.preferences.routing {
            Routing::All => !concern.own || self.preferences.echo,
            Routing::Directed => concern.broadcast && (!concern.own || self.preferences.echo),
        };
        concern.addressed || chosen
    }

    /// Queues a message; `false`: the participant reads too slowly.
    pub(super) fn enqueue(&mut self, length: usize, settings: &Settings) -> bool {
        if self.waiting.messages >= settings.queue_messages.max(1) || self.waiting.bytes >= settings.queue_bytes.max(1) {
            return false;
        }
        self.waiting.messages += 1;
        self.waiting.bytes += length;
        true
    }

    /// Takes note of written messages.
    pub(super) fn written(&mut self, messages: usize, bytes: usize) {
        self.waiting.messages = self.waiting.messages.saturating_sub(messages);
        self.waiting.bytes = self.waiting.bytes.saturating_sub(bytes);
    }

    /// Lets the participant send `length` bytes, or gives the time to wait.
    pub(super) fn send(&mut self, now: Instant, length: usize, settings: &Settings) -> Result<(), Duration> {
        if !self.is_rated {
            return Ok(());
        }
        let (messages, bytes) = (settings.messages, settings.bytes);
        let before = self.bytes.clone();
        self.bytes.spend(now, bytes.cost(length), bytes.depth())?;
        let taken = self.messages.spend(now, messages.cost(1), messages.depth());
        if taken.is_err() {
            self.bytes = before;
        }
        taken
    }

    /// Tolerates a refused message; `false`: too many.
    pub(super) fn bear(&mut self, now: Instant, settings: &Settings) -> bool {
        self.refusals.spend(now, settings.refusals.cost(1), settings.refusals.depth()).is_ok()
    }
}
