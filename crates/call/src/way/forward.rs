//! The call itself: into the owner's era, over its connection, and the answer back into the caller's. Does not ask if the call may be made.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use banyan_model::Era;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::Answer;
use mcp_proto::header::expected_params;

pub mod again;

use runtime::clock;
use telemetry::trace_context::TraceContext;

use crate::tree::back::Back;
use crate::tree::mount::{Lease, Phase};
use crate::tree::port::{OutgoingRequest, UpstreamError};
use crate::way::adapt;
use crate::way::error::CallError;
use crate::way::gate::Cleared;
use crate::way::hop;
use crate::way::resolve::{Aim, Resolved};
use crate::way::telling;

/// Most questions of a server about one call.
const MOST_ROUNDS: usize = 32;

/// Makes the call.
#[expect(clippy::manual_async_fn, reason = "an async fn keeps what it is given twice, and every call in flight has one")]
pub fn forward(mut cleared: Cleared, back: &Arc<Back>, trace: Option<TraceContext>) -> impl Future<Output = Result<Answer, CallError>> {
    async move {
        let mount = &cleared.resolved.branch.mount;
        mount.in_flight.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let outcome = rounds(&cleared, back, trace.as_ref()).await;
        mount.in_flight.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        if !outcome.as_ref().err().is_some_and(CallError::never_left) {
            cleared.room.left();
        }
        outcome
    }
}

/// Asks for the input that a stateless server wants first: a caller of the initialize era is asked here, any other answers by itself.
async fn rounds(cleared: &Cleared, back: &Arc<Back>, trace: Option<&TraceContext>) -> Result<Answer, CallError> {
    let resolved = &*cleared.resolved;
    let mut next = None;
    for _ in 0..MOST_ROUNDS {
        let params = next.as_ref().unwrap_or(&resolved.params);
        let lease = lease(resolved).await?;
        let era = lease.instance.era();
        // Such a server gives no state to come back with, and a call carried out anew would happen twice.
        if resolved.caller.era == Era::Stateless && era == Era::Initialize && params.members().has("requestState") {
            return Err(CallError::StateUnknown);
        }
        let out = OutgoingRequest {
            method: &resolved.wire_method,
            params: adapt::traced(
                telling::add_facts(
                    hop::params(params, &resolved.caller, &resolved.branch, era, resolved.onward.as_ref()),
                    params,
                    resolved,
                ),
                trace,
            ),
            name: resolved.aim.is_mirrored().then_some(&*resolved.name),
            param_headers: if resolved.headers.is_empty() { Vec::new() } else { expected_params(params, &resolved.headers) },
            trace,
            limit: Some(limit(resolved)),
            pour: adapt::lacking(resolved, era),
            is_agreed: cleared.is_gated(),
        };
        if let Some(witness) = &back.witness {
            witness.departs(out.params.text(), cleared.agreed.as_deref());
        }
        let answer = attempt(cleared, lease, &out, back).await?;
        if resolved.caller.era == Era::Initialize
            && era == Era::Stateless
            && let Some(wanted) = adapt::input_required(&answer)
        {
            match Box::pin(wanted.answered(params, back)).await {
                Ok(answered) => next = Some(answered.into()),
                Err(error) => return Ok(Answer::Error(error)),
            }
            continue;
        }
        // A server of the initialize era knows its clients' abilities from the handshake, and has no word for a caller that lacks one.
        if let (Answer::Error(_), Era::Stateless, Era::Initialize) = (&answer, resolved.caller.era, era)
            && let Some(name) = back.lacked()
        {
            return Err(CallError::CapabilityMissing { name, extension: false });
        }
        return Ok(adapt::answer(answer, resolved, era));
    }
    Err(failed(resolved, UpstreamError::Malformed(format!("it asked for input {MOST_ROUNDS} times without an answer"))))
}

/// Sends a request. A session forgotten by the server is opened anew, once, since the request was not carried out.
async fn attempt(cleared: &Cleared, lease: Lease, out: &OutgoingRequest<'_>, back: &Arc<Back>) -> Result<Answer, CallError> {
    let resolved = &*cleared.resolved;
    let first = timed(resolved, &lease, out, back).await;
    match first {
        Ok(answer) => return Ok(answer),
        // Servers answer unknown requests and forgotten sessions alike.
        Err(UpstreamError::SessionLost) if !matches!(resolved.aim, Aim::Unknown) => {}
        Err(error) if again::may_repeat(cleared, &lease, &error, back) => {
            return Box::pin(again::repeat(resolved, lease, out, back, error)).await;
        }
        Err(error) => return Err(failed(resolved, error)),
    }
    let mount = &resolved.branch.mount;
    mount.connections.forget(&lease.instance);
    drop(lease);
    Box::pin(mount.settle(Duration::from_secs(10))).await;
    let lease = self::lease(resolved).await?;
    timed(resolved, &lease, out, back).await.map_err(|e| failed(resolved, e))
}

/// Sends a request and measures its tool's pace. A call with signs of life does not count, since it may have waited for a person.
async fn timed(resolved: &Resolved, lease: &Lease, out: &OutgoingRequest<'_>, back: &Arc<Back>) -> Result<Answer, UpstreamError> {
    let began = clock::now();
    let answer = lease.instance.request_since(out, Some(back), began).await;
    let took = clock::now().saturating_duration_since(began);
    if answer.is_ok() {
        resolved.branch.mount.recent.note(began, took);
    }
    if let Some(noted) = resolved.noted()
        && matches!(answer, Ok(_) | Err(UpstreamError::Endless(_) | UpstreamError::Silent(_)))
        && noted.took(took, || back.stirred().is_none())
    {
        resolved.branch.mount.gate.reannotate(&resolved.branch.mount);
    }
    answer
}

/// Longest silence of the server: by the latency class of the tool, and no longer than the operator allows.
fn limit(resolved: &Resolved) -> Duration {
    let class = resolved.noted().and_then(|noted| noted.patience());
    resolved.branch.mount.config.limit(&resolved.name, class)
}

async fn lease(resolved: &Resolved) -> Result<Lease, CallError> {
    let mount = &resolved.branch.mount;
    let shared = match mount.connections.shared.load_full() {
        Some(shared) => shared,
        None => {
            if mount.state.load().phase == Phase::Starting {
                Box::pin(mount.settle(mount.config.start_timeout)).await;
            }
            mount.connections.shared.load_full().ok_or_else(|| mount.unavailable())?
        }
    };
    mount.lease_by(shared, &resolved.caller).await.map_err(|e| failed(resolved, e))
}

fn failed(resolved: &Resolved, error: UpstreamError) -> CallError {
    if error == UpstreamError::Cancelled {
        return CallError::Cancelled;
    }
    let mount = &resolved.branch.mount;
    if let (UpstreamError::Unreachable(_), Some(registration)) = (&error, &mount.registration) {
        // The registry finds out, though nothing else may tell it.
        mount.connections.dirty(&[Kind::Tools]);
        return registration.degraded(SystemTime::now()).into();
    }
    CallError::Upstream { mount: mount.config.name.to_string(), error, report: None }
}
