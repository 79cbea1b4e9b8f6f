//! Does somebody have to agree first. Says which calls wait, and what becomes of an approval when its call has ended. Who may agree, and
//! to what, is not decided here but in `policy::approval`.

pub mod bound;
pub mod confirm;
pub mod hold;
pub mod told;
mod unconfirmed;
pub mod wait;

use std::sync::Arc;

use banyan_model::Era;
use config::resolved::Config;
use mcp_proto::envelope::Answer;
use policy::approval::{Call, Cause, End, Mode, Risk};

pub use crate::way::gate::confirm::{confirm, confirm_below};
pub use crate::way::gate::told::Pending;
pub use crate::way::gate::unconfirmed::unconfirmed;

use crate::judge::gate::Gate;
use crate::tree::annotation::Noted;
use crate::tree::back::Back;
use crate::tree::port::UpstreamError;
use crate::tree::snapshot::Branch;
use crate::way::adapt;
use crate::way::authorize::Decision;
use crate::way::error::CallError;
use crate::way::reserve::{Reservation, Room};
use crate::way::resolve::{Aim, Resolved, Weight};

/// Proof that the call may go out.
#[derive(Debug)]
pub struct Cleared {
    pub resolved: Box<Resolved>,
    pub decision: Option<Decision>,
    pub room: Room,
    /// What lets it out, where somebody had to agree: it hears how the call ended.
    pub release: Option<Release>,
    /// The approval or the grant by which it goes out, where somebody had to agree.
    pub agreed: Option<Arc<str>>,
}

impl Cleared {
    /// Whether somebody had to agree: then it must not leave unless that is recorded.
    pub fn is_gated(&self) -> bool {
        self.agreed.is_some()
    }
}

/// What lets a call out that somebody had to agree to.
#[derive(Debug)]
pub enum Release {
    /// An approval of this call.
    Approval(Arc<str>),
    /// A grant, one use of which it takes.
    Grant(Arc<str>, Box<Begun>),
}

/// A call that goes out by a grant.
#[derive(Debug)]
pub struct Begun {
    call: Call,
    /// The state with which it comes back, where it was asked for input before.
    state: Option<[u8; 32]>,
}

/// What became of a call at the gate.
pub enum Gated {
    /// It does not go out now, and this is what its caller is told.
    Answered(Answer),
    /// It goes out.
    Cleared(Cleared),
}

/// Lets the call through, or waits for somebody to agree, or says how to go on.
pub async fn gate(gate: &Arc<Gate>, config: &Config, reservation: Reservation, back: &Arc<Back>) -> Result<Gated, CallError> {
    let Weight::Calls(noted) = reservation.resolved.aim.weight() else { return ungated(reservation, back) };
    let causes = causes(config, &reservation, noted, back);
    // What a gate below asks for is asked for there, whatever was agreed to here (AX-47).
    if causes.iter().all(|cause| *cause == Cause::Below) {
        let Reservation { resolved, decision, room } = reservation;
        return Ok(Gated::Cleared(Cleared { resolved, decision, room, release: None, agreed: None }));
    }
    if !matches!(reservation.resolved.aim, Aim::Tool(_)) && is_proposed(back) {
        return Err(CallError::MethodNotFound(reservation.resolved.wire_method.to_string()));
    }
    let noted = noted.map(Arc::clone);
    Box::pin(hold::hold(gate, reservation, noted.as_deref(), back, causes)).await
}

/// What only reads goes out, unless a rule says that somebody has to agree. How a task stands is told to whoever began it.
fn ungated(Reservation { resolved, decision, room }: Reservation, back: &Back) -> Result<Gated, CallError> {
    match &decision {
        Some(decision) if decision.is_gated() && !matches!(resolved.aim, Aim::Task(_)) => Err(CallError::Unapproved(decision.id)),
        _ if is_proposed(back) => Err(CallError::MethodNotFound(resolved.wire_method.to_string())),
        _ => Ok(Gated::Cleared(Cleared { resolved, decision, room, release: None, agreed: None })),
    }
}

fn is_proposed(back: &Back) -> bool {
    back.seated.as_ref().is_some_and(|seated| seated.is_proposed())
}

/// Why somebody has to agree to a call.
fn causes(config: &Config, reservation: &Reservation, noted: Option<&Arc<Noted>>, back: &Back) -> Vec<Cause> {
    let Reservation { resolved, decision, .. } = reservation;
    let (by_policy, is_proposed) = (decision.as_ref().is_some_and(Decision::is_gated), is_proposed(back));
    if !by_policy && !is_proposed && config.gate.is_none() {
        return Vec::new();
    }
    let mode = config.gate.as_deref().map_or(Mode::Off, |gate| gate.mode_of(&resolved.branch.mount.config.name));
    // Of what nobody says anything, the worst is thought.
    let risk = noted.map_or(Risk { mutable: true, reversible: false, listed: false }, |noted| noted.risk());
    let mut causes = mode.causes(risk, by_policy, noted.is_some_and(|noted| noted.is_gated_below()));
    causes.extend(is_proposed.then_some(Cause::Proposal));
    causes
}

/// Notes how a call ended that somebody agreed to, and turns what a gate below says of one that it holds into this caller's own terms.
pub async fn settle(
    gate: &Arc<Gate>,
    release: Option<Release>,
    owner: &Branch,
    back: &Back,
    outcome: Result<Answer, CallError>,
) -> Result<Answer, CallError> {
    let below = match &outcome {
        Ok(Answer::Error(error)) if owner.is_gate() => told::held_below(error),
        Ok(_) | Err(_) => None,
    };
    if release.is_none() && below.is_none() {
        return outcome;
    }
    Box::pin(async {
        // A server that only calls itself a gate may have made the call: what was agreed to is used then.
        let end = if below.is_some() && owner.role.is_vouched() { End::HeldBelow } else { end(&outcome, back.caller.era) };
        match release {
            Some(Release::Approval(id)) => gate.rules.approvals.finish(&id, end).await,
            Some(Release::Grant(id, begun)) => match (end, begun.state) {
                (End::NotSent, None) => gate.rules.approvals.give_back(&id).await,
                (End::NotSent, Some(state)) | (End::Asked(state), _) => gate.rules.approvals.asked(&id, begun.call, state).await,
                (End::Answered | End::HeldBelow | End::Unknown, _) => {}
            },
            None => {}
        }
        let Some(data) = below else { return outcome };
        match gate.rules.approvals.note_below(gate, owner, &data).await {
            Some((id, held)) => Pending::below(gate, id, &held.data).answer(gate, back),
            None => outcome,
        }
    })
    .await
}

/// How a call ended, as far as the approval is concerned.
fn end(outcome: &Result<Answer, CallError>, era: Era) -> End {
    match outcome {
        // It has not been made: its caller comes back with more, and with the state that is given here.
        Ok(answer) if era == Era::Stateless => match adapt::input_required(answer) {
            Some(wanted) => End::Asked(bound::state(wanted.state().map(|raw| &raw[..]))),
            None => End::Answered,
        },
        Err(CallError::Unavailable { .. } | CallError::Degraded(_) | CallError::StateUnknown | CallError::Unrecorded(_)) => End::NotSent,
        Err(CallError::Upstream { error, .. }) => match error {
            UpstreamError::Unreachable(_) | UpstreamError::Exposed | UpstreamError::Loop | UpstreamError::SignIn(_) => End::NotSent,
            UpstreamError::Cancelled
            | UpstreamError::Endless(_)
            | UpstreamError::Lost(_)
            | UpstreamError::SessionLost
            | UpstreamError::Silent(_) => End::Unknown,
            UpstreamError::Malformed(_) | UpstreamError::Refused { .. } | UpstreamError::TooLarge(_) | UpstreamError::Untold(_) => {
                End::Answered
            }
        },
        Err(CallError::Cancelled) => End::Unknown,
        Ok(_) | Err(_) => End::Answered,
    }
}
