//! Failures of stores. What a caller is told of one is not decided here.

/// Failure of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another gate wrote since what was read in a turn was read: nothing of the turn is kept.
    #[error("another gate changed it meanwhile")]
    Changed,
    /// Nothing can be read or written at present.
    #[error("{0}")]
    Failed(String),
}
