//! Failures of stores. Says nothing to callers.

/// Failure of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another gate has written since the turn read: nothing of the turn is kept.
    #[error("another gate changed it meanwhile")]
    Changed,
    /// Nothing can be read or written at present.
    #[error("{0}")]
    Failed(String),
}
