//! Witness of a call: hears when the call leaves for its owner. Neither changes nor stops a call.

use std::any::Any;
use std::fmt::Debug;

/// Witness of a call. A driver finds its own type again by [`Any`].
pub trait Witness: Any + Debug + Send + Sync {
    /// Notes raw params about to leave, with the id of the approval or grant in force.
    fn departs(&self, params: &[u8], approval: Option<&str>);
}
