//! Approval stage: says which calls wait for a person, and settles an approval at the end of its call. Leaves to `policy::approval` which
//! people may agree, and to what, and does not ask them.

pub mod bound;
pub mod confirm;
pub mod hold;
pub mod preview;
pub mod told;
mod unconfirmed;
pub mod wait;

use std::sync::Arc;

use banyan_model::Era;
use config::resolved::Config;
use mcp_proto::envelope::Answer;
use policy::approval::{Call, Cause, End, Mode};

pub use crate::way::gate::confirm::{confirm, confirm_below};
pub use crate::way::gate::told::Pending;
pub use crate::way::gate::unconfirmed::unconfirmed;

use crate::judge::gate::Gate;
use crate::tree::annotation::ToolFacts;
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
    /// Approval or grant used by the call, which hears how the call ends.
    pub release: Option<Release>,
    /// Id of the approval or grant used by the call.
    pub agreed: Option<Arc<str>>,
}

impl Cleared {
    /// Checks that a person had to agree: then the call must not leave unrecorded.
    pub fn is_gated(&self) -> bool {
        self.agreed.is_some()
    }
}

/// Approval that lets a call out.
#[derive(Debug)]
pub enum Release {
    /// An approval of this call.
    Approval(Arc<str>),
    /// A grant, of which the call takes a use.
    Grant(Arc<str>, Box<GrantedCall>),
}

/// A call that goes out by a grant.
#[derive(Debug)]
pub struct GrantedCall {
    call: Call,
    /// State with which the call comes back, if it was asked for input before.
    state: Option<[u8; 32]>,
}

/// Outcome of the approval stage.
pub enum GateOutcome {
    /// The call waits or is refused, with this answer.
    Answered(Answer),
    /// The call goes out.
    Cleared(Cleared),
}

/// Lets the call through, or waits for somebody to agree, or says how to go on.
pub async fn gate(gate: &Arc<Gate>, config: &Config, reservation: Reservation, back: &Arc<Back>) -> Result<GateOutcome, CallError> {
    let Weight::Calls(noted) = reservation.resolved.aim.weight() else { return ungated(reservation, back) };
    let causes = causes(config, &reservation, noted, back);
    if back.is_preview {
        return preview::cleared(reservation, &causes);
    }
    // A gate below asks for approval itself, whatever was agreed to here (AX-47).
    if causes.iter().all(|cause| *cause == Cause::Below) {
        let Reservation { resolved, decision, room } = reservation;
        return Ok(GateOutcome::Cleared(Cleared { resolved, decision, room, release: None, agreed: None }));
    }
    if !matches!(reservation.resolved.aim, Aim::Tool(_)) && is_proposed(back) {
        return Err(CallError::MethodNotFound(reservation.resolved.wire_method.to_string()));
    }
    let noted = noted.map(Arc::clone);
    Box::pin(hold::hold(gate, reservation, noted.as_deref(), back, causes)).await
}

/// Lets a reading request out, unless a rule wants a person to agree. The state of a task goes to the principal that began it.
fn ungated(Reservation { resolved, decision, room }: Reservation, back: &Back) -> Result<GateOutcome, CallError> {
    match &decision {
        Some(decision) if decision.is_gated() && !matches!(resolved.aim, Aim::Task(_)) => Err(CallError::Unapproved(decision.id)),
        _ if is_proposed(back) => Err(CallError::MethodNotFound(resolved.wire_method.to_string())),
        _ => Ok(GateOutcome::Cleared(Cleared { resolved, decision, room, release: None, agreed: None })),
    }
}

fn is_proposed(back: &Back) -> bool {
    back.seated.as_ref().is_some_and(|seated| seated.is_proposed())
}

/// Reasons why a person has to agree to a call.
fn causes(config: &Config, reservation: &Reservation, noted: Option<&Arc<ToolFacts>>, back: &Back) -> Vec<Cause> {
    let Reservation { resolved, decision, .. } = reservation;
    let (by_policy, is_proposed) = (decision.as_ref().is_some_and(Decision::is_gated), is_proposed(back));
    if !by_policy && !is_proposed && config.gate.is_none() {
        return Vec::new();
    }
    let mode = config.gate.as_deref().map_or(Mode::Off, |gate| gate.mode_of(&resolved.branch.mount.config.name));
    let mut causes = ToolFacts::causes(noted.map(Arc::as_ref), mode, by_policy);
    causes.extend(is_proposed.then_some(Cause::Proposal));
    causes
}

/// Settles the approval of a call by its outcome, and turns a gate's answer about a call held below into this caller's own terms.
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
        // A server that only claims to be a gate may have made the call, which uses up the approval.
        let end = if below.is_some() && owner.role.is_vouched() { End::HeldBelow } else { approval_end(&outcome, back.caller.era) };
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

/// End of a call for its approval.
fn approval_end(outcome: &Result<Answer, CallError>, era: Era) -> End {
    match outcome {
        // The call has not been made: its caller comes back with more, and with the state given here.
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
