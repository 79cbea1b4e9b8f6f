//! Does somebody have to agree first. Says which calls wait, and what becomes of an approval when its call has ended. Who may agree, and
//! to what, is not decided here but in `policy::approval`.

mod confirm;
mod hold;
mod told;
mod wait;

use std::sync::Arc;

use banyan_model::{Era, Method};
use mcp_proto::envelope::Answer;
use policy::approval::{Cause, End, Mode, Risk};

pub(crate) use confirm::{confirm, confirm_below};
pub(crate) use told::Pending;

use super::adapt;
use super::authorize::Decision;
use super::back::Back;
use super::error::CallError;
use super::reserve::{Reservation, Room};
use super::resolve::Resolved;
use crate::Inner;
use crate::tree::Branch;
use crate::upstream::UpstreamError;

/// Proof that the call may go out.
#[derive(Debug)]
pub(crate) struct Cleared {
    pub(super) resolved: Box<Resolved>,
    pub(super) decision: Option<Decision>,
    pub(super) room: Room,
    /// The approval that lets it out, where one was needed.
    pub(super) approval: Option<Arc<str>>,
    /// The approval or the grant by which it goes out, where somebody had to agree.
    pub(super) agreed: Option<Arc<str>>,
}

impl Cleared {
    /// Whether somebody had to agree: then it must not leave unless that is recorded.
    pub(super) fn is_gated(&self) -> bool {
        self.agreed.is_some()
    }
}

/// What became of a call at the gate.
pub(crate) enum Gated {
    /// It does not go out now, and this is what its caller is told.
    Answered(Answer),
    /// It goes out.
    Cleared(Cleared),
}

/// Lets the call through, or waits for somebody to agree, or says how to go on.
pub(crate) async fn gate(gateway: &Arc<Inner>, reservation: Reservation, back: &Arc<Back>) -> Result<Gated, CallError> {
    let causes = causes(gateway, &reservation, back);
    // What a gate below asks for is asked for there, whatever was agreed to here (AX-47).
    if causes.iter().all(|cause| *cause == Cause::Below) {
        let Reservation { resolved, decision, room } = reservation;
        return Ok(Gated::Cleared(Cleared { resolved, decision, room, approval: None, agreed: None }));
    }
    Box::pin(hold::hold(gateway, reservation, back, causes)).await
}

/// Why somebody has to agree to a call.
fn causes(gateway: &Inner, reservation: &Reservation, back: &Back) -> Vec<Cause> {
    let Reservation { resolved, decision, .. } = reservation;
    let config = gateway.config.load();
    let by_policy = decision.as_ref().is_some_and(Decision::is_gated);
    let is_proposed = back.seated.as_ref().is_some_and(|seated| seated.is_proposed());
    if !by_policy && !is_proposed && (config.gate.is_none() || resolved.method != Method::ToolCall) {
        return Vec::new();
    }
    // What nothing is known of may do anything.
    let risk = resolved.noted.as_ref().map_or(Risk { mutable: true, reversible: false }, |noted| noted.risk());
    let below = resolved.noted.as_ref().is_some_and(|noted| noted.is_gated_below());
    let mode = config.gate.as_deref().map_or(Mode::Off, |gate| gate.mode_of(&resolved.branch.mount.config.name));
    let mut causes = mode.causes(risk, by_policy, below);
    causes.extend(is_proposed.then_some(Cause::Proposal));
    causes
}

/// Notes how a call ended that somebody agreed to, and turns what a gate below says of one that it holds into this caller's own terms.
pub(crate) async fn settle(
    gateway: &Arc<Inner>,
    approval: Option<Arc<str>>,
    owner: &Branch,
    back: &Back,
    outcome: Result<Answer, CallError>,
) -> Result<Answer, CallError> {
    let below = match &outcome {
        Ok(Answer::Error(error)) if owner.is_gate => told::held_below(error),
        Ok(_) | Err(_) => None,
    };
    if approval.is_none() && below.is_none() {
        return outcome;
    }
    Box::pin(async {
        if let Some(id) = approval {
            let end = if below.is_some() { End::HeldBelow } else { end(&outcome, back.caller.era) };
            gateway.approvals.finish(&id, end).await;
        }
        let Some(data) = below else { return outcome };
        match gateway.approvals.note_below(&owner.mount.config.name, &data).await {
            Some(id) => Pending::below(gateway, id, &data).answer(gateway, back),
            None => outcome,
        }
    })
    .await
}

/// How a call ended, as far as the approval is concerned.
fn end(outcome: &Result<Answer, CallError>, era: Era) -> End {
    match outcome {
        // It has not been made: its caller comes back with more.
        Ok(answer) if era == Era::Stateless && adapt::input_required(answer).is_some() => End::HeldBelow,
        Err(CallError::Unavailable { .. } | CallError::Degraded(_) | CallError::StateUnknown | CallError::Unrecorded(_)) => End::NotSent,
        Err(CallError::Upstream { error, .. }) => match error {
            UpstreamError::Unreachable(_) | UpstreamError::Exposed | UpstreamError::Loop | UpstreamError::SignIn(_) => End::NotSent,
            UpstreamError::Cancelled | UpstreamError::Lost(_) | UpstreamError::SessionLost | UpstreamError::Silent(_) => End::Unknown,
            UpstreamError::Malformed(_) | UpstreamError::Refused { .. } | UpstreamError::TooLarge(_) => End::Answered,
        },
        Err(CallError::Cancelled) => End::Unknown,
        Ok(_) | Err(_) => End::Answered,
    }
}
