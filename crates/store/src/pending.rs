//! Rows of approvals over a restart: one an approval, a grant or an operator's key. Does not know the content of a row.

use crate::StoreError;

/// Kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKind {
    Approval,
    Grant,
    /// Key of an operator, shared by all gates of the store.
    Operator,
}

/// Row to be written; a row without a body is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub kind: RowKind,
    pub id: String,
    /// Time of the final end, in seconds since 1970.
    pub over: Option<u64>,
    /// JSON.
    pub body: Option<String>,
}

/// Seconds for which an ended row is kept.
pub const KEPT: u64 = 30 * 86_400;

/// Rows of one gate, changed in turns.
pub trait Pending: Send {
    /// Begins a turn.
    ///
    /// # Errors
    /// When nothing can be read.
    fn begin(&mut self) -> Result<Box<dyn PendingTurn + '_>, StoreError>;
}

/// Compare and set: writing follows from reading, and is kept only if the read rows are unchanged. An implementation may keep others from
/// writing during a turn, or may compare revisions at the end.
pub trait PendingTurn {
    /// Bodies of all rows of a kind: unended rows first, then by the time of the end, then by id.
    ///
    /// # Errors
    /// When they can't be read.
    fn all(&self, kind: RowKind) -> Result<Vec<String>, StoreError>;

    /// Body of one row.
    ///
    /// # Errors
    /// When it can't be read.
    fn one(&self, kind: RowKind, id: &str) -> Result<Option<String>, StoreError>;

    /// Writes rows, all or none, and ends the turn. The rows last on return.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when another gate has written relevant rows since the turn began; else when nothing can be written.
    fn write(self: Box<Self>, rows: &[Row]) -> Result<(), StoreError>;
}
