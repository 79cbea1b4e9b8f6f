//! The stores of one gate, opened when they are needed. Which implementation they are of is decided where the gate is put together, not here.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mesh_proto::parent::Claim;

use crate::{Bus, Claims, Lessons, Pending, Pins, StoreError};

/// Claims that were kept, and where changes of them are.
pub type OpenClaims = (Arc<dyn Claims>, Vec<Claim>);

/// Stores of one place. What can't be opened may be opened later.
pub trait Stores: Send + Sync {
    /// Opens the claims of a gate, and reads them.
    ///
    /// # Errors
    /// When they can't be kept.
    fn claims(&self, gate: &str) -> BoxFuture<'static, Result<OpenClaims, StoreError>>;

    /// Opens the rows of a gate, and forgets those that have been over for long at `now`, in seconds since 1970.
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

    /// Tells if anything was ever kept here.
    fn has_any(&self) -> bool;

    /// News of somebody who looked at definitions.
    fn looks(&self) -> Arc<dyn Bus>;

    /// Secret by which states of calls are sealed that wait for somebody; the same over restarts, and for all gates here.
    ///
    /// # Errors
    /// When it can't be kept.
    fn sealing(&self) -> Result<[u8; 32], StoreError>;
}
