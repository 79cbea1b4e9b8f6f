//! A second try of a call that did not reach its server, or may be made twice without harm (MCP-AX 9.1, ours). Does not choose the server.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::envelope::Answer;

use crate::tree::back::Back;
use crate::tree::mount::Lease;
use crate::tree::port::{OutgoingRequest, UpstreamError};
use crate::way::error::CallError;
use crate::way::forward::{failed, timed};
use crate::way::gate::Cleared;
use crate::way::resolve::{Aim, Resolved};

/// Longest wait for a server whose connection broke; a gate that dialled comes back at once if it can.
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// Time after a failed call within which the end of its link shows.
const SEEN_WITHIN: Duration = Duration::from_millis(200);

/// Checks that a call may be sent again: if it did not leave, or if twice is as good as once and no part of an answer has gone down. An
/// approved call goes out once, whatever its tool claims.
pub fn may_repeat(cleared: &Cleared, lease: &Lease, error: &UpstreamError, back: &Back) -> bool {
    let is_harmless = match error {
        UpstreamError::Lost(_) => lease.instance.is_http() && !cleared.is_gated() && is_idempotent(&cleared.resolved),
        // Where the gate dials, trying has already shown the server to be unreachable.
        UpstreamError::Unreachable(_) => lease.instance.is_linked(),
        UpstreamError::Cancelled
        | UpstreamError::Exposed
        | UpstreamError::Loop
        | UpstreamError::Malformed(_)
        | UpstreamError::Refused { .. }
        | UpstreamError::SessionLost
        | UpstreamError::SignIn(_)
        | UpstreamError::Endless(_)
        | UpstreamError::Silent(_)
        | UpstreamError::TooLarge(_)
        | UpstreamError::Untold(_) => false,
    };
    is_harmless && !back.has_poured() && !back.cancel.is_cancelled()
}

/// Sends the call again, once; `first` is the failure before.
pub async fn repeat(
    resolved: &Resolved,
    lease: Lease,
    out: &OutgoingRequest<'_>,
    back: &Arc<Back>,
    first: UpstreamError,
) -> Result<Answer, CallError> {
    let mount = &resolved.branch.mount;
    let old = Arc::clone(&lease.instance);
    drop(lease);
    // A connection may break alone, but a link takes all its calls with it, and is seen to go at once.
    let is_over = old.is_lost() || (old.is_linked() && tokio::time::timeout(SEEN_WITHIN, old.lost()).await.is_ok());
    let again = if is_over {
        let waiting = mount.gate.mounts.reconnected(&mount.config.name, &old, BACK_WITHIN);
        tokio::select! {
            again = waiting => again,
            () = back.cancel.cancelled() => return Err(CallError::Cancelled),
        }
    } else {
        Some(Arc::clone(mount))
    };
    let Some(again) = again else { return Err(failed(resolved, first)) };
    let Ok(lease) = again.lease(&resolved.caller).await else { return Err(failed(resolved, first)) };
    tracing::debug!(mount = %mount.config.name, error = %first, "a call is made again");
    timed(resolved, &lease, out, back).await.map_err(|e| failed(resolved, e))
}

/// Checks for a call without effect in repetition. Reading changes nothing.
fn is_idempotent(resolved: &Resolved) -> bool {
    match &resolved.aim {
        Aim::Complete | Aim::LogLevel | Aim::Prompt | Aim::Resource | Aim::Subscription | Aim::Tasks | Aim::Trace(_) => true,
        Aim::Tool(noted) => noted.is_idempotent(),
        Aim::Confirmation | Aim::Task(_) | Aim::Unknown => false,
    }
}
