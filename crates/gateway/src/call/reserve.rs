//! Room for the call: in the whole gate, and at its owner. Given back when the reservation is dropped.
//! Nobody waits for room: there is some or there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::authorize::Permit;
use super::error::CallError;
use super::resolve::Resolved;
use crate::Inner;

/// How many calls are under way. The bound comes with each call, so that a changed one holds at once.
#[derive(Debug, Default)]
pub(crate) struct Places(AtomicUsize);

/// One of the places, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Places>);

impl Places {
    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes a place, unless `most` are taken.
    fn take(self: &Arc<Self>, most: usize) -> Option<Place> {
        let one_more = |taken| (taken < most).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Proof that there is room for the call.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(super) resolved: Resolved,
    pub(super) room: Room,
}

/// The room itself.
#[derive(Debug)]
pub(crate) struct Room {
    _whole: Place,
    _owner: Place,
}

/// Takes room for the call, or refuses at once: a queue would only hide the overload.
pub(crate) fn reserve(gateway: &Inner, permit: Permit) -> Result<Reservation, CallError> {
    let limits = gateway.limits();
    let mount = &permit.resolved.branch.mount;
    let full = |what, most, mount| {
        gateway.refusals.note(what, mount);
        CallError::Overloaded { what, most }
    };
    let whole = gateway.places.take(limits.calls).ok_or_else(|| full("the gate is full", limits.calls, None))?;
    let busy = || full("the server is busy", limits.calls_per_mount, Some(&mount.config.name));
    let owner = mount.places.take(limits.calls_per_mount).ok_or_else(busy)?;
    Ok(Reservation { resolved: permit.resolved, room: Room { _whole: whole, _owner: owner } })
}
