//! Room for the call: in the whole gate, at its owner, and in its caller's budgets. Dropping the reservation gives the room back, and the
//! budget only for a call that never left. Nobody waits for room: there is some or none.

use banyan_model::Segment;
use config::resolved::Config;

use banyan_model::Method;
use policy::budget::Charge;

use crate::judge::gate::{Gate, Rules};
use crate::judge::policy::{Spending, charge, take_budget};
use crate::tree::caller::Caller;
use crate::tree::gate::Load;
use crate::way::authorize::{Decision, Permit};
use crate::way::error::CallError;
use crate::way::resolve::{Resolved, Weight};
use crate::words::shares::{Bound, Full, Place, Resource};

/// Proof of room for the call.
#[derive(Debug)]
pub struct Reservation {
    pub resolved: Box<Resolved>,
    pub decision: Option<Decision>,
    pub room: Room,
}

/// Room of a call.
#[derive(Debug)]
pub struct Room {
    _place: Place,
    spending: Option<Spending>,
}

impl Room {
    /// Notes that the call has left and its cost is spent.
    pub fn left(&mut self) {
        if let Some(spending) = &mut self.spending {
            spending.keep();
        }
    }
}

/// Takes room for the call, or refuses at once: a queue would only hide the overload.
pub fn reserve(gate: &Gate, config: &Config, permit: Permit) -> Result<Reservation, CallError> {
    // Before any person is asked to agree to a call that can't be made.
    if gate.record.journal.is_full() {
        return Err(CallError::RecordFull);
    }
    let limits = &config.limits;
    let Permit { resolved, decision } = permit;
    let mount = &resolved.branch.mount;
    let share = resolved.caller.share(&gate.load);
    if let Some(until) = share.part.refused_until() {
        return Err(CallError::RecordShare { until });
    }
    let in_gate = share.take_amount(Resource::Calls, 1, Bound { most: limits.calls, percent: config.share() });
    let in_gate = in_gate.map_err(|full| match full {
        Full::All => crowded(&gate.load, "the gate is full", limits.calls, None),
        Full::Share(share) => crowded(&gate.load, "this caller has its share of the gate", share, None),
    })?;
    let place = in_gate.at(&mount.places, Bound { most: limits.calls_per_mount, percent: config.share() }).map_err(|full| match full {
        Full::All => crowded(&gate.load, "the server is busy", limits.calls_per_mount, Some(&mount.config.name)),
        Full::Share(share) => crowded(&gate.load, "this caller has its share of the server", share, Some(&mount.config.name)),
    })?;
    let spending = spend(&gate.rules, config, &resolved)?;
    Ok(Reservation { resolved, decision, room: Room { _place: place, spending } })
}

fn crowded(load: &Load, what: &'static str, most: usize, mount: Option<&Segment>) -> CallError {
    load.refusals.note(what, mount);
    CallError::Overloaded { what, most }
}

/// Charges a denied call, or a call of an unknown name, to its caller's budgets, so that such calls are bounded like any others. Returns
/// the error for the caller.
pub fn refused(rules: &Rules, config: &Config, caller: &Caller, error: CallError) -> CallError {
    if config.budgets.is_empty() || (error.decided().is_none() && !error.is_unknown()) {
        return error;
    }
    match take_budget(&*rules.budget, config, caller, Charge::default()) {
        Ok(spending) => {
            spending.into_iter().for_each(|mut spending| spending.keep());
            error
        }
        Err(over) => CallError::Budget(Box::new(over)),
    }
}

/// Takes the cost of the call from its caller's budgets.
fn spend(rules: &Rules, config: &Config, resolved: &Resolved) -> Result<Option<Spending>, CallError> {
    if config.budgets.is_empty() {
        return Ok(None);
    }
    let annotation = match resolved.aim.weight() {
        // Asking for the state of a task costs nothing.
        Weight::Reads if resolved.aim.method() == Method::Task => return Ok(None),
        Weight::Reads | Weight::Calls(None) => None,
        Weight::Calls(Some(noted)) => Some(noted.annotation()),
    };
    let Some(charge) = charge(resolved.aim.method(), annotation) else { return Ok(None) };
    take_budget(&*rules.budget, config, &resolved.caller, charge).map_err(|over| CallError::Budget(Box::new(over)))
}
