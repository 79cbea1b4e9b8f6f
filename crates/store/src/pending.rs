//! Rows that approvals keep over a restart: one an approval, a grant or an operator's key. What a row says is not known here.

use crate::StoreError;

/// Kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKind {
    Approval,
    Grant,
    /// Key of an operator, which belongs to all gates of the store.
    Operator,
}

/// Row to be written; without a body it is taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub kind: RowKind,
    pub id: String,
    /// Time since which nothing can become of it any more, in seconds since 1970.
    pub over: Option<u64>,
    /// JSON.
    pub body: Option<String>,
}

/// Seconds for which a row is kept that is over.
pub const KEPT: u64 = 30 * 86_400;

/// Rows of one gate, changed in turns.
pub trait Pending: Send {
    /// Begins a turn.
    ///
    /// # Errors
    /// When nothing can be read.
    fn begin(&mut self) -> Result<Box<dyn PendingTurn + '_>, StoreError>;
}

/// Compare and set: what is written follows from what was read, and is kept only if that still holds. An implementation may keep others from
/// writing as long as a turn lasts, or may compare revisions when it ends.
pub trait PendingTurn {
    /// Bodies of all rows of a kind, those that are not over first, then by the time since which they are, then by id.
    ///
    /// # Errors
    /// When they can't be read.
    fn all(&self, kind: RowKind) -> Result<Vec<String>, StoreError>;

    /// Body of one row.
    ///
    /// # Errors
    /// When it can't be read.
    fn one(&self, kind: RowKind, id: &str) -> Result<Option<String>, StoreError>;

    /// Writes rows, all or none, and ends the turn. They last when this returns.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when another gate wrote since the turn began what could matter to it; else when nothing can be written.
    fn write(self: Box<Self>, rows: &[Row]) -> Result<(), StoreError>;
}
