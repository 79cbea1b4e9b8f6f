//! Does somebody have to agree first. Where rules say so nobody can yet, so such a call does not go out; the stage and its proof are real.

use super::authorize::Decision;
use super::error::CallError;
use super::reserve::{Reservation, Room};
use super::resolve::Resolved;

/// Proof that the call may go out.
#[derive(Debug)]
pub(crate) struct Cleared {
    pub(super) resolved: Resolved,
    pub(super) decision: Option<Decision>,
    pub(super) room: Room,
}

impl Cleared {
    /// Whether somebody had to agree: then it must not leave unless that is recorded.
    pub(super) fn is_gated(&self) -> bool {
        false
    }
}

/// Lets the call through.
pub(crate) fn gate(reservation: Reservation) -> Result<Cleared, CallError> {
    let Reservation { resolved, decision, room } = reservation;
    if let Some(gated) = decision.as_ref().filter(|decision| decision.is_gated()) {
        return Err(CallError::Unapproved(gated.id));
    }
    Ok(Cleared { resolved, decision, room })
}
