//! The stores of a gate, opened on demand. Does not choose the implementation: the composition of the gate does.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mesh_proto::parent::Claim;

use crate::{Bus, Claims, Contexts, Lessons, Pending, Pins, StoreError};

/// Kept claims, with the store for their changes.
pub type OpenClaims = (Arc<dyn Claims>, Vec<Claim>);

/// Stores of one place. Failed openings may succeed later.
pub trait Stores: Send + Sync {
    /// Opens the claims of a gate, and reads them.
    ///
    /// # Errors
    /// When they can't be kept.
    fn claims(&self, gate: &str) -> BoxFuture<'static, Result<OpenClaims, StoreError>>;

    /// Opens the rows of a gate, and forgets rows long ended at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// When they can't be kept.
    fn pending(&self, gate: &str, now: u64) -> Result<Box<dyn Pending>, StoreError>;

    /// Opens the definitions.
    ///
    /// # Errors
    /// When they can't be kept.
    fn pins(&self) -> Result<Box<dyn Pins>, StoreError>;

    /// Opens the lessons.
    ///
    /// # Errors
    /// When they can't be kept.
    fn lessons(&self) -> Result<Box<dyn Lessons>, StoreError>;

    /// Opens the contexts.
    ///
    /// # Errors
    /// When they can't be kept.
    fn contexts(&self) -> Result<Box<dyn Contexts>, StoreError>;

    /// Tells if anything was ever kept here.
    fn has_any(&self) -> bool;

    /// News of looks at definitions.
    fn looks(&self) -> Arc<dyn Bus>;

    /// Secret for sealing the states of waiting calls; the same over restarts, and for all gates here.
    ///
    /// # Errors
    /// When it can't be kept.
    fn sealing(&self) -> Result<[u8; 32], StoreError>;
}
