//! A second try, where a call did not reach its server, or may be made twice without harm (MCP-AX 9.1, ours). Who is called is not
//! decided here.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::envelope::Answer;

use crate::tree::back::Back;
use crate::tree::mount::Lease;
use crate::tree::port::{Outgoing, UpstreamError};
use crate::way::error::CallError;
use crate::way::forward::{failed, timed};
use crate::way::gate::Cleared;
use crate::way::resolve::{Aim, Resolved};

/// How long a server whose connection broke is waited for: a gate that dialled comes back at once if it can.
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// How long after its calls a link may be seen to be gone.
const SEEN_WITHIN: Duration = Duration::from_millis(200);

/// Whether the same may be sent again. What did not leave may; what did may only if twice is as good as once, and as long as nothing of
/// an answer has gone down. What somebody agreed to goes out once, whatever its tool says of itself.
pub fn may_repeat(cleared: &Cleared, lease: &Lease, error: &UpstreamError, back: &Back) -> bool {
    let is_harmless = match error {
        UpstreamError::Lost(_) => lease.instance.is_http() && !cleared.is_gated() && is_idempotent(&cleared.resolved),
        // Where it is dialled, that it can't be reached was found by trying.
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

/// Sends it again, once. `first`: what became of it before.
pub async fn repeat(
    resolved: &Resolved,
    lease: Lease,
    out: &Outgoing<'_>,
    back: &Arc<Back>,
    first: UpstreamError,
) -> Result<Answer, CallError> {
    let mount = &resolved.branch.mount;
    let old = Arc::clone(&lease.instance);
    drop(lease);
    // A connection may have broken alone; a link takes everything with it, and is seen to go at the same moment.
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

/// Reading changes nothing, whoever reads.
fn is_idempotent(resolved: &Resolved) -> bool {
    match &resolved.aim {
        Aim::Complete | Aim::LogLevel | Aim::Prompt | Aim::Resource | Aim::Subscription | Aim::Tasks | Aim::Trace(_) => true,
        Aim::Tool(noted) => noted.is_idempotent(),
        Aim::Confirmation | Aim::Task(_) | Aim::Unknown => false,
    }
}
