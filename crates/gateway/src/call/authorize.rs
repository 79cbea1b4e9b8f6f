//! May this caller do this. Until policies exist every caller may call whatever its view shows; the stage and its proof are real.
//! It knows no names and no connections.

use super::error::CallError;
use super::resolve::Resolved;

/// Proof that the caller may make this call.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(super) resolved: Resolved,
}

/// Decides whether the call may be made.
pub(crate) fn authorize(resolved: Resolved) -> Result<Permit, CallError> {
    Ok(Permit { resolved })
}
