//! One participant as the room knows it: what it may send, how much, and what is on its way to it. Who else is there is not known here.

use std::time::{Duration, Instant};

use super::output::{Joining, Preferences, Routing};
use super::pauses::Held;
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
    /// Whether it looks after the room.
    pub(super) is_steward: bool,
    /// Who of those that look after the room has paused it.
    pub(super) held: Option<Held>,
    /// Whether what it sends is bounded.
    is_rated: bool,
    waiting: Waiting,
    messages: Allowance,
    bytes: Allowance,
    refusals: Allowance,
}

/// What was handed to the connection and is not written yet.
#[derive(Debug, Default)]
struct Waiting {
    messages: usize,
    bytes: usize,
}

/// How a message came to concern a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Concern {
    pub(super) own: bool,
    pub(super) addressed: bool,
    pub(super) broadcast: bool,
}

impl Seat {
    /// The place of somebody who was let in, with what is left of its capabilities by now.
    pub(super) fn new(joining: Joining, capabilities: Capabilities) -> Self {
        let Joining { id, capabilities: _, preferences, expires, is_own, is_steward } = joining;
        let (waiting, fresh) = (Waiting::default(), Allowance::default);
        let (messages, bytes, refusals) = (fresh(), fresh(), fresh());
        Self { id, capabilities, preferences, expires, is_steward, held: None, is_rated: !is_own, waiting, messages, bytes, refusals }
    }

    pub(super) fn present(&self) -> Present<'_> {
        Present { id: &self.id, capabilities: &self.capabilities }
    }

    /// Whether it gets a message (6.3). Its own come back to it where it gets all of the room and did not ask otherwise.
    pub(super) fn gets(&self, concern: Concern) -> bool {
        let chosen = match self.preferences.routing {
            Routing::All => !concern.own || self.preferences.echo,
            Routing::Directed => concern.broadcast && !concern.own,
        };
        concern.addressed || chosen
    }

    /// Takes a message on its way; `false`: it reads too slowly.
    pub(super) fn take(&mut self, length: usize, settings: &Settings) -> bool {
        if self.waiting.messages >= settings.queue_messages.max(1) || self.waiting.bytes >= settings.queue_bytes.max(1) {
            return false;
        }
        self.waiting.messages += 1;
        self.waiting.bytes += length;
        true
    }

    /// So much of it has been written.
    pub(super) fn written(&mut self, messages: usize, bytes: usize) {
        self.waiting.messages = self.waiting.messages.saturating_sub(messages);
        self.waiting.bytes = self.waiting.bytes.saturating_sub(bytes);
    }

    /// Lets it send a message of so many bytes, or says how long to wait.
    pub(super) fn send(&mut self, now: Instant, length: usize, settings: &Settings) -> Result<(), Duration> {
        if !self.is_rated {
            return Ok(());
        }
        let (messages, bytes) = (settings.messages, settings.bytes);
        let before = self.bytes.clone();
        self.bytes.take(now, bytes.cost(length), bytes.depth())?;
        let taken = self.messages.take(now, messages.cost(1), messages.depth());
        if taken.is_err() {
            self.bytes = before;
        }
        taken
    }

    /// Bears with a message that was refused; `false`: there were too many.
    pub(super) fn bear(&mut self, now: Instant, settings: &Settings) -> bool {
        self.refusals.take(now, settings.refusals.cost(1), settings.refusals.depth()).is_ok()
    }
}
