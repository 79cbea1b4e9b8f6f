//! Who may pause whom, and let go on. Whoever looks after the room is paused by another who does, and by itself; and what such a one has paused
//! goes on when such a one says so: nobody else ends that pause, nor puts a shorter one in its place. What a pause stops is not known here.

use std::time::Instant;

use super::Room;
use super::seat::Seat;
use crate::envelope::Envelope;
use crate::name::{ConnectionId, ParticipantId};
use crate::participant::{PAUSE, Pause, RESUME};
use crate::refusal::Refusal;

/// A pause by somebody who looks after the room. It ends with the connection, as it does for whoever is paused.
#[derive(Debug, Clone)]
pub(super) struct Held {
    by: ParticipantId,
    until: Option<Instant>,
}

impl Room {
    /// Whether somebody may pause, or let go on, those it names.
    pub(super) fn may_control(&self, now: Instant, seat: &Seat, envelope: &Envelope<'_>) -> Result<(), Refusal> {
        let class = envelope.kind().class();
        if (class != PAUSE && class != RESUME) || seat.is_steward {
            return Ok(());
        }
        let kind = || envelope.kind().as_str().to_owned();
        for other in envelope.to.iter().filter_map(|id| self.seats.get(self.present.get(&**id)?)) {
            let id = other.id.as_str().to_owned();
            if class == PAUSE && other.is_steward {
                return Err(Refusal::Steward { kind: kind(), id });
            }
            if let Some(held) = other.held.as_ref().filter(|held| held.until.is_none_or(|until| until > now)) {
                return Err(Refusal::Held { kind: kind(), id, by: held.by.as_str().to_owned() });
            }
        }
        Ok(())
    }

    /// Notes whom somebody who looks after the room has paused, or lets go on.
    pub(super) fn note_control(&mut self, now: Instant, connection: ConnectionId, envelope: &Envelope<'_>) {
        let Some(steward) = self.seats.get(&connection).filter(|seat| seat.is_steward) else { return };
        let held = match envelope.kind().class() {
            PAUSE => Some(Held { by: steward.id.clone(), until: Pause::of(envelope, now).until }),
            RESUME => None,
            _ => return,
        };
        for id in &envelope.to {
            if let Some(other) = self.present.get(&**id).and_then(|connection| self.seats.get_mut(connection)) {
                other.held.clone_from(&held);
            }
        }
    }
}
