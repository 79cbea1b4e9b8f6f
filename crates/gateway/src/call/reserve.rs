//! Room for the call: in the whole gate, and at its owner. Given back when the reservation is dropped.
//! Nobody waits for room: there is some or there is none.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::authorize::Permit;
use super::error::CallError;
use super::resolve::Resolved;
use crate::Inner;

/// Proof that there is room for the call.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(super) resolved: Resolved,
    pub(super) room: Room,
}

/// The room itself.
#[derive(Debug)]
pub(crate) struct Room {
    _whole: OwnedSemaphorePermit,
    _owner: OwnedSemaphorePermit,
}

/// Takes room for the call, or refuses at once: a queue would only hide the overload.
pub(crate) fn reserve(gateway: &Inner, permit: Permit) -> Result<Reservation, CallError> {
    let limits = gateway.limits();
    let whole = Arc::clone(&gateway.permits).try_acquire_owned();
    let whole = whole.map_err(|_| CallError::Overloaded { what: "the gate is full", most: limits.calls })?;
    let owner = Arc::clone(&permit.resolved.branch.mount.permits).try_acquire_owned();
    let owner = owner.map_err(|_| CallError::Overloaded { what: "the server is busy", most: limits.calls_per_mount })?;
    Ok(Reservation { resolved: permit.resolved, room: Room { _whole: whole, _owner: owner } })
}
