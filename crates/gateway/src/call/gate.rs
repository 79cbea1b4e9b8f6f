//! Does somebody have to agree first. Until gates exist nobody does; the stage and its proof are real.

use super::error::CallError;
use super::reserve::{Reservation, Room};
use super::resolve::Resolved;

/// Proof that the call may go out.
#[derive(Debug)]
pub(crate) struct Cleared {
    pub(super) resolved: Resolved,
    pub(super) _room: Room,
}

impl Cleared {
    /// Whether somebody had to agree: then it must not leave unless that is recorded.
    pub(super) fn is_gated(&self) -> bool {
        false
    }
}

/// Lets the call through.
pub(crate) fn gate(reservation: Reservation) -> Result<Cleared, CallError> {
    Ok(Cleared { resolved: reservation.resolved, _room: reservation.room })
}
