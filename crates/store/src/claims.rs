//! Claims of authorities on segments (AX-12). Whether a claim holds is not decided here.

use banyan_model::Segment;
use futures_util::future::BoxFuture;
use mesh_proto::parent::Claim;

use crate::StoreError;

/// Change of the claims of one gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimChange {
    /// Keep this claim, in place of the one on its segment.
    Made(Claim),
    /// Forget the claim on this segment.
    Released(Segment),
}

/// Claims of one gate, kept in the order in which they come. What can't be kept is tried again until it can be.
pub trait Claims: Send + Sync {
    /// Keeps changes. The future ends when they last.
    ///
    /// # Errors
    /// When they do not at the first try.
    fn keep(&self, changes: Vec<ClaimChange>) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Tells if the last try went well.
    fn works(&self) -> bool;
}
