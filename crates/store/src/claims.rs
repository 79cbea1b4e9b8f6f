//! Claims of authorities on segments (AX-12). Does not judge claims.

use banyan_model::Segment;
use futures_util::future::BoxFuture;
use mesh_proto::parent::Claim;

use crate::StoreError;

/// Change of the claims of one gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimChange {
    /// Keep this claim, in place of any on the same segment.
    Made(Claim),
    /// Forget the claim on this segment.
    Released(Segment),
}

/// Claims of one gate, stored in order. Failed writes are repeated until they succeed.
pub trait Claims: Send + Sync {
    /// Stores changes. The future ends when they last.
    ///
    /// # Errors
    /// When the first try fails.
    fn keep(&self, changes: Vec<ClaimChange>) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Tells if the last try succeeded.
    fn works(&self) -> bool;
}
