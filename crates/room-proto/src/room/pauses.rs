//! Pauses among participants. Only stewards pause a steward, and a steward may pause itself; a pause by a steward ends by a steward's word:
//! nobody else ends or shortens the pause. Does not know the effects of a pause.

use std::time::Instant;

use super::Room;
use super::seat::Seat;
use crate::envelope::Envelope;
use crate::name::{ConnectionId, ParticipantId};
use crate::participant::{PAUSE, Pause, RESUME};
use crate::refusal::Refusal;

/// A pause by a steward. Ends with the connection, as every pause does for the paused.
#[derive(Debug, Clone)]
pub(super) struct StewardPause {
    by: ParticipantId,
    until: Option<Instant>,
}

impl Room {
    /// Checks that a sender may pause or resume all addressees.
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

    /// Notes the pauses made and ended by a steward.
    pub(super) fn note_control(&mut self, now: Instant, connection: ConnectionId, envelope: &Envelope<'_>) {
        let Some(steward) = self.seats.get(&connection).filter(|seat| seat.is_steward) else { return };
        let held = match envelope.kind().class() {
            PAUSE => Some(StewardPause { by: steward.id.clone(), until: Pause::from_envelope(envelope, now).until }),
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
